"""What completions look like on the wire: OpenAI's objects, whole or as server-sent events."""

from __future__ import annotations

import json
import time
import uuid
from typing import Any

from ofa_tui.http.errors import ApiError
from ofa_tui.http.turn import Finished, Piece

LAST_EVENT = "data: [DONE]\n\n"


def model_object(name: str, created: int) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": created, "owned_by": "ofa-tui"}


def event(value: dict[str, Any]) -> str:
    """One server-sent event."""
    return f"data: {json.dumps(value)}\n\n"


class Answer:
    """One answer's objects, which share an id. `system_fingerprint` names the weights of the newest token."""

    def __init__(self, model: str) -> None:
        self._common = {"id": f"cmpl-{uuid.uuid4().hex}", "object": "text_completion", "created": int(time.time()),
                        "model": model}

    def whole(self, pieces: list[Piece], end: Finished) -> dict[str, Any]:
        text = "".join(piece.text for piece in pieces)
        return self._object(text, end.version, end.reason) | {"usage": _usage(end)}

    def events(self, item: Piece | Finished | ApiError, include_usage: bool) -> str:
        """The event of one item; of the last one, all that end the stream."""
        usage: dict[str, Any] = {"usage": None} if include_usage else {}
        if isinstance(item, Piece):
            return event(self._object(item.text, item.version) | usage)
        if isinstance(item, ApiError):
            return event(item.body())
        said = event(self._object("", item.version, item.reason) | usage)
        if include_usage:
            said += event(self._object("", item.version) | {"choices": [], "usage": _usage(item)})
        return said + LAST_EVENT

    def _object(self, text: str, version: int, reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": reason}
        return self._common | {"system_fingerprint": f"weights-{version}", "choices": [choice]}


def _usage(end: Finished) -> dict[str, int]:
    return {"prompt_tokens": end.prompt_tokens, "completion_tokens": end.completion_tokens,
            "total_tokens": end.prompt_tokens + end.completion_tokens}
