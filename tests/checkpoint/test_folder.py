"""A folder of checkpoints is held by one run at a time and is of one run; its newest one is the highest step."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from samples import identity, write

from ofa_tui.checkpoint.checkpoint import file_name, find_checkpoint
from ofa_tui.checkpoint.folder import LOCK, Claim, check_new, earlier_checkpoints
from ofa_tui.checkpoint.tensors import scratch_name
from ofa_tui.errors import OfaError

HOLD = """
import sys, time
from pathlib import Path
from ofa_tui.checkpoint.folder import Claim
Claim(Path(sys.argv[1])).take()
print("held", flush=True)
time.sleep(100)
"""
TAKE_TURNS = """
import sys
from pathlib import Path
from ofa_tui.checkpoint.folder import Claim
from ofa_tui.errors import OfaError
folder, turns = Path(sys.argv[1]), 0
alone = folder.with_name("alone")
while turns < 40:
    claim = Claim(folder)
    try:
        claim.take()
    except OfaError:
        continue
    alone.touch(exist_ok=False)
    turns += 1
    alone.unlink()
    claim.release()
"""


def test_another_process_is_named_and_a_dead_one_gives_way(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(folder)], stdout=subprocess.PIPE)
    try:
        assert holder.stdout and holder.stdout.readline() == b"held\n"
        half = scratch_name(folder / file_name(3))
        half.write_bytes(b"being written")
        with pytest.raises(OfaError, match=f"another run .process {holder.pid} on .*--checkpoints") as caught:
            Claim(folder).take()
        assert str(folder) in str(caught.value) and half.exists()
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    finally:
        holder.kill()
        holder.wait()
    assert (folder / LOCK).exists(), "a process that is killed leaves its lock behind"
    claim = Claim(folder)
    claim.take()
    assert not half.exists() and str(os.getpid()) in (folder / LOCK).read_text()
    (folder / file_name(1)).touch()
    claim.release()
    assert os.listdir(folder) == [file_name(1)]


def test_two_never_hold_it_at_once(tmp_path: Path) -> None:
    """Processes that take and release, each time with the lock's file made and removed, find themselves alone."""
    processes = [subprocess.Popen([sys.executable, "-c", TAKE_TURNS, str(tmp_path / "kept")]) for _ in range(4)]
    assert [process.wait(100) for process in processes] == [0] * 4
    assert not list(tmp_path.rglob(LOCK))


def test_what_was_made_is_taken_away_unless_something_is_in_it(tmp_path: Path) -> None:
    claim = Claim(tmp_path / "a" / "b")
    claim.take()
    claim.release()
    claim.release()
    assert not (tmp_path / "a").exists()
    claim.take()
    shutil.rmtree(tmp_path / "a")
    claim.take()
    with pytest.raises(OfaError, match="another run"):
        Claim(tmp_path / "a" / "b").take()
    (tmp_path / "a" / "b" / "mine").touch()
    claim.release()
    assert os.listdir(tmp_path / "a" / "b") == ["mine"]
    for folder in (tmp_path / "a" / "b" / "mine", tmp_path / "a" / "b" / "mine" / "under", Path("/proc/kept")):
        with pytest.raises(OfaError, match=r"cannot write checkpoints into .*; give another folder with --checkpoints"):
            Claim(folder).take_at_start()


def test_a_run_finds_its_own_and_refuses_others(tmp_path: Path) -> None:
    check_new(tmp_path)
    (tmp_path / file_name(7)).write_bytes(b"cut off")
    (tmp_path / "step-best.safetensors").write_bytes(b"not of a step")
    check_new(tmp_path)
    steps = (0, 2, 4)
    for step in steps:
        write(tmp_path / file_name(step), step)
    with pytest.raises(OfaError, match="earlier run, up to step 4; go on from them with --resume"):
        check_new(tmp_path)
    found = earlier_checkpoints(tmp_path, 4, identity)
    assert found == [(step, tmp_path / file_name(step)) for step in sorted(steps, reverse=True)]
    with pytest.raises(OfaError, match=rf"{file_name(4)}, which this run would replace, since it goes on from step 2"):
        earlier_checkpoints(tmp_path, 2, identity)
    write(tmp_path / file_name(1), 1, seed=2)
    with pytest.raises(OfaError, match=f"holds {file_name(1)} of another run"):
        earlier_checkpoints(tmp_path, 4, identity)


def test_the_newest_is_the_highest_step_however_many_digits_it_has(tmp_path: Path) -> None:
    for step in (99_999_999, 100_000_000, 9):
        write(tmp_path / file_name(step), step)
    assert find_checkpoint(tmp_path)[0].step == 100_000_000
