"""What completions look like on the wire: OpenAI's objects, whole or as server-sent events."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Sequence
from typing import Any

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

    def whole(self, choices: Sequence[tuple[list[Piece], Finished]]) -> dict[str, Any]:
        texts = [_choice(number, "".join(piece.text for piece in pieces), end.reason)
                 for number, (pieces, end) in enumerate(choices)]  # fmt: skip
        ends = [end for _, end in choices]
        return self._object(texts, max(end.version for end in ends)) | {"usage": _usage(ends)}

    def event(self, choice: int, item: Piece | Finished, include_usage: bool) -> str:
        """What an item of a choice is in a stream."""
        text, reason = (item.text, None) if isinstance(item, Piece) else ("", item.reason)
        usage: dict[str, Any] = {"usage": None} if include_usage else {}
        return event(self._object([_choice(choice, text, reason)], item.version) | usage)

    def last_events(self, ends: Sequence[Finished], include_usage: bool) -> str:
        """How a stream ends in which every choice has ended."""
        usage = self._object([], max(end.version for end in ends)) | {"usage": _usage(ends)}
        return (event(usage) if include_usage else "") + LAST_EVENT

    def _object(self, choices: list[dict[str, Any]], version: int) -> dict[str, Any]:
        return self._common | {"system_fingerprint": f"weights-{version}", "choices": choices}


def _choice(number: int, text: str, reason: str | None) -> dict[str, Any]:
    return {"index": number, "text": text, "logprobs": None, "finish_reason": reason}


def _usage(ends: Sequence[Finished]) -> dict[str, int]:
    """A prompt counts once, however many answers it has."""
    read, written = ends[0].prompt_tokens, sum(end.completion_tokens for end in ends)
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
