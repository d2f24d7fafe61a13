"""The endpoint's routes: /v1/models and /v1/completions."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Coroutine
from functools import partial
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from ofa_tui.http.answers import Answer, event, model_object
from ofa_tui.http.broker import Broker
from ofa_tui.http.completion import Completion, check_model, parse
from ofa_tui.http.errors import ApiError
from ofa_tui.http.guard import check_client, check_json
from ofa_tui.http.turn import Finished, Item, Piece

LARGEST_BODY = 1 << 20
_T = TypeVar("_T")


class _Items:
    """A request's places in the line, one for each of its choices, and its answer as it comes, in the server's loop."""

    def __init__(self, broker: Broker, completion: Completion) -> None:
        """Raises ApiError where there is no place."""
        self._broker = broker
        self._loop = asyncio.get_running_loop()
        self._arrived: asyncio.Queue[tuple[int, Item]] = asyncio.Queue()
        self._left = completion.n
        self._tickets = broker.submit([
            (choice, partial(self._deliver, number)) for number, choice in enumerate(completion.choices())
        ])

    def _deliver(self, choice: int, item: Item) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._arrived.put_nowait, (choice, item))

    async def next(self) -> tuple[int, Piece | Finished] | None:
        """The next item of any choice, None when all have ended. Raises ApiError for an answer that failed."""
        if not self._left:
            return None
        choice, item = await self._arrived.get()
        if isinstance(item, ApiError):
            raise item
        self._left -= isinstance(item, Finished)
        return choice, item

    async def rest(self, first: tuple[int, Piece | Finished] | None) -> list[tuple[list[Piece], Finished]]:
        """All of the answer from an item on, choice by choice."""
        pieces: list[list[Piece]] = [[] for _ in self._tickets]
        ends: dict[int, Finished] = {}
        while first is not None:
            choice, item = first
            if isinstance(item, Piece):
                pieces[choice].append(item)
            else:
                ends[choice] = item
            first = await self.next()
        return [(pieces[choice], ends[choice]) for choice in range(len(pieces))]

    def cancel(self) -> None:
        self._broker.cancel(self._tickets)


class _Stream(StreamingResponse):
    """An answer as server-sent events. However its end comes, the request's turns end with it."""

    def __init__(self, items: _Items, first: tuple[int, Piece | Finished] | None, answer: Answer, include_usage: bool
                 ) -> None:
        super().__init__(self._events(first, include_usage), media_type="text/event-stream",
                         headers={"Cache-Control": "no-cache"})
        self._items = items
        self._answer = answer

    async def _events(self, arrived: tuple[int, Piece | Finished] | None, include_usage: bool) -> AsyncIterator[str]:
        ends = []
        try:
            while arrived is not None:
                choice, item = arrived
                if isinstance(item, Finished):
                    ends.append(item)
                yield self._answer.event(choice, item, include_usage)
                # Where more is there already, nothing else waits: let the loop see that a client has left.
                await asyncio.sleep(0)
                arrived = await self._items.next()
        except ApiError as error:
            yield event(error.body())
        else:
            yield self._answer.last_events(ends, include_usage)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._items.cancel()


class _Api:
    def __init__(self, broker: Broker, model: str) -> None:
        self._broker = broker
        self._model = model
        self._created = int(time.time())

    async def models(self, request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [model_object(self._model, self._created)]})

    async def one_model(self, request: Request) -> Response:
        check_model(request.path_params["name"], self._model)
        return JSONResponse(model_object(self._model, self._created))

    async def completions(self, request: Request) -> Response:
        check_json(request.headers)
        completion = parse(await _body(request), self._model)
        items, answer = _Items(self._broker, completion), Answer(self._model)
        streams = False
        try:
            # The status of a stream, too, is known only once its first turn has come.
            first = await _unless_gone(request, items.next())
            if completion.stream:
                streams = True
                return _Stream(items, first, answer, completion.include_usage)
            return JSONResponse(answer.whole(await _unless_gone(request, items.rest(first))))
        finally:
            if not streams:
                items.cancel()


async def _body(request: Request) -> bytes:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > LARGEST_BODY:
            raise ApiError(413, f"the body is larger than {LARGEST_BODY:,} bytes")
    return body


async def _unless_gone(request: Request, work: Coroutine[Any, Any, _T]) -> _T:
    """What `work` comes to. Ends it and raises ClientDisconnect when the client goes before."""
    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        for task in (working, leaving):
            task.cancel()


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


class _Guarded:
    """Lets nobody in who may not ask."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        try:
            check_client(Request(scope).headers, self._token)
        except ApiError as error:
            await _refused(error)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def _refused(error: ApiError) -> Response:
    headers = {401: {"WWW-Authenticate": "Bearer"}, 429: {"Retry-After": "1"}}.get(error.status)
    return JSONResponse(error.body(), error.status, headers)


async def _on_api_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    return _refused(error)


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    words = {404: f"there is no {request.url.path}; there are /v1/models and /v1/completions",
             405: f"{request.url.path} does not take {request.method}"}
    return _refused(ApiError(error.status_code, words.get(error.status_code, error.detail)))


async def _on_leaving(request: Request, error: Exception) -> Response:
    return Response(status_code=499)  # nobody reads it


async def _on_bug(request: Request, error: Exception) -> Response:
    return _refused(ApiError(500, f"internal error ({type(error).__name__}); this is a bug, please report it"))


def make_app(broker: Broker, model: str, token: str) -> ASGIApp:
    """The ASGI application. `model` is the only one there is; `token` what clients have to bring, if anything."""
    api = _Api(broker, model)
    return _Guarded(
        Starlette(
            routes=[
                Route("/v1/models", api.models, methods=["GET"]),
                Route("/v1/models/{name:path}", api.one_model, methods=["GET"]),
                Route("/v1/completions", api.completions, methods=["POST"]),
            ],
            exception_handlers={ApiError: _on_api_error, HTTPException: _on_http_error,
                                ClientDisconnect: _on_leaving, Exception: _on_bug},
        ),
        token,
    )
