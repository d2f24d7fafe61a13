"""Reads what the kernel publishes: what is new since the last poll, and rates."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable

import numpy as np

from ofa_tui import abi
from ofa_tui.data.textstream import TextStream
from ofa_tui.engine.config import RunConfig
from ofa_tui.engine.memory import RunMemory
from ofa_tui.engine.protocol import Commands, Frame, ServedToken, StepLoss, SweepLoss, TimelinePart
from ofa_tui.presets import TrainConfig

RATE_SECONDS = 1.5
LoadAcquire = Callable[[int], int]
"""Reads the u8 at an address so that everything written before it is visible."""


def learning_rate(step: int, train: TrainConfig) -> float:
    """The optimiser's rate at `step`, as cuda/ops/adamw.h computes it: linear warm-up times half a cosine."""
    warm_up = min(1.0, (step + 1) / train.warmup_steps) if train.warmup_steps else 1.0
    low = train.final_lr_fraction
    return train.learning_rate * warm_up * (low + (1 - low) / 2 * (1 + math.cos(math.pi * step / train.steps)))


class TelemetryReader:
    """Cursor over one run's telemetry. Not safe for two threads at once."""

    def __init__(self, memory: RunMemory, config: RunConfig, load_acquire: LoadAcquire,
                 load_after: LoadAcquire | None = None) -> None:
        """Where `memory` is a copy, `load_acquire` reads counters as they stood before the copy was made, and
        `load_after` as they stood after it."""
        self._memory = memory
        self._config = config
        self._load = load_acquire
        self._load_after = load_after or load_acquire
        self._telemetry = memory["telemetry"][0]
        self._texts = [TextStream(config.tokenizer) for _ in range(config.streams)]
        for text, stream in zip(self._texts, config.serving.streams if config.serving else (), strict=False):
            for token in stream.tokens:
                text.push(int(token))  # who wrote them has shown them; half a character may be waiting
        self._steps, self._tokens = config.first_step, config.first_token
        self._frames = [config.first_tic] * config.games
        self._commands = [config.first_tic] * config.games
        self._sweeps = memory.schedule.sweeps_before
        self._timeline = [0] * config.n_sms
        self._rates: deque[tuple[float, int, int]] = deque()

    def counter(self, field: str, index: int = 0) -> int:
        """A counter of the telemetry, with acquire order: what it covers can be read."""
        return self._load(self._address(field, index))

    def _counter_after(self, field: str, index: int = 0) -> int:
        """The same counter, not earlier than what was read since: nothing behind it was being written then."""
        return self._load_after(self._address(field, index))

    def _address(self, field: str, index: int) -> int:
        assert abi.TELEMETRY.fields is not None
        offset = abi.TELEMETRY.fields[field][1] + 8 * index
        return self._memory.arena.address + self._memory.arena.offset("telemetry") + offset

    @property
    def started_ns(self) -> int:
        return int(self._telemetry["started_ns"])

    def _seconds(self, time_ns: int) -> float:
        return max(0.0, (time_ns - self.started_ns) / 1e9)

    # --- what is new ----------------------------------------------------------------------------------------------

    def losses(self) -> list[StepLoss]:
        done = self.counter("steps_done")
        first, self._steps = self._steps, done
        losses, ends = self._memory["losses"], self._memory["step_end_ns"]
        return [
            StepLoss(step, float(losses[row]), learning_rate(step, self._config.train), int(ends[row]) / 1e9)
            for step, row in ((step, step - self._config.first_step) for step in range(first, done))
        ]

    def sweeps(self) -> list[SweepLoss]:
        """Sweeps whose last batch is done; one that a stop cut short is left out."""
        schedule = self._memory.schedule
        done = self.counter("sweep_batches_done")
        new: list[SweepLoss] = []
        while self._sweeps <= schedule.intermediate_sweeps:
            last = self._sweeps == schedule.intermediate_sweeps
            first = self._sweeps * schedule.sweep_batches
            count = schedule.final_batches if last else schedule.sweep_batches
            if count == 0 or done < first + count:
                break
            row = first - schedule.first_batch
            batches = slice(row, row + count)
            tokens = int(self._memory["sweep_counts"][batches].sum())
            loss = float(self._memory["sweep_sums"][batches].sum()) / max(tokens, 1)
            step = schedule.steps if last else (self._sweeps + 1) * schedule.sweep_every
            new.append(SweepLoss(step, loss, tokens, last))
            self._sweeps += 1
        return new

    def served(self) -> list[ServedToken]:
        """New tokens, without those that the kernel may have begun to overwrite while they were copied."""
        total = self.counter("tokens_served")
        first = max(self._tokens, total - abi.SERVED_RING + 1)
        self._tokens = total
        rows = self._memory["served"][np.arange(first, total) % abi.SERVED_RING]
        lost = max(0, self._counter_after("tokens_served") - abi.SERVED_RING + 1 - first)
        return [self._served_token(first + n, rows[n]) for n in range(lost, len(rows))]

    def _served_token(self, index: int, row: np.void) -> ServedToken:
        flags, token = int(row["flags"]), int(row["token"])
        first = bool(flags & abi.SERVED_FIRST)
        stream = int(row["stream"])
        text = self._texts[stream]
        if first:
            text.reset()
        return ServedToken(
            index, token, text.push(token), int(row["version"]), int(row["story"]), int(row["position"]),
            bool(flags & abi.SERVED_PROMPT), first, self._seconds(int(row["time_ns"])), stream,
        )

    def frames(self) -> list[Frame]:
        """New frames of game 0, oldest first."""
        return self._frames_of(0, abi.FRAME_SLOTS) if self._config.games else []

    def other_frames(self) -> list[Frame]:
        """The newest frame of each other game that has drawn one."""
        return [frame for game in range(1, self._config.games) for frame in self._frames_of(game, 1)]

    def _frames_of(self, game: int, most: int) -> list[Frame]:
        """At most `most` new frames, without any that the kernel may have begun to draw over while it was copied."""
        assert self._config.doom is not None
        total = self.counter("frames", game)
        first = max(self._frames[game], total - min(most, abi.FRAME_SLOTS - 2))
        self._frames[game] = total
        pictures, figures = self._memory["frames"][game], self._memory["doom_status"][game]
        copied = []
        for number in range(first + 1, total + 1):
            slot = (number - 1) % abi.FRAME_SLOTS
            copied.append((number, pictures[slot].copy(), figures[slot : slot + 1].copy()[0]))
        intact_after = self._counter_after("frames", game) - abi.FRAME_SLOTS + 1
        palettes = self._config.doom.palettes
        return [
            Frame(number, pixels, palettes[min(int(status["palette"]), len(palettes) - 1)],
                  int(status["palette"]), status, game)
            for number, pixels, status in copied
            if number > intact_after
        ]

    def commands(self) -> tuple[Commands, ...]:
        """New commands of each game."""
        return tuple(self._commands_of(game) for game in range(self._config.games))

    def _commands_of(self, game: int) -> Commands:
        """Without those that the kernel may have begun to overwrite while they were copied."""
        total = self.counter("frames", game)
        first = max(self._commands[game], total - abi.COMMAND_RING + 1)
        rows = self._memory["doom_commands"][game][np.arange(first, total) % abi.COMMAND_RING]
        self._commands[game] = total
        lost = max(0, self._counter_after("frames", game) - abi.COMMAND_RING + 1 - first)
        return Commands(first + lost, rows[lost:])

    def timeline(self) -> TimelinePart:
        """New entries of each SM, without those that the kernel may have begun to overwrite while they were copied."""
        size = self._config.timeline_entries
        if not size:
            return TimelinePart()
        parts = [self._timeline_of(sm, size) for sm in range(self._config.n_sms)]
        sms = np.repeat(np.arange(len(parts), dtype=np.uint16), [len(rows) for rows, _ in parts])
        return TimelinePart(sms, np.concatenate([rows for rows, _ in parts]), np.array([lost for _, lost in parts]))

    def _timeline_of(self, sm: int, size: int) -> tuple[np.ndarray, int]:
        """abi.TIMELINE_ENTRY [n], and how many before them are lost."""
        seen, total = self._timeline[sm], self.counter("timeline", sm)
        self._timeline[sm] = total
        first = max(seen, total - size)
        rows = self._memory["timeline"][sm][np.arange(first, total) % size]
        rows["begin_ns"] -= np.minimum(rows["begin_ns"], np.uint64(self.started_ns))
        # The SM has written a batch more at most than it has published.
        intact = max(first, min(total, self._counter_after("timeline", sm) + abi.TIMELINE_BATCH - size))
        return rows[intact - first :], intact - seen

    # --- current --------------------------------------------------------------------------------------------------

    def sms(self) -> np.ndarray:
        return self._telemetry["sms"][: self._config.n_sms].copy()

    def step_ms(self, seconds: float) -> float:
        """Mean time of the steps that ended lately, of the last one at least; 0 before the first."""
        done = self._steps - self._config.first_step
        if done == 0:
            return 0.0
        ends = self._memory["step_end_ns"]
        first = done - 1
        while first > 0 and int(ends[first - 1]) / 1e9 > seconds - RATE_SECONDS:
            first -= 1
        before = int(ends[first - 1]) if first else 0
        return (int(ends[done - 1]) - before) / (done - first) / 1e6

    def serve_and_frame_rates(self, seconds: float) -> tuple[float, float]:
        """Tokens, and frames of game 0, per second over the last RATE_SECONDS."""
        rates = self._rates
        shown = self._frames[0] if self._frames else 0
        rates.append((seconds, self._tokens, shown))
        while len(rates) > 2 and rates[1][0] < seconds - RATE_SECONDS:
            rates.popleft()
        then, tokens, frames = rates[0]
        span = seconds - then
        return ((self._tokens - tokens) / span, (shown - frames) / span) if span > 0 else (0.0, 0.0)
