"""An engine whose tokens, polls and boundaries a test decides, so that events and snapshots meet in every order."""

from __future__ import annotations

import numpy as np

from ofa_tui import abi
from ofa_tui.engine.protocol import AppliedEvent, Event, RunInfo, ServedToken, Snapshot
from ofa_tui.errors import OfaError

END_OF_TEXT = 256
CONTEXT = 16


class ScriptedEngine:
    """One text stream as the kernel tells it: prompts and sampling take effect between two tokens, in their order.

    A prompt of "x" cannot be. Every sampled token is the letter that its story's number stands for.
    """

    info = RunInfo("host", "scripted", 2, "tiny", 1, 10, 1, CONTEXT, 0, 1, end_of_text=END_OF_TEXT)

    def __init__(self, sampling: Event) -> None:
        self.posted: list[Event] = []
        self.tokens: list[ServedToken] = []
        self.drawn_as: list[tuple[int, tuple[int, ...]]] = []
        """The sampling in force at each token."""
        self._sampling = (sampling.target, sampling.args)
        self._applied: list[AppliedEvent] = []
        self._taken = self._read = self._served = 0
        self._story = self._position = 0
        self._prompt = ""

    def post(self, event: Event) -> None:
        if event.text == "x":
            raise OfaError("this prompt cannot be")
        self.posted.append(event)

    def boundary(self) -> None:
        """What was posted takes effect."""
        for event in self.posted[self._taken :]:
            self._applied.append(AppliedEvent(event, len(self.tokens)))
            if event.action == "prompt":
                self._begin(event.text)
            else:
                self._sampling = (event.target, event.args)
        self._taken = len(self.posted)

    def token(self, ends: bool) -> None:
        """The next token; one that is sampled may end its story."""
        self.boundary()
        prompted = bool(self._prompt)
        letter = self._prompt[0] if prompted else chr(97 + self._story % 26)
        self._prompt = self._prompt[1:]
        ends = ends and not prompted
        self.tokens.append(ServedToken(
            len(self.tokens), END_OF_TEXT if ends else ord(letter), "" if ends else letter, 0, self._story,
            self._position, prompted, self._position == 0, 0.0,
        ))  # fmt: skip
        self.drawn_as.append(self._sampling)
        self._position += 1
        if ends or self._position == CONTEXT:
            self._begin("")

    def _begin(self, prompt: str) -> None:
        self._story += self._position > 0
        self._position, self._prompt = 0, prompt

    def poll(self, between: int = 0) -> Snapshot:
        """`between` tokens are served after the events were looked at and before the tokens are."""
        applied = self._applied[self._read :]
        self._read = len(self._applied)
        for _ in range(between):
            self.token(False)
        served = self.tokens[self._served :]
        self._served = len(self.tokens)
        return Snapshot(0.0, "running", 0, 0, len(self.tokens), served=served, applied=applied,
                        roles=np.array([abi.TRAIN, abi.SERVE]))
