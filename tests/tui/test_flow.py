"""Flow control against a simulated link, in simulated time."""

from __future__ import annotations

import heapq
from collections.abc import Callable

import pytest

from ofa_tui.tui.flow import OPEN_LOOP_FPS, QUEUE_S, TIMEOUT_S, FrameFlow


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


def play(
    link: Link, frame_bytes: int, seconds: float = 20.0, known_rate: float | None = None, yields: bool = True
) -> tuple[float, list[float], FrameFlow]:
    """(frames a second over the last half, seconds from key to echo for keys pressed then, the flow).

    A frame is half as large with a tolerance of 10 more, unless it never `yields`.
    """
    flow = FrameFlow()
    flow.known_rate = known_rate
    sent, echoes, waits = 0, [], False
    for tick in range(int(seconds * 700)):
        now = tick / 700
        due = not tick % 20
        while link.replies and link.replies[0] <= now:
            heapq.heappop(link.replies)
            flow.acknowledged(now)
            due |= waits
        if due:
            waits = not flow.ready(now)
        if due and not waits:
            if flow.wants_probe():
                link.send(now, 4)
                flow.sent(now)
            size = round(frame_bytes * 2 ** (-flow.tolerance / 10)) if yields else frame_bytes
            link.send(now, size)
            flow.sent(now, size)
            sent += now >= seconds / 2
        if now > seconds / 2 and not tick % 411:  # a key, echoed as a small write of its own
            echoes.append(link.delay_s + max(link.free_at - now, 0) + link.delay_s)
    return sent / (seconds / 2), echoes, flow


def test_a_fast_link_gets_every_frame_exactly() -> None:
    fps, echoes, flow = play(Link(50e6, 0.001), 60_000)
    assert fps == pytest.approx(35, abs=0.5)
    assert max(echoes) < 0.02
    assert flow.rate(20.0) == pytest.approx(35, abs=1.5)
    assert flow.tolerance == 0 and flow.link_rate == pytest.approx(50e6, rel=0.3)


def test_a_long_fast_link_gets_every_frame_exactly() -> None:
    fps, _, flow = play(Link(50e6, 0.045), 60_000)
    assert fps > 33 and flow.in_flight >= 3 and flow.tolerance == 0


@pytest.mark.parametrize(("rate", "delay_s", "least_fps"), [(500e3, 0.03, 15), (250e3, 0.04, 15), (60e3, 0.1, 2.5)])
def test_a_slow_link_keeps_keys_quick_and_the_picture_moving(rate: float, delay_s: float, least_fps: float) -> None:
    fps, echoes, flow = play(Link(rate, delay_s), 55_000)
    assert fps > least_fps
    assert flow.tolerance > 0 and flow.link_rate == pytest.approx(rate, rel=0.1)
    assert max(echoes) < 2 * delay_s + (QUEUE_S + 0.01 if fps > 10 else 0.2)


def test_frames_that_cannot_be_smaller_go_one_at_a_time() -> None:
    fps, echoes, _ = play(Link(500e3, 0.030), 75_000, yields=False)
    assert 4 < fps < 8 and max(echoes) < 0.22


def test_a_known_rate_counts_where_somebody_between_answers_at_once() -> None:
    link = Link(500e3, 0.030)
    answered = Link(50e6, 0.0)
    link.replies = answered.replies  # of tmux, which reads everything at once

    def send(now: float, size: int, slow: Callable[[float, int], float] = link.send) -> float:
        answered.send(now, size)
        return slow(now, size)

    link.answers, link.send = False, send  # type: ignore[method-assign]
    fps, echoes, flow = play(link, 55_000, known_rate=500e3)
    assert fps > 15 and max(echoes) < 0.06 + 0.06 and flow.tolerance > 0


def test_nothing_is_sent_for_a_moment_when_somebody_was_behind() -> None:
    flow = FrameFlow()
    assert flow.ready(1.0)
    flow.learn_rate(500e3, True)
    assert not flow.ready(1.0) and not flow.ready(1.2) and flow.ready(1.4)
    flow.learn_rate(500e3, False)
    assert flow.ready(1.5)


def test_frames_of_unknown_size_fill_the_link_but_teach_nothing() -> None:
    _, _, flow = play(Link(500e3, 0.030), 55_000)
    while flow.in_flight:
        flow.acknowledged(20.1)
    rate = flow.link_rate
    for frame in range(9):
        if flow.ready(20.2):
            flow.sent(20.2 + frame / 1000, None)
    assert 1 <= flow.in_flight <= 4
    flow.acknowledged(20.9)
    assert flow.link_rate == rate


def test_a_picture_that_stands_still_becomes_exact() -> None:
    _, _, flow = play(Link(500e3, 0.030), 55_000)
    assert flow.tolerance
    for frame in range(30):
        flow.sent(30.0 + frame, 300)
        flow.acknowledged(30.1 + frame)
    assert flow.tolerance == 0


def test_a_terminal_that_never_answers_gets_an_open_loop() -> None:
    fps, _, flow = play(Link(50e6, 0.001, answers=False), 60_000)
    assert flow.open_loop and flow.tolerance == 0
    assert fps == pytest.approx(OPEN_LOOP_FPS, abs=3.5)


def test_a_late_report_closes_the_loop_again() -> None:
    flow = FrameFlow()
    flow.sent(0.0, 5000)
    flow.sent(0.1, 5000)
    assert not flow.ready(1.0) and flow.ready(TIMEOUT_S + 0.1)
    assert flow.open_loop
    flow.acknowledged(3.0)
    assert not flow.open_loop and flow.in_flight == 0
    flow.acknowledged(3.0)
    flow.sent(3.1, 5000)
    assert flow.in_flight == 1
    flow.acknowledged(3.2)
    assert flow.in_flight == 0


def test_reports_nobody_asked_for_do_no_harm() -> None:
    flow = FrameFlow()
    flow.acknowledged(1.0)
    assert flow.ready(1.0) and flow.in_flight == 0
