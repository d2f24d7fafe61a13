"""A record is shown while it is written: by a writer, byte by byte, and torn wherever a write may stop."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fake_engine import FakeEngine, FrozenClock, record_fake
from hypothesis import given, settings
from hypothesis import strategies as st
from replay_states import absorb, shown, straight

from ofa_tui.commands.replay import wait_for_begin
from ofa_tui.engine.replay import BEHIND_S, REFRESH_S, ReplayEngine
from ofa_tui.record.reader import RecordedRun
from ofa_tui.record.writer import RunWriter
from ofa_tui.tui.model import RunModel

LINES = ("loss.csv", "progress.jsonl", "sweeps.jsonl", "served.jsonl", "events.jsonl", "frames.zst", "kernel.log")
"""Files that grow, a sample after what it stands for."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    record_fake(folder)
    return folder


def test_a_run_is_followed_to_its_end(tmp_path):
    """Writer and reader take turns on one clock."""
    clock, folder = FrozenClock(), tmp_path / "run"
    engine = FakeEngine(clock=clock)
    writer = RunWriter(folder, {}, engine.info)
    engine.start()
    clock.sleep(0.25)
    writer.write(engine.poll())
    replay = ReplayEngine(folder, clock=clock, follow=True)
    replay.start()
    model, states = RunModel(replay.info), []
    shown_steps = []
    for _ in range(int(3.79 * 70)):
        clock.sleep(1 / 70)
        writer.write(engine.poll())
        absorb(model, replay)
        states.append(model.state)
        shown_steps.append((clock.now - 100.0, model.snapshot.seconds, model.losses.count))
    assert set(states) == {"running"} and replay.growing
    for now, seconds, steps in shown_steps[100:]:
        assert 0 <= now - seconds <= BEHIND_S and abs(steps - int(seconds * 10)) <= 1
    writer.finish("finished")
    clock.sleep(REFRESH_S)
    for _ in range(4):
        clock.sleep(1.0)
        absorb(model, replay)
    assert not replay.growing and model.state == "finished" and model.losses.count == 40
    reference, start = FrozenClock(), ReplayEngine(folder)
    complete = straight(ReplayEngine(folder, clock=reference), reference, start.end, 35)
    assert shown(model) == shown(complete), "what was followed is what is replayed"


def test_a_run_that_is_over_is_followed_at_its_end(whole):
    replay = ReplayEngine(whole, follow=True)
    assert not replay.growing and replay.at_end and replay.poll().state == "finished"


def test_silence_is_counted_and_the_past_stays_open(whole, tmp_path):
    shutil.copytree(whole, tmp_path / "run")
    (tmp_path / "run" / "summary.json").unlink()
    clock = FrozenClock()
    replay = ReplayEngine(tmp_path / "run", clock=clock, follow=True)
    replay.start()
    clock.sleep(30)
    assert replay.poll().state == "running" and replay.at_end and replay.waited_s == pytest.approx(30)
    replay.seek_by(-2)
    clock.sleep(0.5)
    assert replay.poll().seconds == pytest.approx(replay.end - 1.5)
    (tmp_path / "run" / "summary.json").write_text(json.dumps({"exit_reason": "SIGTERM", "seconds": replay.end}))
    clock.sleep(5)
    last = replay.poll()
    assert last.state == "broken off" and "SIGTERM" in last.message and replay.waited_s == 0


WRITER = """
import sys, time
from pathlib import Path
from fake_engine import FakeEngine
from ofa_tui.record.writer import RunWriter
engine = FakeEngine(steps=1000)
writer = RunWriter(Path(sys.argv[1]), {}, engine.info)
engine.start()
while True:
    writer.write(engine.poll())
    time.sleep(0.02)
"""


def test_a_run_that_is_stopped_is_waited_for_and_one_that_is_killed_has_ended(tmp_path):
    folder = tmp_path / "run"
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(folder)], cwd=Path(__file__).parent)
    try:
        end = time.monotonic() + 60
        while not (folder / "progress.jsonl").exists() or (folder / "progress.jsonl").read_text().count("\n") < 2:
            assert time.monotonic() < end and process.poll() is None
            time.sleep(0.05)
        clock = FrozenClock()
        replay = ReplayEngine(folder, clock=clock, follow=True)
        replay.start()
        process.send_signal(signal.SIGSTOP)
        clock.sleep(100)
        assert replay.growing and replay.poll().state == "running"
        process.kill()
        process.wait()
        clock.sleep(100)
        last = replay.poll()
        clock.sleep(100)
        last = replay.poll()
    finally:
        process.kill()
        process.wait()
    assert not replay.growing and last.state == "broken off" and last.message == "where the run was killed"
    assert last.steps_done == RecordedRun(folder).losses[-1].step + 1


def test_a_record_of_today_leaves_no_lock_and_an_older_one_is_waited_for(whole):
    assert not list(whole.glob(".writing*")) and not RecordedRun(whole).killed


@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_whatever_is_on_disk_when_it_looks_nothing_is_read_twice_or_torn(whole, tmp_path_factory, data):
    """Every file grows by any number of bytes between two looks; half lines and half blocks wait for their rest."""
    folder = tmp_path_factory.mktemp("growing") / "run"
    folder.mkdir()
    shutil.copy(whole / "run.json", folder)
    contents = {name: (whole / name).read_bytes() for name in LINES}
    cuts = {
        name: sorted(data.draw(st.lists(st.integers(0, len(content)), min_size=3, max_size=3), label=name))
        for name, content in contents.items()
    }
    for name in LINES:
        (folder / name).write_bytes(b"")
    reader, complete = RecordedRun(folder), RecordedRun(whole)
    for look in range(3):
        for name, content in contents.items():
            (folder / name).write_bytes(content[: cuts[name][look]])
        reader.refresh()
        for name in ("losses", "sweeps", "served", "events", "samples"):
            part = getattr(reader, name)
            assert part == getattr(complete, name)[: len(part)]
        numbers = [timed.frame.number for timed in reader.frames()]
        assert numbers == list(range(1, len(numbers) + 1))
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    reader.refresh()
    assert all(getattr(reader, name) == getattr(complete, name) for name in ("losses", "sweeps", "served", "samples"))
    assert len(list(reader.frames())) == len(list(complete.frames())) and not reader.damage


def _break_lines(folder: Path) -> None:
    path = folder / "loss.csv"
    lines = path.read_bytes().split(b"\n")
    lines[5], lines[9] = b"4,half a li", b"\0" * 40
    path.write_bytes(b"\n".join(lines))


def _break_block(folder: Path) -> None:
    path = folder / "frames.zst"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(bytes(content))


def _tear(folder: Path) -> None:
    path = folder / "served.jsonl"
    path.write_bytes(path.read_bytes()[:-7])


def _overwrite(folder: Path) -> None:
    path = folder / "frames.zst"
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2] + bytes(len(content) // 2))


@pytest.mark.parametrize(
    ("harm", "said", "losses", "frames"),
    [
        (_break_lines, "2 lines of loss.csv", 38, 139),
        (_break_block, "frames.zst", 40, 70),
        (_tear, "the last line of served.jsonl", 40, 139),
        (_overwrite, "frames.zst", 40, 30),
        (lambda folder: (folder / "run.json").write_text("{"), "run.json", 40, 139),
    ],
)
def test_what_is_damaged_is_said_in_one_sentence_and_the_rest_is_shown(whole, tmp_path, harm, said, losses, frames):
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    harm(folder)
    replay = ReplayEngine(folder, clock=FrozenClock())
    sentences = [*replay.info.notes]
    shown_frames = list(replay.playback.run.frames())
    sentences.append(replay.new_damage())
    assert any("damaged and left out" in sentence and said in sentence for sentence in sentences)
    assert not any("\n" in sentence for sentence in sentences) and not replay.new_damage()
    replay.seek(replay.end)
    model = RunModel(replay.info)
    absorb(model, replay)
    assert model.losses.count == losses and model.state == "finished" and len(shown_frames) >= frames
    for share in (0.0, 0.3, 0.6, 0.9):
        replay.seek(replay.begin + share * (replay.end - replay.begin))
        absorb(RunModel(replay.info), replay)


def test_a_folder_that_was_claimed_is_awaited(tmp_path, capsys):
    def begin(_seconds: float) -> None:
        (tmp_path / "run.json").write_text("{}")

    wait_for_begin(tmp_path, begin)
    assert "has not begun yet" in capsys.readouterr().err
    new = tmp_path / "new" / "run"
    steps = iter([new.parent.mkdir, new.mkdir, (new / "frames").mkdir, lambda: (new / "run.json").write_text("{}")])
    wait_for_begin(new, lambda _: next(steps)())
    assert (new / "run.json").exists() and "is not there yet" in capsys.readouterr().err
