"""Flow control of the moving picture: how much may be on its way to the terminal, and how exact the picture can be.

Each frame is followed by a request for a cursor position report (DSR 6, ECMA-48 8.3.35); the report says that the
terminal has read everything before it. From sizes and times of the reports the link's rate is estimated. Time is passed
in, so the rules can be tested without waiting.
"""

from __future__ import annotations

from collections import deque
from math import log2
from typing import NamedTuple

TIMEOUT_S = 2.0
OPEN_LOOP_FPS = 15.0
RATE_WINDOW_S = 2.0
QUEUE_S = 0.05
"""Frames under way may keep the link busy this long beyond its delay: it is what the echo of a key has to wait for."""
FRAME_S = 0.04
"""A frame may take the link this long; a larger one is made smaller by TOLERANCES."""
MOST_FRAMES = 10
TOLERANCES = (3.0, 40.0)
"""Least and largest, in steps of a channel of 255; what is smaller than the least is none."""
STEADY_LOAD = (0.75, 1.1)
"""Shares of FRAME_S that are close enough."""
TOLERANCE_STEP = 7.0
"""For a frame twice as large as it should be: pictures of the game are half as large with a tolerance of 10 more."""
MOST_BACK = 1.5
"""The tolerance sinks no faster, per frame."""
WARM_UP, PROBE_EVERY = 8, 35
"""Frames in front of which the bare round trip is measured: so many of the first, then one in so many."""
PACED_SHARE = 0.85
"""Of a link whose rate somebody else knows, the share that frames use: nothing then waits for long."""
HOLD_S = 0.3
LATE_S = 0.03
"""A frame that came so much later than it could have lets the next one come sooner."""
SMALLEST_SAMPLE = 1000
"""Bytes; fewer say nothing of the link's rate."""


class _Flight(NamedTuple):
    sent: float
    size: int
    """Bytes; 0 for a probe."""
    measured: bool
    """Whether the size is known, not only assumed."""


class FrameFlow:
    """Decides when the next frame may be sent and how far its colours may be off.

    Closed loop: bytes under way fill the link's delay and QUEUE_S more; one frame always may go. Open loop, after a
    report failed to come within TIMEOUT_S (a terminal that never answers): OPEN_LOOP_FPS frames a second; a late report
    closes the loop again. `known_rate` overrules what reports say, where something between answers them at once.
    """

    def __init__(self) -> None:
        self._in_flight: deque[_Flight] = deque()
        self._arrived: deque[float] = deque(maxlen=80)
        self._sent: deque[float] = deque(maxlen=80)
        self._frames = self._lost = 0
        self._round_trip_s = TIMEOUT_S
        self._last_report = 0.0
        self._busy_s = self._busy_bytes = 0.0
        self._free_at = 0.0
        self._size = 0
        self._tolerance = 0.0
        self._holds = False
        self.open_loop = False
        self.known_rate: float | None = None
        """Bytes a second."""

    @property
    def in_flight(self) -> int:
        """Frames under way."""
        return sum(flight.size > 0 for flight in self._in_flight)

    @property
    def unanswered(self) -> int:
        """Requests whose reports are still to come."""
        return len(self._in_flight)

    @property
    def link_rate(self) -> float | None:
        """Bytes a second that the link takes; None before anything is known."""
        if self.known_rate is not None:
            return self.known_rate
        return self._busy_bytes / max(self._busy_s, 1e-6) if self._busy_bytes else None

    @property
    def tolerance(self) -> float:
        """How far a colour may be off, in steps of a channel of 255; 0 on a link that takes exact pictures."""
        return self._tolerance

    def learn_rate(self, rate: float | None, behind: bool) -> None:
        """Bytes a second that the link takes, from somebody who knows better than the reports; None: nobody does.

        `behind`: more than that was sent. tmux shows nothing until nothing was sent for a moment.
        """
        self.known_rate = rate
        self._holds |= behind

    def wants_probe(self) -> bool:
        """Whether to ask for a report of no frame before the next one."""
        return self._frames < WARM_UP or not self._frames % PROBE_EVERY

    def ready(self, now: float) -> bool:
        """Whether a frame may be sent at `now` (seconds, monotonic)."""
        if self._in_flight and now - self._in_flight[0].sent > TIMEOUT_S:
            self.open_loop = True
            self._lost += len(self._in_flight)
            self._in_flight.clear()
        if self._holds:
            self._free_at, self._holds = now + HOLD_S, False
        if self.known_rate is not None and now < self._free_at:
            return False
        if self.open_loop:
            return not self._sent or now - self._sent[-1] >= 1 / OPEN_LOOP_FPS - 1e-3
        frames = self.in_flight
        if not frames:
            return True
        rate = self.link_rate
        if rate is None or frames >= MOST_FRAMES:
            return False
        under_way = sum(flight.size for flight in self._in_flight)
        return under_way + self._size <= rate * (self._round_trip_s % TIMEOUT_S + QUEUE_S)

    def sent(self, now: float, size: int | None = 0) -> None:
        """A frame of `size` bytes and the request behind it were handed to the terminal; 0: a request alone.

        None: nobody knows how many; it is taken to be as large as the one before.
        """
        measured = size is not None
        if size is None:
            size = max(1, self._size)
        if size:
            self._frames += 1
            self._sent.append(now)
        if size and measured:
            self._size = size
            self._adapt(size)
        if self.known_rate is not None:
            self._free_at = max(self._free_at, now - LATE_S) + size / (self.known_rate * PACED_SHARE)
        if self.open_loop:
            self._lost += 1
        else:
            self._in_flight.append(_Flight(now, size, measured))

    def acknowledged(self, now: float) -> None:
        """A report arrived. One that belongs to a frame given up only closes the loop."""
        if self._lost:
            self._lost -= 1
            self.open_loop = False
            return
        if not self._in_flight:
            return
        flight = self._in_flight.popleft()
        round_trip = now - flight.sent
        self._round_trip_s = min(self._round_trip_s, round_trip)
        if flight.measured and flight.size >= SMALLEST_SAMPLE:
            # The link was busy with this frame since it came free of the one before, or since it was sent.
            busy = max(0.0, min(round_trip - self._round_trip_s, now - self._last_report))
            self._busy_s = 0.8 * self._busy_s + busy
            self._busy_bytes = 0.8 * self._busy_bytes + flight.size
        if flight.size:
            self._arrived.append(now)
        self._last_report = now

    def rate(self, now: float) -> float:
        """Frames a second that reached the terminal over the last RATE_WINDOW_S."""
        times = self._sent if self.open_loop else self._arrived
        return sum(now - t <= RATE_WINDOW_S for t in times) / RATE_WINDOW_S

    def _adapt(self, size: int) -> None:
        """Raises the tolerance while frames take the link longer than FRAME_S, lowers it while there is room."""
        rate = self.link_rate
        if rate is None:
            return
        load = size / (rate * FRAME_S)
        least, most = TOLERANCES
        if not STEADY_LOAD[0] <= load <= STEADY_LOAD[1]:
            # A frame without a new picture is small: one alone lowers it little.
            wanted = max(self._tolerance, least / 2) + max(TOLERANCE_STEP * log2(load), -MOST_BACK)
            self._tolerance = min(most, wanted) if wanted >= least else 0.0
