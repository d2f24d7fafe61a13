"""Flow control against a simulated link, in simulated time."""

from __future__ import annotations

import heapq

import pytest

from ofa_tui.tui.flow import OPEN_LOOP_FPS, TIMEOUT_S, FrameFlow


class Link:
    """Delivers `rate` bytes a second, `delay_s` late each way; answers every frame (or none)."""

    def __init__(self, rate: float, delay_s: float, answers: bool = True) -> None:
        self.rate, self.delay_s, self.answers = rate, delay_s, answers
        self.free_at = 0.0
        self.replies: list[float] = []

    def send(self, now: float, size: int) -> float:
        """Time the last byte arrives."""
        self.free_at = max(self.free_at, now) + size / self.rate
        if self.answers:
            heapq.heappush(self.replies, self.free_at + 2 * self.delay_s)
        return self.free_at + self.delay_s


def play(link: Link, frame_bytes: int, seconds: float = 20.0) -> tuple[float, list[float], FrameFlow]:
    """(frames a second over the last half, seconds from key to echo for keys pressed then, the flow)."""
    flow = FrameFlow()
    link.send(0.0, 4)
    flow.sent(0.0)
    sent, echoes, tick = 0, [], 0
    while tick / 700 < seconds:
        now = tick / 700
        while link.replies and link.replies[0] <= now:
            heapq.heappop(link.replies)
            flow.acknowledged(now)
        if not tick % 20 and flow.ready(now):
            link.send(now, frame_bytes)
            flow.sent(now)
            sent += now >= seconds / 2
        if now > seconds / 2 and not tick % 411:  # a key, echoed as a small write of its own
            echoes.append(link.delay_s + max(link.free_at - now, 0) + link.delay_s)
        tick += 1
    return sent / (seconds / 2), echoes, flow


def test_a_fast_link_gets_every_frame() -> None:
    fps, echoes, flow = play(Link(50e6, 0.001), 60_000)
    assert fps == pytest.approx(35, abs=0.5)
    assert max(echoes) < 0.02
    assert flow.rate(20.0) == pytest.approx(35, abs=1.5)


def test_a_long_fast_link_gets_every_frame() -> None:
    fps, _, flow = play(Link(50e6, 0.045), 60_000)
    assert fps > 33 and flow.window >= 3


def test_a_slow_link_keeps_keys_quick() -> None:
    """500 kB/s, 60 ms round trip, frames of 34 kB: the link is filled and an echo stays under 150 ms."""
    fps, echoes, _ = play(Link(500e3, 0.030), 34_000)
    assert fps > 12
    assert sum(echoes) / len(echoes) < 0.15
    assert max(echoes) < 0.22


def test_very_large_frames_give_up_rate_not_keys() -> None:
    fps, echoes, flow = play(Link(500e3, 0.030), 75_000)
    assert flow.window == 1
    assert 4 < fps < 8 and max(echoes) < 0.22


def test_a_terminal_that_never_answers_gets_an_open_loop() -> None:
    fps, _, flow = play(Link(50e6, 0.001, answers=False), 60_000)
    assert flow.open_loop
    assert fps == pytest.approx(OPEN_LOOP_FPS, abs=3.5)


def test_a_late_report_closes_the_loop_again() -> None:
    flow = FrameFlow()
    flow.sent(0.0)
    flow.sent(0.1)
    assert not flow.ready(1.0) and flow.ready(TIMEOUT_S + 0.1)
    assert flow.open_loop
    flow.acknowledged(3.0)
    assert not flow.open_loop and flow.in_flight == 0
    flow.acknowledged(3.0)
    flow.sent(3.1)
    assert flow.in_flight == 1
    flow.acknowledged(3.2)
    assert flow.in_flight == 0


def test_reports_nobody_asked_for_do_no_harm() -> None:
    flow = FrameFlow()
    flow.acknowledged(1.0)
    assert flow.ready(1.0) and flow.in_flight == 0
