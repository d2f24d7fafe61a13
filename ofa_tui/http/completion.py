"""The body of a request for a completion: what it asks for, checked."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from ofa_tui import abi
from ofa_tui.engine.protocol import Event
from ofa_tui.engine.steering import float_bits
from ofa_tui.http.errors import ApiError

DEFAULT_TOKENS = 16
"""As in OpenAI's API."""
MOST_STOPS = 4
MOST_CHOICES = abi.MAX_STREAMS
SOURCE = "HTTP"
"""Event.source of what requests post."""


@dataclass(frozen=True)
class Completion:
    """A text to go on with. None leaves a value of sampling as the run has it."""

    prompt: str
    """Empty: a story from its beginning."""
    max_tokens: int = DEFAULT_TOKENS
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None
    n: int = 1
    """Answers that are asked for."""
    choice: int = 0
    """Which of them it is."""
    stop: tuple[str, ...] = ()
    stream: bool = False
    include_usage: bool = False
    """A stream ends with how many tokens were read and written."""

    def choices(self) -> list[Completion]:
        """The answers that are asked for, one by one."""
        return [replace(self, choice=choice) for choice in range(self.n)]

    def prompt_event(self, stream: int) -> Event:
        return Event("prompt", "token", target=stream, text=self.prompt, source=SOURCE)

    def sampling_event(self, own: Event) -> Event:
        """How to draw this one's tokens, on the stream of `own`, where that draws its own as in `own`."""
        temperature, top_p, top_k, stream = own.args
        seed = own.target if self.seed is None else self.seed
        return Event(
            "sampling", "token", target=(seed + self.choice) & abi.NONE_U32, source=SOURCE,
            args=(
                temperature if self.temperature is None else float_bits(self.temperature),
                top_p if self.top_p is None else float_bits(self.top_p),
                top_k if self.top_k is None else self.top_k,
                stream,
            ),
        )  # fmt: skip


@dataclass(frozen=True)
class Range:
    kind: type
    low: float
    high: float


NUMBERS = {
    "max_tokens": Range(int, 1, 2**31 - 1),
    "temperature": Range(float, 0, 100),
    "top_p": Range(float, 1e-9, 1),
    "top_k": Range(int, 0, 2**31 - 1),
    "seed": Range(int, 0, abi.NONE_U32),
    "n": Range(int, 1, MOST_CHOICES),
}
FIXED: dict[str, Any] = {
    "best_of": 1, "echo": False, "logprobs": None, "suffix": None, "presence_penalty": 0,
    "frequency_penalty": 0, "logit_bias": {},
}  # fmt: skip
"""What is not supported: only the value that asks for nothing is taken."""
OTHERS = ("model", "prompt", "stop", "stream", "stream_options", "user")


def parse(body: bytes, model: str) -> Completion:
    """What a body asks the model of this name for. Raises ApiError."""
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        raise ApiError(400, "the body is not JSON") from None
    if not isinstance(fields, dict):
        raise ApiError(400, "the body is not a JSON object")
    fields = {name: value for name, value in fields.items() if value is not None}
    _check_names(fields)
    check_model(fields.get("model"), model)
    stream = _truth(fields, "stream")
    return Completion(
        prompt=_prompt(fields.get("prompt", "")),
        stop=_stop(fields.get("stop", [])),
        stream=stream,
        include_usage=_include_usage(fields.get("stream_options", {}), stream),
        **{name: _number(name, fields[name], limits) for name, limits in NUMBERS.items() if name in fields},
    )


def check_model(name: Any, model: str) -> None:
    """Raises ApiError unless `name` is that of the `model` that runs here."""
    if not isinstance(name, str):
        raise ApiError(400, f"name the model; here it is {model!r}", param="model")
    if name != model:
        raise ApiError(404, f"there is no model {name!r}; here it is {model!r}", "model_not_found", "model")


def _check_names(fields: dict[str, Any]) -> None:
    for name, value in fields.items():
        if name in FIXED and (value != FIXED[name] or isinstance(value, bool) != isinstance(FIXED[name], bool)):
            raise ApiError(400, f"{name} is not supported; leave it out", "unsupported_parameter", name)
        if name not in FIXED and name not in NUMBERS and name not in OTHERS:
            # JSON can name what UTF-8 cannot say.
            said = name.encode(errors="backslashreplace").decode()
            raise ApiError(400, f"there is no parameter {said!r}", "unknown_parameter", said)


def _number(name: str, value: Any, limits: Range) -> Any:
    right = isinstance(value, int | limits.kind) and not isinstance(value, bool)
    if not right or not limits.low <= value <= limits.high:
        kind = "a whole number" if limits.kind is int else "a number"
        raise ApiError(400, f"{name} must be {kind} from {limits.low:g} to {limits.high:,}", "invalid_value", name)
    return limits.kind(value)


def _truth(fields: dict[str, Any], name: str) -> bool:
    value = fields.get(name, False)
    if not isinstance(value, bool):
        raise ApiError(400, f"{name} must be true or false", "invalid_type", name)
    return value


def _prompt(value: Any) -> str:
    if isinstance(value, list) and len(value) == 1:
        (value,) = value
    if not isinstance(value, str):
        raise ApiError(400, "the prompt must be one text; lists of texts or of tokens are not supported",
                       "unsupported_value", "prompt")
    return value


def _stop(value: Any) -> tuple[str, ...]:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or len(texts) > MOST_STOPS or not all(isinstance(t, str) and t for t in texts):
        raise ApiError(400, f"stop must be a text or up to {MOST_STOPS} of them, none empty", "invalid_value", "stop")
    return tuple(texts)


def _include_usage(options: Any, stream: bool) -> bool:
    if not isinstance(options, dict) or options.keys() - {"include_usage"}:
        raise ApiError(400, "of stream_options only include_usage is supported", "unsupported_value", "stream_options")
    if options and not stream:
        raise ApiError(400, "stream_options is for stream: true", "invalid_value", "stream_options")
    return _truth(options, "include_usage")
