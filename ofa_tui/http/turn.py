"""One request while its story is being told: which served tokens are its own, and when it is done."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ofa_tui.engine.protocol import AppliedEvent, RunInfo, ServedToken
from ofa_tui.http.completion import Completion
from ofa_tui.http.errors import ApiError
from ofa_tui.http.stop import StopScanner


@dataclass(frozen=True)
class Piece:
    """Text that is certain to belong to the answer."""

    text: str
    version: int
    """The weights that computed its last token."""


@dataclass(frozen=True)
class Finished:
    reason: str
    """OpenAI's words: "stop" at a stop text or the story's end, "length" at a limit."""
    prompt_tokens: int
    completion_tokens: int
    version: int


ENDED_BY = {
    "prompt": "another prompt ended this story", "end_story": "this story was ended by who steers the run",
}  # fmt: skip
"""Events that end the story of their stream, and what its request is told of those that are not its own."""

Item = Piece | Finished | ApiError
Deliver = Callable[[Item], None]
"""Takes an answer's items in their order; Finished or an ApiError is the last. Called from the thread that polls."""


class Turn:
    """A story is its stream's tokens from the index at which its prompt took effect to its own end, or to an event that
    ends it."""

    def __init__(self, completion: Completion, deliver: Deliver, info: RunInfo, stream: int) -> None:
        self._completion = completion
        self._deliver = deliver
        self._info = info
        self._scanner = StopScanner(completion.stop)
        self._next: int | None = None
        """Index of the next token of any stream, once the prompt has taken effect."""
        self._cut: int | None = None
        """Index at which somebody else ended the story."""
        self._cut_by = ""
        self._read = self._written = 0
        self._version = 0
        self.stream = stream
        self.prompt = completion.prompt_event(stream)
        self.over = False
        self.story_goes_on = True
        """Whether what is served is still this story, as far as is known."""

    def note(self, entry: AppliedEvent) -> None:
        """Takes events of all streams in the order of their clock."""
        if entry.event is self.prompt:
            self._next = entry.at
            return
        ends = entry.event.action in ENDED_BY and entry.event.target == self.stream
        if ends and self._next is not None and self._cut is None:
            self._cut, self._cut_by = entry.at, entry.event.action
            self.story_goes_on = False

    def feed(self, tokens: Iterable[ServedToken]) -> None:
        """Takes the tokens of all streams, once every event that took effect before them has been noted."""
        texts: list[str] = []
        end = self._first_end(tokens, texts)
        if end is not None and not self._scanner.stopped:
            texts.append(self._scanner.finish())
        if text := "".join(texts):
            self._deliver(Piece(text, self._version))
        if end is not None:
            self.end(end)

    def end(self, item: Finished | ApiError) -> None:
        self.over = True
        self._deliver(item)

    def _first_end(self, tokens: Iterable[ServedToken], texts: list[str]) -> Finished | ApiError | None:
        """Takes tokens up to the one that ends the answer, if any; its text is appended to `texts`."""
        for token in tokens:
            if self._next is None or token.index < self._next:
                continue
            if self._cut is not None and token.index >= self._cut:
                return ApiError(503, ENDED_BY[self._cut_by], "interrupted")
            if token.index > self._next:
                return ApiError(503, "tokens went by unread, because the machine was too busy", "interrupted")
            self._next += 1
            if token.stream == self.stream and (end := self._take(token, texts)):
                return end
        return None

    def _take(self, token: ServedToken, texts: list[str]) -> Finished | None:
        self._version = token.version
        ended = token.token == self._info.end_of_text and not token.from_prompt
        full = token.position == self._info.context - 1
        self.story_goes_on = self.story_goes_on and not (ended or full)
        if token.from_prompt:
            self._read += 1
            return None
        self._written += 1
        texts.append(self._scanner.push(token.text))
        if ended or self._scanner.stopped:
            return self._finished("stop")
        return self._finished("length") if full or self._written == self._completion.max_tokens else None

    def _finished(self, reason: str) -> Finished:
        return Finished(reason, self._read, self._written, self._version)
