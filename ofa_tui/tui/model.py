"""What the panes show: snapshots in, accumulated state out. Knows nothing of Textual."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ofa_tui import abi
from ofa_tui.engine.protocol import AppliedEvent, Frame, RunInfo, ServedToken, Snapshot, SweepLoss
from ofa_tui.program.ops import OPS
from ofa_tui.tui.run_log import RunLog
from ofa_tui.tui.task_times import TaskTimes

HISTORY = 240
"""Samples kept of every telemetry value, for its curve."""
SAMPLE_S = 0.5
"""Time between two samples, and the window busy shares are measured over."""
STORIES = 24
"""Kept of each stream."""
STORY_PIECES = 1000
"""Pieces kept of one story: more than any pane shows."""
FRESH_S = 1.2
FRESH_PIECES = 12
"""The last pieces of a story count as new for FRESH_S."""
HELD_OUT_TILE = "val"

FAMILIES: tuple[str, ...] = tuple(dict.fromkeys(op.file for op in OPS))
"""Families of task types: the files of their bodies, in the order of the op table."""
_FAMILY_OF_OP = np.array([FAMILIES.index(op.file) for op in OPS])


@dataclass
class Story:
    """Text of one story or answer, as pieces with the times they came at."""

    number: int
    first: int = 0
    """Index of its first token."""
    prompted: bool = False
    pieces: list[tuple[str, float, bool]] = field(default_factory=list)
    """(text, seconds, from the prompt)"""
    tokens: int = 0
    written: int = 0
    """Tokens that are not the prompt's."""
    version: int = 0
    started_s: float = 0.0
    """When the first token was written: those of a prompt come several at once."""
    last_s: float = 0.0
    ended: bool = False
    """Whether it is known to be over."""
    wrapped: tuple[object, Any] | None = None
    """A pane's own: the lines it broke the story into, and for what."""

    @property
    def tokens_per_s(self) -> float:
        elapsed = self.last_s - self.started_s
        return (self.written - 1) / elapsed if self.written > 1 and elapsed > 0 else 0.0


class Series:
    """A growing array of (step, value) pairs."""

    def __init__(self) -> None:
        self._data = np.empty((2, 1024))
        self.count = 0

    def append(self, step: float, value: float) -> None:
        if self.count == self._data.shape[1]:
            self._data = np.concatenate((self._data, np.empty_like(self._data)), axis=1)
        self._data[:, self.count] = step, value
        self.count += 1

    @property
    def steps(self) -> np.ndarray:
        return self._data[0, : self.count]

    @property
    def values(self) -> np.ndarray:
        return self._data[1, : self.count]


class RunModel:
    """The run so far, from the snapshots given to `absorb` in order."""

    def __init__(self, info: RunInfo, times: TaskTimes | None = None) -> None:
        """`times` is there where the run keeps a timeline."""
        self.info = info
        self.times = times
        self.snapshot: Snapshot | None = None
        self.frames: list[Frame | None] = [None] * max(1, info.games)
        """The newest of each game."""
        self.game = 0
        """The one that is shown and steered."""
        self.log = RunLog()
        self.applied: list[AppliedEvent] = []
        """All steering so far: with it a recording that begins late still repeats the run."""
        self.losses = Series()
        self.sweeps: list[SweepLoss] = []
        self.told: tuple[deque[Story], ...] = tuple(deque(maxlen=STORIES) for _ in range(info.streams))
        """Stories of each stream, oldest first."""
        self.stream = 0
        """The one that is selected: prompts go there."""
        self.history: dict[str, deque[float]] = {}
        self.health: deque[float] = deque(maxlen=HISTORY)
        self.busy = np.zeros(info.n_sms)
        """Share of the last SAMPLE_S each SM spent inside tasks, 0..1."""
        self.busy_history: deque[np.ndarray] = deque(maxlen=HISTORY)
        self.family_share = np.zeros((info.n_sms, len(FAMILIES)))
        """Share of each SM's task time by family since the start; rows add to 1 (or 0)."""
        self._sampled_s = float("-inf")
        self._held = False
        """The run's own clock stands still: no time in which anything could be busy."""
        self._op_ns: np.ndarray | None = None

    @property
    def frame(self) -> Frame | None:
        """The newest frame of the game that is shown."""
        return self.frames[self.game]

    @property
    def stories(self) -> deque[Story]:
        """Those of the selected stream."""
        return self.told[self.stream]

    def rests(self, stream: int) -> bool:
        """Whether a stream waits for a prompt."""
        stories = self.told[stream]
        return stream >= self.info.telling and (not stories or stories[-1].ended)

    def show_game(self, game: int) -> None:
        self.game = game
        self.health.clear()

    @property
    def games_held(self) -> bool:
        return self.snapshot is not None and self.snapshot.games_held

    @property
    def state(self) -> str:
        return self.snapshot.state if self.snapshot else "starting"

    @property
    def replay(self) -> bool:
        """Whether this is a recorded run, which goes the way it went."""
        return self.info.backend == "replay"

    @property
    def finished(self) -> bool:
        return self.state in ("finished", "stopped", "aborted", "broken off")

    @property
    def roles(self) -> np.ndarray:
        return self.snapshot.roles if self.snapshot else np.zeros(0, np.uint32)

    def role_counts(self) -> list[int]:
        """SMs of each role, in the order of abi.ROLES."""
        return np.bincount(self.roles, minlength=len(abi.ROLES))[: len(abi.ROLES)].tolist()

    def figures(self) -> dict[str, float]:
        """The newest value of everything of which `history` keeps samples."""
        if self.snapshot is None:
            return {}
        values = {
            "train": self.snapshot.train_tokens_per_s,
            "step": self.snapshot.step_ms,
            "serve": self.snapshot.served_per_s,
            "doom": self.snapshot.frames_per_s,
            **self.snapshot.device,
        }
        if self.losses.count:
            values["loss"] = float(self.losses.values[-1])
        if self.sweeps:
            values[HELD_OUT_TILE] = self.sweeps[-1].loss
        if self.frame is not None:
            status = self.frame.status
            values["frame"] = (int(status["render_ns"]) + int(status["think_ns"])) / 1e6
        return values

    def absorb(self, snapshot: Snapshot) -> None:
        before, self.snapshot = self.snapshot, snapshot
        self.log.absorb(self.info, before, snapshot)
        for loss in snapshot.losses:
            self.losses.append(loss.step, loss.loss)
        self.sweeps.extend(snapshot.sweeps)
        self.applied.extend(snapshot.applied)
        for token in snapshot.served:
            if token.stream < len(self.told):
                self._add_token(token)
        for applied in snapshot.applied:
            if applied.event.action == "end_story":
                self._end_story(applied)
        if self.times:
            self.times.absorb(snapshot.timeline, snapshot.seconds)
        for frame in [*snapshot.frames[-1:], *snapshot.others]:
            if frame.game < len(self.frames):
                self.frames[frame.game] = frame
        # A replay that stands still shows what was busy then.
        still = before is not None and snapshot.state != "running" and snapshot.seconds == before.seconds
        held = still and not self.replay
        if held and not self._held:
            self._sample_values()
            self.busy = np.zeros(self.info.n_sms)
        elif snapshot.seconds - self._sampled_s >= SAMPLE_S:
            self._sample(snapshot)
        self._held = held

    def _add_token(self, token: ServedToken) -> None:
        stories = self.told[token.stream]
        story = next((s for s in reversed(stories) if s.number == token.story), None)
        if story is None:
            story = Story(token.story, token.index, started_s=token.seconds)
            stories.append(story)
        story.prompted |= token.from_prompt
        story.tokens += 1
        if not token.from_prompt:
            story.written += 1
            story.started_s = token.seconds if story.written == 1 else story.started_s
        story.version = token.version
        story.last_s = token.seconds
        ended = token.token == self.info.end_of_text and not token.from_prompt
        story.ended |= ended or token.position == self.info.context - 1
        if token.text:
            story.pieces.append((token.text, token.seconds, token.from_prompt))
            if len(story.pieces) > STORY_PIECES:
                del story.pieces[:-STORY_PIECES]
                story.wrapped = None

    def _end_story(self, applied: AppliedEvent) -> None:
        """All tokens before the event took effect are there by now, and perhaps later ones, of a story after it."""
        stream = applied.event.target
        for story in self.told[stream] if stream < len(self.told) else ():
            story.ended |= story.first < applied.at

    def _sample(self, snapshot: Snapshot) -> None:
        elapsed_ns = (snapshot.seconds - self._sampled_s) * 1e9
        self._sampled_s = snapshot.seconds
        self._sample_values()
        if snapshot.sms is not None:
            self._sample_sms(snapshot.sms["op_ns"].astype(np.float64), elapsed_ns)

    def _sample_values(self) -> None:
        for name, value in self.figures().items():
            self.history.setdefault(name, deque(maxlen=HISTORY)).append(float(value))
        if self.frame is not None:
            self.health.append(float(self.frame.status["health"]))

    def _sample_sms(self, op_ns: np.ndarray, elapsed_ns: float) -> None:
        if self._op_ns is not None and self._op_ns.shape == op_ns.shape:
            spent = (op_ns - self._op_ns).sum(axis=1)
            self.busy = np.clip(spent / elapsed_ns, 0.0, 1.0)
            self.busy_history.append(self.busy)
        self._op_ns = op_ns
        families = np.zeros((op_ns.shape[0], len(FAMILIES)))
        np.add.at(families.T, _FAMILY_OF_OP, op_ns.T)
        total = families.sum(axis=1, keepdims=True)
        self.family_share = np.divide(families, total, out=np.zeros_like(families), where=total > 0)
