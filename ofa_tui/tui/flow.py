"""Flow control of the moving picture: how many frames may be on their way to the terminal.

Each frame is followed by a request for a cursor position report (DSR 6, ECMA-48 8.3.35); the report says that the
terminal has read everything before it. Time is passed in, so the rules can be tested without waiting.
"""

from __future__ import annotations

from collections import deque

TIMEOUT_S = 2.0
OPEN_LOOP_FPS = 15.0
RATE_WINDOW_S = 2.0
TARGET_QUEUE_S = 0.18
"""Frames under way may keep the link busy this long: it is what the echo of a key can have to wait for."""


class FrameFlow:
    """Decides when the next frame may be sent.

    Closed loop: a window of 2 unacknowledged frames, up to 4 when the round trip is long, 1 when the link needs so
    long for a frame that keys would wait. Open loop, after a report failed to come within TIMEOUT_S (a terminal
    that never answers): OPEN_LOOP_FPS frames a second; a late report closes the loop again.
    """

    def __init__(self) -> None:
        self._in_flight: deque[float] = deque()
        self._acknowledged: deque[float] = deque(maxlen=80)
        self._sent: deque[float] = deque(maxlen=80)
        self._lost = 0
        self._base_round_trip_s = TIMEOUT_S
        self.open_loop = False
        self.transmit_s = 0.0
        """Running estimate of the time the link needs for one frame."""

    @property
    def in_flight(self) -> int:
        return len(self._in_flight)

    @property
    def window(self) -> int:
        """Frames allowed under way."""
        wanted = max(2, min(4, 1 + round((self._base_round_trip_s % TIMEOUT_S) * 35)))
        return max(1, min(wanted, int(TARGET_QUEUE_S / max(self.transmit_s, 1e-3))))

    def ready(self, now: float) -> bool:
        """Whether a frame may be sent at `now` (seconds, monotonic)."""
        if self._in_flight and now - self._in_flight[0] > TIMEOUT_S:
            self.open_loop = True
            self._lost += len(self._in_flight)
            self._in_flight.clear()
        if self.open_loop:
            return not self._sent or now - self._sent[-1] >= 1 / OPEN_LOOP_FPS - 1e-3
        return len(self._in_flight) < self.window

    def sent(self, now: float) -> None:
        """A frame and the request behind it were handed to the terminal."""
        self._sent.append(now)
        if self.open_loop:
            self._lost += 1
        else:
            self._in_flight.append(now)

    def acknowledged(self, now: float) -> None:
        """A report arrived. One that belongs to a frame given up only closes the loop."""
        if self._lost:
            self._lost -= 1
            self.open_loop = False
            return
        if not self._in_flight:
            return
        sent = self._in_flight.popleft()
        self._base_round_trip_s = min(self._base_round_trip_s, now - sent)
        alone = now - sent - self._base_round_trip_s
        behind = now - self._acknowledged[-1] if self._acknowledged else alone
        self.transmit_s += (max(0.0, min(alone, behind)) - self.transmit_s) * 0.2
        self._acknowledged.append(now)

    def rate(self, now: float) -> float:
        """Frames a second that reached the terminal over the last RATE_WINDOW_S."""
        times = self._sent if self.open_loop else self._acknowledged
        return sum(now - t <= RATE_WINDOW_S for t in times) / RATE_WINDOW_S
