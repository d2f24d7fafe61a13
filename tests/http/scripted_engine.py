"""An engine whose tokens, polls and boundaries a test decides, so that events and snapshots meet in every order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ofa_tui import abi
from ofa_tui.engine.protocol import AppliedEvent, Event, RunInfo, ServedToken, Snapshot
from ofa_tui.errors import OfaError

END_OF_TEXT = 256
CONTEXT = 16
CHUNK = 2
"""Tokens of a prompt that a pass reads."""
Drawn = tuple[int, tuple[int, ...]]
"""Seed, and temperature, top-p and top-k."""


def drawn(sampling: Event) -> Drawn:
    return sampling.target, sampling.args[:3]


@dataclass
class Stream:
    keeps_telling: bool
    sampling: Drawn
    telling: bool = False
    story: int = -1
    position: int = 0
    prompt: str = ""
    begun_with: str = ""


class ScriptedEngine:
    """Text streams as the kernel tells them: events take effect between two passes, in their order.

    A prompt of "x" cannot be. Every sampled token is the letter that its story's number stands for.
    """

    def __init__(self, sampling: Event, streams: int = 1, telling: int = 1, context: int = CONTEXT) -> None:
        self.info = RunInfo("host", "scripted", 2, "tiny", 1, 10, 1, context, 0, 1, end_of_text=END_OF_TEXT,
                            streams=streams, telling=telling)
        self.posted: list[Event] = []
        self.applied: list[AppliedEvent] = []
        self.tokens: list[ServedToken] = []
        self.drawn_as: list[Drawn] = []
        """The sampling in force at each token, of its stream."""
        self.streams = [Stream(number < telling, drawn(sampling)) for number in range(streams)]
        self._taken = self._read = self._served = self._stories = 0
        for stream in self.streams[:telling]:
            self._begin(stream, "")

    def post(self, event: Event) -> None:
        if event.text == "x":
            raise OfaError("this prompt cannot be")
        self.posted.append(event)

    def boundary(self) -> None:
        """What was posted takes effect."""
        for event in self.posted[self._taken :]:
            self.applied.append(AppliedEvent(event, len(self.tokens)))
            if event.action == "prompt":
                self._begin(self.streams[event.target], event.text)
            elif event.action == "end_story":
                self._end(self.streams[event.target])
            else:
                own = event.args[3]
                for stream in self.streams if own == abi.ALL_STREAMS else [self.streams[own]]:
                    stream.sampling = drawn(event)
        self._taken = len(self.posted)

    def serve(self, ends: Sequence[bool]) -> None:
        """A pass: a token of each stream that tells, which may end its story where it is sampled, or some of its
        prompt."""
        self.boundary()
        for number, stream in enumerate(self.streams):
            if stream.telling:
                for _ in range(min(CHUNK, max(1, len(stream.prompt)))):
                    self._token(number, stream, ends[number % len(ends)])

    def _token(self, number: int, stream: Stream, ends: bool) -> None:
        prompted = bool(stream.prompt)
        if prompted:
            letter, ends = stream.prompt[0], False
        else:
            letter, is_last = self.letter(stream)
            ends = ends or is_last
        stream.prompt = stream.prompt[1:]
        self.tokens.append(ServedToken(
            len(self.tokens), END_OF_TEXT if ends else ord(letter), "" if ends else letter, 0, stream.story,
            stream.position, prompted, stream.position == 0, 0.0, number,
        ))  # fmt: skip
        self.drawn_as.append(stream.sampling)
        stream.position += 1
        if ends or stream.position == self.info.context:
            self._end(stream)

    def letter(self, stream: Stream) -> tuple[str, bool]:
        """What is sampled, and whether it ends the story, which then has no letter there."""
        return chr(97 + stream.story % 26), False

    def _begin(self, stream: Stream, prompt: str) -> None:
        if not stream.telling or stream.position:
            stream.story, self._stories = self._stories, self._stories + 1
        stream.telling, stream.position, stream.prompt, stream.begun_with = True, 0, prompt, prompt

    def _end(self, stream: Stream) -> None:
        if stream.keeps_telling:
            self._begin(stream, "")
        else:
            stream.telling = False

    def poll(self, between: int = 0) -> Snapshot:
        """`between` passes come after the events were looked at and before the tokens are."""
        applied = self.applied[self._read :]
        self._read = len(self.applied)
        for _ in range(between):
            self.serve([False])
        served = self.tokens[self._served :]
        self._served = len(self.tokens)
        return Snapshot(0.0, "running", 0, 0, len(self.tokens), served=served, applied=applied,
                        roles=np.array([abi.TRAIN, abi.SERVE]))

    def lose(self, count: int) -> None:
        """The next poll does not get the oldest tokens that it would get."""
        self._served += count


def on_stream(sampling: Event, stream: int) -> Event:
    return replace(sampling, args=(*sampling.args[:3], stream))
