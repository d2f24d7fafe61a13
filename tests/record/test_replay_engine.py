"""A replay shows what was recorded, at its own speed, and can be held."""

import json
import shutil

import numpy as np
import pytest
from fake_engine import FrozenClock, frame_of, record_fake

from ofa_tui import abi
from ofa_tui.engine.protocol import Event
from ofa_tui.engine.replay import ReplayEngine
from ofa_tui.errors import OfaError
from ofa_tui.record.reader import RecordedRun
from ofa_tui.tui.model import RunModel
from ofa_tui.tui.session import closing_line


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    record_fake(folder, events=[Event("set_role", "step", 12, 2, (2,))])
    return folder


def _play(engine, clock, seconds, polls_per_s=50):
    snapshots = []
    for _ in range(round(seconds * polls_per_s)):
        clock.sleep(1 / polls_per_s)
        snapshots.append(engine.poll())
    return snapshots


@pytest.mark.parametrize("speed", [1.0, 0.5, 3.0])
def test_everything_is_shown_once_and_in_time(folder, speed):
    clock = FrozenClock()
    engine = ReplayEngine(folder, speed, clock)
    engine.start()
    run = RecordedRun(folder)
    snapshots = [engine.poll(), *_play(engine, clock, 4.2 / speed)]
    assert engine.info.backend == "replay" and engine.info.steps == 40
    for name, recorded in (("losses", run.losses), ("served", run.served), ("sweeps", run.sweeps),
                           ("applied", run.events)):
        assert [entry for snapshot in snapshots for entry in getattr(snapshot, name)] == recorded
    shown = [frame.number for snapshot in snapshots for frame in snapshot.frames]
    assert shown == [timed.frame.number for timed in run.frames()]
    assert all(entry.seconds <= snapshot.seconds < entry.seconds + 0.1
               for snapshot in snapshots[:-20] for entry in snapshot.losses)
    assert snapshots[-1].state == "finished" and snapshots[5].state == "running"
    middle, last = snapshots[len(snapshots) // 2], snapshots[-1]
    assert middle.train_tokens_per_s > 0 and middle.step_ms > 0
    assert last.train_tokens_per_s == last.step_ms == last.served_per_s == last.frames_per_s == 0.0
    assert engine.info.device == run.info.device
    assert middle.roles.tolist() == [abi.TRAIN, abi.SERVE, abi.DOOM]
    before = snapshots[len(snapshots) // 2 - 20].sms
    spent = (middle.sms["op_ns"].sum(axis=1) - before["op_ns"].sum(axis=1)) / (20 / 50 * speed * 1e9)
    assert np.allclose(spent, [0.75, 0.25, 0.1], atol=0.02)


def test_a_recording_that_began_late_starts_where_it_began(tmp_path):
    """As the key `r` makes one: nothing is awaited, and steps and tokens are numbered as in the run."""
    record_fake(tmp_path / "late", late_s=2.5)
    clock = FrozenClock()
    engine = ReplayEngine(tmp_path / "late", clock=clock)
    engine.start()
    first = engine.poll()
    assert first.seconds == pytest.approx(2.5, abs=0.15) and 24 <= first.steps_done <= 26
    assert 12 <= first.tokens_served <= 13 and first.state == "running"
    snapshots = [first, *_play(engine, clock, 2.0)]
    assert any(snapshot.frames for snapshot in snapshots[:10])
    for snapshot in snapshots:
        assert all(entry.step < snapshot.steps_done <= snapshot.version for entry in snapshot.losses)
        assert all(token.index < snapshot.tokens_served for token in snapshot.served)
    assert snapshots[-1].state == "finished" and snapshots[-1].steps_done == 40
    assert snapshots[-1].sms["wait_ns"].max() <= 1.6e9
    assert RecordedRun(tmp_path / "late").summary["tokens_per_s"] == pytest.approx(10_240, rel=0.01)


def test_pause_holds_everything_and_single_tics_go_on(folder):
    clock = FrozenClock()
    engine = ReplayEngine(folder, clock=clock)
    engine.start()
    _play(engine, clock, 1.0)
    engine.pause(True)
    held = engine.poll()
    later = _play(engine, clock, 2.0)
    assert later[-1].seconds == held.seconds and later[-1].state == "paused"
    assert not any(snapshot.losses or snapshot.served or snapshot.frames for snapshot in later)
    engine.step_tics(2)
    frames = engine.poll().frames
    assert len(frames) == 2 and np.array_equal(frames[0].pixels, frame_of(frames[0].number).pixels)
    there = engine.poll()
    assert not there.frames and there.seconds == pytest.approx(held.seconds + 2 / 35, abs=1 / 35)
    engine.pause(False)
    after = _play(engine, clock, 0.1)[-1]
    assert after.seconds == pytest.approx(there.seconds + 0.1) and after.state == "running"


def test_what_a_replay_cannot_do(folder, tmp_path):
    engine = ReplayEngine(folder)
    with pytest.raises(OfaError, match="cannot be steered"):
        engine.post(Event("prompt", "token", text="Hello"))
    with pytest.raises(OfaError, match="no weights"):
        engine.weights()
    with pytest.raises(OfaError, match="speed"):
        ReplayEngine(folder, 0.0)
    with pytest.raises(OfaError, match="no recorded run"):
        ReplayEngine(tmp_path)
    engine.stop()
    assert engine.poll().state == "stopped"


@pytest.mark.parametrize(
    ("summary", "state", "said"),
    [
        (None, "broken off", "the run was killed, or it still goes on"),
        ({"exit_reason": "SIGTERM"}, "broken off", "where SIGTERM ended the run"),
        ({"exit_reason": "recording stopped"}, "broken off", "recording was stopped and the run went on"),
        ({"exit_reason": "failed", "message": "no room"}, "broken off", "where the run failed: no room"),
        ({"exit_reason": "aborted", "message": "SM 1 waited"}, "aborted", "SM 1 waited"),
        ({"exit_reason": "finished"}, "finished", ""),
    ],
)
def test_the_end_says_how_the_run_ended(folder, tmp_path, summary, state, said):
    shutil.copytree(folder, tmp_path / "run")
    (tmp_path / "run" / "summary.json").unlink()
    if summary:
        (tmp_path / "run" / "summary.json").write_text(json.dumps(summary))
    clock = FrozenClock()
    engine = ReplayEngine(tmp_path / "run", clock=clock)
    engine.start()
    assert engine.poll().message == ""
    last = _play(engine, clock, 5.0)[-1]
    assert last.state == state and said in last.message and bool(said) == bool(last.message)
    model = RunModel(engine.info)
    model.absorb(last)
    assert model.finished and (said in closing_line(model, [])) == (state == "broken off" or not said)
