"""What a recorded run showed at any time of its clock: a function of that time, whatever was asked before."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import Any

import numpy as np

from ofa_tui import abi
from ofa_tui.engine.protocol import AppliedEvent, Frame, ServedToken, Snapshot, StepLoss, SweepLoss
from ofa_tui.errors import OfaError
from ofa_tui.record.reader import RecordedRun
from ofa_tui.record.sm_history import SmHistory

SHOWN_STORIES = 32
"""More of each stream than any pane keeps."""


@dataclass(frozen=True)
class Position:
    """How much of the record was there at a time: counts of entries."""

    seconds: float
    until: float
    """`seconds`, or infinity at the end of a record."""
    losses: int
    served: int
    sweeps: int
    applied: int
    steps: int
    tokens: int


class _Times:
    """When each entry of a growing list came, made to rise."""

    def __init__(self, entries: Sequence[StepLoss] | Sequence[ServedToken]) -> None:
        self.entries = entries
        self.times: list[float] = []

    def refresh(self) -> None:
        newest = self.times[-1] if self.times else -math.inf
        times = (entry.seconds for entry in self.entries[len(self.times) :])
        self.times += islice(accumulate(times, max, initial=newest), 1, None)

    def count(self, seconds: float) -> int:
        return bisect_right(self.times, seconds)


class Playback:
    """A RecordedRun by time. `refresh` takes in what was written since."""

    def __init__(self, run: RecordedRun) -> None:
        self.run = run
        self._losses, self._served = _Times(run.losses), _Times(run.served)
        self._story_starts: list[list[int]] = [[] for _ in range(abi.MAX_STREAMS)]
        """By stream."""
        self._read_tokens = 0
        self._take_in()
        self.begin = self._first_seconds()
        self._sms = SmHistory(run.samples, run.info.n_sms, self.begin)

    def refresh(self) -> None:
        self.run.refresh()
        self._take_in()

    def _take_in(self) -> None:
        self._losses.refresh()
        self._served.refresh()
        served = self.run.served
        for index, token in enumerate(islice(served, self._read_tokens, None), self._read_tokens):
            if token.first:
                self._story_starts[token.stream].append(index)
        self._read_tokens = len(served)
        self._sample_times = [sample["seconds"] for sample in self.run.samples]
        changes = self.run.role_changes
        self._role_times, self._role_rows = [seconds for seconds, _ in changes], [row for _, row in changes]
        self._sweep_times = self.run.sweep_seconds

    def _first_seconds(self) -> float:
        """A recording may begin long after the launch."""
        firsts = [*self._losses.times[:1], *self._served.times[:1], *self._sample_times[:1]]
        if self.run.frame_file.blocks:
            firsts.append(self.run.frame_file.first_seconds(0))
        return min((seconds for seconds in firsts if 0 <= seconds < math.inf), default=0.0)

    @property
    def end(self) -> float:
        """Seconds of the last thing that any line of figures tells of."""
        return max(self.begin, self.run.seconds)

    @property
    def settled(self) -> float:
        """Up to here nothing is to be written any more."""
        return self.end if self.run.ended else max([self.begin, *self._sample_times[-1:]])

    # --- positions ------------------------------------------------------------------------------------------

    def position(self, seconds: float, everything: bool = False) -> Position:
        """`everything`: also what has a later time, as a run that was killed may have written."""
        until = math.inf if everything else seconds
        losses, served = self._losses.count(until), self._served.count(until)
        sample = self._sample(seconds)
        steps = self._count_from(self.run.losses, losses, "step", int(sample["step"]) if sample else 0)
        tokens = self._count_from(self.run.served, served, "index", int(sample["served"]) if sample else 0)
        return Position(
            seconds, until, losses, served, self._sweep_count(until, steps), self._applied_count(until, steps, tokens),
            steps, tokens,
        )

    @staticmethod
    def _count_from(entries: Sequence[Any], count: int, name: str, otherwise: int) -> int:
        """The run's own count: that of the newest entry, or the first before it came."""
        if count:
            return int(getattr(entries[count - 1], name)) + 1
        return int(getattr(entries[0], name)) if entries else otherwise

    def _sweep_count(self, until: float, steps: int) -> int:
        sweeps = self.run.sweeps
        if until == math.inf:
            return len(sweeps)
        if self._sweep_times:
            return min(len(sweeps), bisect_right(self._sweep_times, until))
        # Older records do not tell when: a sweep comes with its step.
        return sum(sweep.step <= steps for sweep in sweeps)

    def _applied_count(self, until: float, steps: int, tokens: int) -> int:
        """Events are in the order they came in; each comes when its clock has reached it."""
        events = self.run.events
        if not events or until == math.inf:
            return len(events)
        frame = self.newest_frames(until, picture=False).get(0)
        clocks = {"step": steps, "token": tokens, "tic": frame.number if frame else 0}
        return next((n for n, applied in enumerate(events) if applied.at > clocks[applied.event.clock]), len(events))

    def seconds_of_step(self, step: int) -> float:
        """When `step` steps were done. Raises OfaError for a step that is not in the record."""
        losses = self.run.losses
        if not losses:
            raise OfaError(f"{self.run.folder} has no training steps: no line of its loss.csv can be read")
        first, last = losses[0].step, losses[-1].step + 1
        if not first <= step <= last:
            raise OfaError(f"step {step:,} is not in this record; it has {first:,} to {last:,}")
        index = bisect_left(losses, step, key=lambda entry: entry.step + 1)
        return self.begin if step == first else self._losses.times[min(index, len(losses) - 1)]

    def seconds_of_frame(self, after: float, count: int) -> float:
        """When the `count`-th frame of game 0 after that time came; of the last, or `after`, where there are fewer."""
        file = self.run.frame_file
        for block in range(max(0, file.block_at(after)), file.blocks):
            for facts in file.facts(block):
                if count > 0 and facts.game == 0 and facts.seconds > after:
                    after, count = facts.seconds, count - 1
        return after

    # --- what was there -------------------------------------------------------------------------------------

    def snapshot(
        self, after: Position | None, now: Position, state: str, *, over: bool = False, all_frames: bool = True,
        picture: bool = True, message: str = "",
    ) -> Snapshot:
        """What came between two positions, and what is current at the second.

        Without `after`: all since the beginning, but of served text the stories that a UI still shows, and of frames
        the newest. `over`: the run has ended, nothing works any more. Without `all_frames` the newest frame of each
        game is there, new or not; without `picture` frames are black.
        """
        run = self.run
        since = after or Position(-math.inf, -math.inf, 0, 0, 0, 0, 0, 0)
        sample = self._sample(now.seconds) or {}
        rates = {} if over else sample
        roles = self._roles(now.seconds, sample)
        if after is None or not all_frames:
            newest = self.newest_frames(now.until, picture)
            frames = [newest[0]] if 0 in newest else []
            others = [frame for game, frame in newest.items() if game]
        else:
            frames, others = self._frames_between(since.until, now.until)
        losses: list[StepLoss] = run.losses[since.losses : now.losses]
        served = run.served[since.served : now.served] if after else self._shown_tokens(now.served)
        sweeps: list[SweepLoss] = run.sweeps[since.sweeps : now.sweeps]
        applied: list[AppliedEvent] = run.events[since.applied : now.applied]
        return Snapshot(
            seconds=now.seconds,
            state=state,
            steps_done=now.steps,
            version=max(now.steps, int(sample.get("version", 0))),
            tokens_served=now.tokens,
            losses=losses,
            sweeps=sweeps,
            served=served,
            frames=frames,
            others=others,
            roles=roles,
            sms=self._sms.at(now.seconds, roles, over),
            applied=applied,
            train_tokens_per_s=rates.get("tokens_per_s", 0.0),
            step_ms=rates.get("step_ms", 0.0),
            served_per_s=rates.get("served_per_s", 0.0),
            frames_per_s=rates.get("frames_per_s", 0.0),
            device=dict(sample.get("device", {})),
            message=message,
        )

    def _sample(self, seconds: float) -> dict[str, Any] | None:
        """The newest, or the first before it came."""
        index = bisect_right(self._sample_times, seconds) - 1
        return self.run.samples[max(index, 0)] if self.run.samples else None

    def _roles(self, seconds: float, sample: dict[str, Any]) -> np.ndarray:
        """u4 [n_sms]: as kernel.log tells to the millisecond, else the sample."""
        roles = np.zeros(self.run.info.n_sms, np.uint32)
        index = bisect_right(self._role_times, seconds) - 1
        told = self._role_rows[max(index, 0)] if self._role_rows else tuple(
            abi.ROLES.index(name) for name in sample.get("roles", [])
        )
        told = told[: len(roles)]
        roles[: len(told)] = told
        return roles

    def _shown_tokens(self, served: int) -> list[ServedToken]:
        """Of so many tokens those of stories that a UI may still show: of each stream from its oldest one on."""
        oldest = []
        for starts in self._story_starts:
            begun = bisect_left(starts, served)
            oldest.append(starts[begun - SHOWN_STORIES] if begun > SHOWN_STORIES else 0)
        first = min(oldest[: self.run.info.streams])
        return [
            token for index, token in enumerate(self.run.served[first:served], first) if index >= oldest[token.stream]
        ]

    # --- frames ---------------------------------------------------------------------------------------------

    def newest_frames(self, seconds: float, picture: bool = True) -> dict[int, Frame]:
        """The newest frame of each game that had drawn one."""
        file = self.run.frame_file
        found: dict[int, Frame] = {}
        for block in range(file.block_at(seconds), -1, -1):
            facts = file.facts(block)
            for index in range(len(facts) - 1, -1, -1):
                if facts[index].game not in found and facts[index].seconds <= seconds:
                    found[facts[index].game] = file.frame(block, index, picture).frame
            if len(found) >= max(1, self.run.info.games):
                break
        return found

    def _frames_between(self, after: float, until: float) -> tuple[list[Frame], list[Frame]]:
        """Frames of game 0, the newest abi.FRAME_SLOTS of them, and the newest of each other game."""
        file = self.run.frame_file
        places: dict[int, list[tuple[int, int]]] = {}
        for block in range(max(0, file.block_at(after)), file.blocks):
            if file.first_seconds(block) > until:
                break
            for index, facts in enumerate(file.facts(block)):
                if after < facts.seconds <= until:
                    places.setdefault(facts.game, []).append((block, index))
        first = [file.frame(*place).frame for place in places.pop(0, [])[-abi.FRAME_SLOTS :]]
        return first, [file.frame(*rows[-1]).frame for rows in places.values()]
