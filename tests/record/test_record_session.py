"""Recording without a terminal: ends that are no ends, and what they leave behind."""

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fake_engine import FakeEngine, FrozenClock

from ofa_tui.engine.protocol import Event
from ofa_tui.errors import AbortedError, OfaError
from ofa_tui.progress import Progress
from ofa_tui.record.events import read_events
from ofa_tui.record.reader import RecordedRun
from ofa_tui.record.session import record
from ofa_tui.record.writer import RunWriter

HERE = Path(__file__).parent


def _record(folder, engine, clock):
    stream = io.StringIO()
    writer = RunWriter(folder, {}, engine.info)
    code = record(engine, writer, progress=Progress("recording", engine.info.steps, stream, clock),
                  sleep=clock.sleep)
    return code, stream.getvalue()


def test_a_run_to_the_end(tmp_path):
    clock = FrozenClock()
    engine = FakeEngine(200, clock)
    code, said = _record(tmp_path / "run", engine, clock)
    run = RecordedRun(tmp_path / "run")
    assert code == 0 and engine.stops >= 1
    assert run.complete and len(run.losses) == 200
    lines = said.splitlines()
    assert 3 <= len(lines) <= 7 and "\r" not in said, "plain lines in a pipe, one in five seconds"
    assert "about" in lines[1] and "step 50/200" in lines[1] and "finished after 200 steps" in lines[-1]


def test_the_events_of_a_run_are_an_event_file(tmp_path):
    clock = FrozenClock()
    engine = FakeEngine(60, clock)
    events = [Event("keys", "tic", n // 2, 0, (n, 0, 0, 0)) for n in range(50)]
    for event in [*events, Event("prompt", "token", 3, text="Once")]:
        engine.post(event)
    _record(tmp_path / "run", engine, clock)
    again = read_events(tmp_path / "run" / "events.jsonl")
    assert again == [applied.event for applied in RecordedRun(tmp_path / "run").events]
    assert len(again) == 51 and Event("prompt", "token", 3, text="Once") in again


@pytest.mark.parametrize("raising", [True, False])
def test_an_aborted_kernel(tmp_path, raising):
    clock = FrozenClock()
    engine = FakeEngine(200, clock, abort_at=2.0, raising=raising)
    with pytest.raises(AbortedError, match="SM 1 waited too long"):
        _record(tmp_path / "run", engine, clock)
    run = RecordedRun(tmp_path / "run")
    assert run.exit_reason == "aborted" and "SM 1 waited too long" in run.message
    assert "SM 1 waited too long" in (tmp_path / "run" / "kernel.log").read_text()
    assert engine.stops and len(run.losses) >= 19


def test_a_full_disk_stops_the_engine_and_keeps_what_there_was(tmp_path):
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full on this system")
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "served.jsonl").symlink_to("/dev/full")
    clock = FrozenClock()
    engine = FakeEngine(200, clock)
    with pytest.raises(OfaError, match=r"served\.jsonl .*make room"):
        _record(folder, engine, clock)
    (folder / "served.jsonl").unlink()
    run = RecordedRun(folder)
    assert engine.stops and run.exit_reason == "failed" and "served.jsonl" in run.message
    assert len(run.losses) >= 1 and not run.served


def test_an_engine_that_cannot_start(tmp_path):
    clock = FrozenClock()
    engine = FakeEngine(200, clock)

    def refuse():
        raise OfaError("the system refuses 300 threads")

    engine.start = refuse
    with pytest.raises(OfaError, match="300 threads"):
        _record(tmp_path / "run", engine, clock)
    assert engine.stops and RecordedRun(tmp_path / "run").exit_reason == "failed"


_SCRIPT = """
import sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from fake_engine import FakeEngine
from ofa_tui.record.session import record
from ofa_tui.record.writer import RunWriter
engine = FakeEngine(100_000)
writer = RunWriter(Path(sys.argv[1]), {}, engine.info)
assert not {"textual", "pycuda"} & set(sys.modules)
sys.exit(record(engine, writer))
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGKILL"])
def test_signals(tmp_path, name):
    folder = tmp_path / "run"
    process = subprocess.Popen([sys.executable, "-c", _SCRIPT, str(folder), str(HERE)], stderr=subprocess.PIPE,
                               cwd=HERE.parents[1])
    deadline = time.monotonic() + 60
    while not (folder / "loss.csv").exists() or len((folder / "loss.csv").read_bytes()) < 250:
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.02)
    number = getattr(signal, name)
    os.kill(process.pid, number)
    _, said = process.communicate(timeout=60)
    run = RecordedRun(folder)
    assert len(run.losses) >= 3 and run.served
    if name == "SIGKILL":
        assert process.returncode == -9 and run.exit_reason == "killed"
    else:
        assert process.returncode == 128 + number and run.exit_reason == name
        assert b"Traceback" not in said and list(run.frames()) and run.samples
