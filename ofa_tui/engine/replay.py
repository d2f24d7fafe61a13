"""A recording as an engine: the panes show it as if it ran, forward and back."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ofa_tui import locations
from ofa_tui.engine.protocol import Event, Snapshot
from ofa_tui.errors import OfaError
from ofa_tui.record.playback import Playback, Position
from ofa_tui.record.reader import RecordedRun, ordinal

SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""What `faster` and `slower` go through."""
GRID_S = 0.5
"""Steps of `passage`, exact in binary: a model that samples as often always does so at the same times."""
REFRESH_S = 0.25
"""Between two looks at a record that grows."""
BEHIND_S = 2.0
"""A replay that follows starts so far behind what is written, which comes about once a second."""
REBUILT_S = 122.0
"""How far back `passage` goes in small steps after a jump: more than any pane keeps of its curves."""


class ReplayEngine:
    """Implements Engine from a record folder. Nothing is computed, so it can be moved in time but not steered.

    With `follow` the record is read on as it grows, and the end is the end only when the record says that the run is
    over. What is shown at a time depends on that time alone: `poll` and `passage` give the same after any jumps.
    """

    def __init__(
        self, folder: Path, speed: float = 1.0, clock: Callable[[], float] = time.monotonic, *, follow: bool = False
    ):
        """Raises OfaError where the folder holds no run, or the speed is not above 0."""
        if not 0 < speed <= 1000:
            raise OfaError(f"--speed {speed:g} cannot be; choose a number above 0, at most 1000")
        self._run = run = RecordedRun(folder)
        self.follow = follow
        self.playback = Playback(run)
        name = "the recording that ships with ofa-tui" if folder == locations.recording() else folder
        note = f"following {name}" if follow else f"replay of {name}"
        self._damage = ""
        damage = self.new_damage() if not follow or run.ended else ""
        notes = (f"{note}; {damage}" if damage else note,)
        self.info = dataclasses.replace(run.info, backend="replay", notes=notes)
        date = str(run.run.get("started", ""))[:10]
        every = f"every {ordinal(run.frames_every)} frame" if run.frames_every > 1 else ""
        self.origin = tuple(part for part in (date, every) if part)
        """What a screen says of the record: the day it was made, and which frames it has where it has not all."""
        self.speed = speed
        self.paused = False
        self._clock = clock
        self._read_at: float | None = None  # the clock when _at was true; None before the start and in a pause
        self._stopped = False
        self._shown: Position | None = None
        self._at = self.begin  # seconds of the run's clock
        self._looked_at = self._grown_at = clock()
        if follow:
            self._at = self.end if run.ended else max(self.begin, self.end - BEHIND_S)

    # --- where it is ----------------------------------------------------------------------------------------

    @property
    def begin(self) -> float:
        return self.playback.begin

    @property
    def end(self) -> float:
        """Seconds of the run's clock; that of a run that is followed grows."""
        return self.playback.settled if self.growing else self.playback.end

    @property
    def seconds(self) -> float:
        """Seconds of the run's clock shown now."""
        return self._at

    @property
    def growing(self) -> bool:
        """Whether the run may still go on."""
        return self.follow and not self._run.ended and not self._run.killed

    @property
    def waited_s(self) -> float:
        """How long nothing new has come from a run that is followed."""
        return self._clock() - self._grown_at if self.growing else 0.0

    @property
    def at_end(self) -> bool:
        """Whether all is shown; of a run that goes on, all that is there so far."""
        return self._at >= self.end

    def new_damage(self) -> str:
        """A sentence on what is damaged, where more has been found since the last call; else empty."""
        before, self._damage = self._damage, "" if self.growing else self._run.damage
        return self._damage if self._damage != before else ""

    # --- moving in time -------------------------------------------------------------------------------------

    def start(self) -> None:
        self._read_at = self._clock()

    def pause(self, paused: bool) -> None:
        self._advance()
        self.paused = paused
        self._read_at = None if paused else self._clock()

    def set_speed(self, speed: float) -> None:
        """From now on."""
        self._advance()
        self.speed = speed

    def faster(self) -> None:
        self.set_speed(next((speed for speed in SPEEDS if speed > self.speed), max(self.speed, SPEEDS[-1])))

    def slower(self) -> None:
        self.set_speed(next((speed for speed in reversed(SPEEDS) if speed < self.speed), min(self.speed, SPEEDS[0])))

    def seek(self, seconds: float) -> None:
        """Goes to a time of the run's clock, or as far as the record reaches. The next poll begins a new history."""
        self._advance()
        self._at = min(max(seconds, self.begin), self.end)
        self._shown = None

    def seek_by(self, seconds: float) -> None:
        self._advance()
        self.seek(self._at + seconds)

    def seek_step(self, step: int) -> None:
        """Goes to where `step` steps were done. Raises OfaError for a step that the record has not."""
        self.seek(self.playback.seconds_of_step(step))

    def _advance(self) -> None:
        clock = self._clock()
        if self.growing and clock - self._looked_at >= REFRESH_S:
            self._looked_at = clock
            before = self.end
            self.playback.refresh()
            if self.end > before or not self.growing:
                self._grown_at = clock
        if self._read_at is not None:
            self._at = min(self.end, self._at + (clock - self._read_at) * self.speed)
            self._read_at = clock

    # --- what is shown --------------------------------------------------------------------------------------

    def poll(self) -> Snapshot:
        """What is new since the poll before. The first, and the first after a jump, holds all that came before it."""
        self._advance()
        return self._show(self._at)

    def passage(self) -> list[Snapshot]:
        """`poll` in steps: a snapshot at each multiple of GRID_S on the way, then now.

        Whoever keeps curves gets the same ones at every speed; after a jump, those that led to where it went. Only
        the last has a picture.
        """
        self._advance()
        now = self._at
        steps = [self._show(seconds, all_frames=False, picture=False) for seconds in self._grid(now)]
        return [*steps, self._show(now, all_frames=not steps)]

    def _grid(self, now: float) -> list[float]:
        """Multiples of GRID_S after what was shown last and before `now`; after a jump also the one before the
        beginning, unless that is far away."""
        since = max(self.begin, now - REBUILT_S) if self._shown is None else self._shown.seconds
        first = math.floor(since / GRID_S) + (since > self.begin or self._shown is not None)
        return [k * GRID_S for k in range(first, math.ceil(now / GRID_S))]

    def _show(self, seconds: float, *, all_frames: bool = True, picture: bool = True) -> Snapshot:
        over = not self.growing and seconds >= self.end
        now = self.playback.position(seconds, everything=over)
        before, self._shown = self._shown, now
        return self.playback.snapshot(
            before, now, self._state(over), over=over, all_frames=all_frames, picture=picture,
            message=self._message() if over else "",
        )

    def _state(self, over: bool) -> str:
        if self._stopped:
            return "stopped"
        if over:
            return self._run.exit_reason if self._run.exit_reason in ("finished", "aborted") else "broken off"
        return "paused" if self._read_at is None else "running"

    def _message(self) -> str:
        if self._run.complete:
            return ""
        return self._run.message if self._run.exit_reason == "aborted" else self._run.ending

    # --- the rest of Engine ---------------------------------------------------------------------------------

    def hold_games(self, held: bool) -> None:
        """A recording's games go with it: this does nothing."""

    def step_tics(self, count: int) -> None:
        """While paused, goes to the `count`-th frame from here."""
        if self._read_at is None:
            self._at = self.playback.seconds_of_frame(self._at, count)

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
