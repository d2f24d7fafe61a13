"""What the kernel says it ran and when: every task once, in order, and nothing computed depends on it."""

from __future__ import annotations

import numpy as np
import pytest

from ofa_tui import abi
from ofa_tui.engine.protocol import Snapshot
from ofa_tui.engine.resident import wait_until_true
from ofa_tui.errors import OfaError
from tests.engine.engine_runs import TARGETS, config, engine, wait_for

ENTRIES = 1 << 15


def timeline(snapshots: list[Snapshot]) -> tuple[np.ndarray, np.ndarray]:
    """SMs and entries of a whole run, each SM's in order."""
    parts = [snapshot.timeline for snapshot in snapshots]
    return np.concatenate([part.sms for part in parts]), np.concatenate([part.entries for part in parts])


def run(kernel, target: str, entries: int, **changes) -> tuple[list[Snapshot], object]:
    running = engine(kernel, config(timeline_entries=entries, **changes), target)
    running.start()
    try:
        snapshots = wait_for(running, lambda s: s.state == "finished" and s.tokens_served > 20)
    finally:
        running.stop()
    return [*snapshots, running.poll()], running


@pytest.mark.parametrize("target", TARGETS)
def test_the_timeline_changes_no_bit(kernel, target):
    split = (2, 1, 0)
    without, _ = run(kernel, target, 0, sms=split)
    kept, _ = run(kernel, target, ENTRIES, sms=split)

    for name, count in (("losses", 6), ("sweeps", 3)):
        one, other = ([loss.loss for s in run_of for loss in getattr(s, name)] for run_of in (kept, without))
        assert one == other and len(one) == count
    assert not len(timeline(without)[0]) and len(timeline(kept)[0])


@pytest.mark.parametrize("target", TARGETS)
def test_every_task_is_there_once_and_in_order(kernel, target):
    snapshots, running = run(kernel, target, ENTRIES, sms=(2, 1, 0), tokens_per_s=200)
    sms, entries = timeline(snapshots)
    assert not sum(int(s.timeline.lost.sum()) for s in snapshots)
    last = snapshots[-1].sms
    assert np.bincount(sms, minlength=3).tolist() == last["tasks_done"].tolist()
    programs, tasks = np.divmod(entries["task"], abi.TIMELINE_TASKS)
    programs //= abi.TIMELINE_TOGETHER
    for number, name in enumerate(abi.PROGRAMS[:2]):
        members = programs == number
        ran = np.stack([entries["iteration"][members], tasks[members]])
        iterations = 6 if name == "train" else len(np.unique(ran[0]))
        assert ran.shape[1] == iterations * len(running._programs.programs[name].tasks)
        assert len(np.unique(ran, axis=1).T) == ran.shape[1]
    for sm in range(3):
        own = entries[sms == sm]
        begin = own["begin_ns"].astype(np.int64)
        end = begin + own["body_ns"]
        assert (begin[1:] - own["waited_ns"][1:] >= end[:-1]).all(), "two tasks of one SM at a time"
        assert (own["held_ns"] <= own["body_ns"]).all()
        waits = own["waited_ns"].sum() + own["held_ns"].sum()
        assert waits <= last["wait_ns"][sm]
        assert abs(int((own["body_ns"] - own["held_ns"]).sum()) - int(last["op_ns"][sm].sum())) <= len(own)


def test_a_reader_that_comes_late_is_told_what_it_missed(kernel):
    running = engine(kernel, config(timeline_entries=64, steps=20))
    running.start()
    assert wait_until_true(lambda: running.look()["finished"], 60)
    running.stop()
    last = running.poll()
    part, done = last.timeline, int(last.sms["tasks_done"][0])
    assert len(part.entries) == 64 - abi.TIMELINE_BATCH
    assert int(part.lost[0]) == done - len(part.entries) > 0


def test_a_size_that_cannot_be_is_refused():
    with pytest.raises(OfaError, match="a timeline of 100 tasks an SM cannot be"):
        config(timeline_entries=100).check()
