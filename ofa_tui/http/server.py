"""The endpoint: a socket that is bound before the run is built, and a server in a thread of its own beside the run."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from collections.abc import Iterator, Sequence

import uvicorn

from ofa_tui.console import say
from ofa_tui.engine.protocol import Engine, Event
from ofa_tui.errors import OfaError
from ofa_tui.http.app import make_app
from ofa_tui.http.broker import Broker
from ofa_tui.http.options import HttpOptions
from ofa_tui.http.shared import SharedEngine

MOST_CONNECTIONS = 256
LAST_WORDS_S = 2
"""How long an end of the run waits for answers that are on their way out."""


class Endpoint:
    def __init__(self, options: HttpOptions) -> None:
        """Raises OfaError where the address cannot be had, or is open to others without a token."""
        self._options = options
        self._socket = _bind(options)

    @property
    def url(self) -> str:
        """Base URL for clients."""
        host, port = self._socket.getsockname()[:2]
        return f"http://[{host}]:{port}/v1" if ":" in host else f"http://{host}:{port}/v1"

    @contextlib.contextmanager
    def serving(self, engine: Engine, sampling: Sequence[Event]) -> Iterator[Engine]:
        """Answers clients while it is open; they are served by whoever polls the engine that it gives.

        `sampling`: for each stream the event that says how it draws at the run's beginning.
        """
        broker = Broker(engine, sampling)
        server = _Server(make_app(broker, engine.info.preset, self._options.token), self._socket)
        server.start()
        say(f"ofa-tui: HTTP clients are answered at {self.url}")
        try:
            yield SharedEngine(engine, broker)
        finally:
            broker.close()
            server.close()


def _bind(options: HttpOptions) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(options.host, options.port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError):
        raise OfaError(f"--http {options.host} is no address of this machine; listen for example on 127.0.0.1"
                       ) from None
    options.check_address(str(address[0]))
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as error:
        bound.close()
        raise OfaError(f"--http cannot listen on {options.host}, port {options.port} ({error.strerror}); "
                       "choose another") from None
    return bound


class _Server:
    """uvicorn in a thread that ends with the process at the latest. It says nothing: the screen is not its own."""

    def __init__(self, app, bound: socket.socket) -> None:
        logging.getLogger("uvicorn").addHandler(logging.NullHandler())
        logging.getLogger("uvicorn").propagate = False
        self._server = uvicorn.Server(uvicorn.Config(
            app, loop="asyncio", http="h11", ws="none", lifespan="off", log_config=None, access_log=False,
            server_header=False, proxy_headers=False, limit_concurrency=MOST_CONNECTIONS,
            timeout_graceful_shutdown=LAST_WORDS_S,
        ))  # fmt: skip
        self._thread = threading.Thread(target=self._server.run, args=([bound],), name="http", daemon=True)

    def start(self) -> None:
        self._thread.start()
        while not self._server.started:
            if not self._thread.is_alive():
                raise OfaError("the HTTP server did not start; choose another address with --http")
            time.sleep(0.005)

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join(2 * LAST_WORDS_S + 1)
