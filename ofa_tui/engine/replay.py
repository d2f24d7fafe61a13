"""A recording as an engine: the panes show it as if it ran."""

from __future__ import annotations

import dataclasses
import math
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ofa_tui import abi
from ofa_tui.engine.protocol import Event, Frame, Snapshot
from ofa_tui.errors import OfaError
from ofa_tui.program.ops import OPCODES, OPS
from ofa_tui.record.frame_log import TimedFrame
from ofa_tui.record.reader import RecordedRun

OP_ROLES = {
    op.name: "doom" if op.name == "doom_tic" else "serve" if op.file in ("decode", "sample") else "train" for op in OPS
}
"""The role that runs each task type."""


class _Cursor:
    """How far a list that is sorted by seconds has been given out."""

    def __init__(self, entries: Sequence[Any]):
        self.entries = entries
        self._times = [entry.seconds for entry in entries]
        self.position = 0

    @property
    def first_seconds(self) -> float | None:
        return self._times[0] if self._times else None

    @property
    def newest(self) -> Any:
        """The last entry given out, None before the first."""
        return self.entries[self.position - 1] if self.position else None

    def until(self, seconds: float) -> list[Any]:
        end = max(self.position, bisect_right(self._times, seconds))
        new = self.entries[self.position : end]
        self.position = end
        return list(new)


class ReplayEngine:
    """Implements Engine from a record folder. Nothing is computed, so it can be paused but not steered."""

    def __init__(self, folder: Path, speed: float = 1.0, clock: Callable[[], float] = time.monotonic):
        """Raises OfaError where the folder holds no run, or the speed is not above 0."""
        if not 0 < speed <= 1000:
            raise OfaError(f"--speed {speed:g} cannot be; choose a number above 0, at most 1000")
        run = RecordedRun(folder)
        self.info = dataclasses.replace(run.info, backend="replay", notes=(f"replay of {folder}",))
        self.speed = speed
        self._run = run
        self._clock = clock
        self._read_at: float | None = None  # the clock when _at was true; None before the start and in a pause
        self._stopped = False
        self._tics = 0
        self._losses = _Cursor(run.losses)
        self._served = _Cursor(run.served)
        self._sample_times = [float(sample["seconds"]) for sample in run.samples]
        self._sweeps = list(run.sweeps)
        self._events = list(run.events)
        self._frames: Iterator[TimedFrame] = run.frames()
        self._next_frame = next(self._frames, None)
        self._others: dict[int, Frame] = {}
        """Frames of games but the first that were not given out yet."""
        self._frames_shown = 0
        # A recording may begin long after the launch.
        firsts = [self._losses.first_seconds, self._served.first_seconds, *self._sample_times[:1]]
        firsts += [self._next_frame.seconds] if self._next_frame else []
        # Seconds of the run's clock shown so far.
        self._at = min((seconds for seconds in firsts if seconds is not None and 0 <= seconds < math.inf), default=0.0)
        self._end = max(self._at, run.seconds)
        self._sms = np.zeros(run.info.n_sms, abi.SM_STATUS)
        self._sms_at = self._at

    def start(self) -> None:
        self._read_at = self._clock()

    def pause(self, paused: bool) -> None:
        self._advance()
        self._read_at = None if paused else self._clock()

    def hold_games(self, held: bool) -> None:
        """A recording's games go with it: this does nothing."""

    def step_tics(self, count: int) -> None:
        """While paused, shows the next `count` frames."""
        if self._read_at is None:
            self._tics += count

    def stop(self, timeout_s: float = 10.0) -> None:
        self._advance()
        self._read_at = None
        self._stopped = True

    def post(self, event: Event) -> None:
        """Raises OfaError: a recording goes the way it went."""
        raise OfaError("a replay cannot be steered; start a run to change what happens")

    def weights(self) -> dict[str, np.ndarray]:
        """Raises OfaError: weights are not recorded."""
        raise OfaError("a recording has no weights; only a run that was just stopped has")

    def poll(self) -> Snapshot:
        self._advance()
        now = self._at
        # A run that was killed may have written a little more than its last line of figures tells.
        until = math.inf if now >= self._end else now
        losses = self._losses.until(until)
        served = self._served.until(until)
        sample = self._sample_at(now)
        steps, tokens = self._steps(sample), self._tokens(sample)
        rates = sample if self._moving else {}
        self._follow_sms(sample, now)
        frames = self._frames_until(until)
        others, self._others = list(self._others.values()), {}
        return Snapshot(
            seconds=now,
            state=self._state(),
            steps_done=steps,
            version=max(steps, int(sample.get("version", 0))),
            tokens_served=tokens,
            losses=losses,
            sweeps=self._sweeps_until(steps),
            served=served,
            frames=frames,
            others=others,
            roles=self._sms["role"].copy(),
            sms=self._sms.copy(),
            applied=self._applied_until(steps, tokens),
            train_tokens_per_s=float(rates.get("tokens_per_s", 0.0)),
            step_ms=float(rates.get("step_ms", 0.0)),
            served_per_s=float(rates.get("served_per_s", 0.0)),
            frames_per_s=float(rates.get("frames_per_s", 0.0)),
            device={str(name): float(value) for name, value in sample.get("device", {}).items()},
            message=self._message(now),
        )

    def _advance(self) -> None:
        if self._read_at is not None:
            clock = self._clock()
            self._at = min(self._end, self._at + (clock - self._read_at) * self.speed)
            self._read_at = clock

    @property
    def _moving(self) -> bool:
        """Whether time passes in the recording; where it does not, rates are 0 as in a live run."""
        return self._read_at is not None and self._at < self._end

    def _state(self) -> str:
        if self._stopped:
            return "stopped"
        if self._at >= self._end:
            return self._run.exit_reason if self._run.exit_reason in ("finished", "aborted") else "broken off"
        return "running" if self._read_at is not None else "paused"

    def _message(self, now: float) -> str:
        if now < self._end or self._run.complete:
            return ""
        return self._run.message if self._run.exit_reason == "aborted" else self._run.ending

    def _sample_at(self, seconds: float) -> dict[str, Any]:
        index = bisect_right(self._sample_times, seconds) - 1
        return self._run.samples[max(index, 0)] if self._run.samples else {}

    def _steps(self, sample: dict[str, Any]) -> int:
        """Steps done: as the newest loss that was given out says, or the first before it was."""
        if newest := self._losses.newest:
            return int(newest.step) + 1
        return int(self._losses.entries[0].step if self._losses.entries else sample.get("step", 0))

    def _tokens(self, sample: dict[str, Any]) -> int:
        """Tokens served, likewise."""
        if newest := self._served.newest:
            return int(newest.index) + 1
        return int(self._served.entries[0].index if self._served.entries else sample.get("served", 0))

    def _sweeps_until(self, steps: int) -> list[Any]:
        """Sweeps have no time of their own: they come with their step, the last one with the end."""
        count = sum(1 for sweep in self._sweeps if sweep.step <= steps)
        new, self._sweeps = self._sweeps[:count], self._sweeps[count:]
        return new

    def _applied_until(self, steps: int, tokens: int) -> list[Any]:
        """Events come when their clock has reached them."""
        clocks = {"step": steps, "token": tokens, "tic": self._frames_shown}
        due = [applied for applied in self._events if applied.at <= clocks[applied.event.clock]]
        self._events = [applied for applied in self._events if applied.at > clocks[applied.event.clock]]
        return due

    def _frames_until(self, seconds: float) -> list[Frame]:
        """Frames of game 0; those of the others are put aside."""
        frames: list[Frame] = []
        while self._next_frame and (self._next_frame.seconds <= seconds or self._tics > 0):
            frame = self._next_frame.frame
            if frame.game:
                self._others[frame.game] = frame
            else:
                self._tics -= self._next_frame.seconds > seconds
                frames.append(frame)
                self._frames_shown = frame.number
            self._next_frame = next(self._frames, None)
        self._tics = 0
        return frames[-abi.FRAME_SLOTS :]

    def _follow_sms(self, sample: dict[str, Any], now: float) -> None:
        """Adds to each SM's figures what the sample says of them: the share of time it worked, and on what."""
        roles = [abi.ROLES.index(role) for role in sample.get("roles", []) if role in abi.ROLES]
        busy = [float(share) for share in sample.get("busy", [])]
        elapsed_ns = (now - self._sms_at) * 1e9
        self._sms_at = now
        for sm, role in enumerate(roles[: len(self._sms)]):
            status = self._sms[sm : sm + 1]
            share = busy[sm] if sm < len(busy) else 0.0
            status["role"] = role
            status["heartbeat_ns"] = int(now * 1e9)
            status["wait_ns"] += np.uint64(max(0.0, elapsed_ns * (1 - share)))
            mix = _op_mix(sample, abi.ROLES[role])
            for name, part in mix.items():
                status["op_ns"][0, OPCODES[name]] += np.uint64(max(0.0, elapsed_ns * share * part))
            working = share > 0 and bool(mix) and self._moving
            status["phase"] = 2 if working else 0
            status["opcode"] = OPCODES[max(mix, key=lambda name: mix[name])] if working else abi.NONE_U32


def _op_mix(sample: dict[str, Any], role: str) -> dict[str, float]:
    """How a role's working time was divided among its task types; the shares add up to 1."""
    seconds = {
        name: float(spent)
        for name, spent in sample.get("op_seconds", {}).items()
        if OP_ROLES.get(name) == role and float(spent) > 0
    }
    total = sum(seconds.values())
    return {name: spent / total for name, spent in seconds.items()}
