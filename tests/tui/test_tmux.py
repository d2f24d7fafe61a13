"""What tmux's counts say of the link behind it."""

from __future__ import annotations

import os
import shutil
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from slow_link import spawn, wait_exit, watch

from ofa_tui.tui.tmux import PATIENCE_S, LinkEstimate, parse_counts


def follow(capacity: float, offered: float, seconds: int, estimate: LinkEstimate) -> list[float | None]:
    """The rate known each second while frames ask for `offered` bytes a second, or for what is known if that is less.

    tmux keeps 96 kB back, throws them away when there are more, and has counted them as written then.
    """
    written = discarded = 0
    queue = 0.0
    known = []
    for second in range(seconds):
        estimate.counted(float(second), {"/dev/pts/1": (written, discarded)})
        known.append(estimate.rate)
        sent = min(offered, 0.85 * (estimate.rate or offered))
        queue = max(0.0, queue + sent - capacity)
        written += round(sent)
        if queue > 96e3:
            discarded += round(queue)
            queue = 0.0
    return known


def test_a_fast_link_is_never_held_back() -> None:
    assert follow(10e6, 2e6, 60, LinkEstimate()) == [None] * 60


@pytest.mark.parametrize("capacity", [500e3, 250e3, 60e3])
def test_the_rate_sinks_until_nothing_is_thrown_away(capacity: float) -> None:
    known = follow(capacity, 2e6, 60, LinkEstimate())
    assert all(0.6 * capacity < (rate or 0.0) < 1.5 * capacity for rate in known[20:])


def test_a_terminal_that_was_behind_for_once_is_not_slow() -> None:
    estimate = LinkEstimate()
    behind = [
        second for second in range(40) if estimate.counted(float(second), {"a": (second * 10**6, second // 12 * 10**5)})
    ]
    assert behind == [12, 24, 36] and estimate.rate is None


def test_more_is_tried_seldom_and_given_up_at_once() -> None:
    estimate = LinkEstimate()
    known = follow(500e3, 2e6, 1800, estimate)
    tries = [a < b for a, b in pairwise(known[20:]) if a and b]
    assert 2 <= sum(tries) < 1800 / PATIENCE_S[0] / 4
    assert all(250e3 < (rate or 0.0) < 800e3 for rate in known[20:])
    faster = LinkEstimate()
    follow(500e3, 2e6, 15, faster)
    later = follow(5e6, 2e6, 300, faster)
    assert later[-1] and later[-1] > 1.5e6, "a link that became faster is used"


@given(st.text())
def test_any_answer_is_read(text: str) -> None:
    assert all(isinstance(n, int) for pair in parse_counts(text).values() for n in pair)


def test_lines_of_clients() -> None:
    assert parse_counts("/dev/pts/3\t1042\t0\n\nno sessions\nx\t1\t-2\n/dev/pts/4\t7\t9\n") == {
        "/dev/pts/3": (1042, 0), "/dev/pts/4": (7, 9),
    }  # fmt: skip


@pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is not installed")
def test_tmux_counts_what_it_writes(tmp_path: Path) -> None:
    script = "import os; from ofa_tui.tui import tmux; print(len(tmux.read_counts(os.environ['TMUX_PANE'])), 'seen')"
    environment = {k: v for k, v in os.environ.items() if k not in ("TMUX", "TMUX_PANE")}
    environment |= {"TERM": "xterm-256color", "TMUX_TMPDIR": str(tmp_path), "LC_ALL": "C.UTF-8",
                    "PYTHONPATH": str(Path(__file__).resolve().parents[2])}  # fmt: skip
    pid, terminal = spawn(["tmux", "-f", "/dev/null", "new-session", sys.executable, "-c", script], 80, 24, environment)
    report = watch(pid, terminal, seconds=0.0, settle=20.0, until=b"1 seen")
    wait_exit(pid, terminal)
    assert b"1 seen" in report.output
