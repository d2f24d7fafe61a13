"""What users get: the wheel in an empty environment, the zig build where no compiler is, the scripts in a fresh clone.

Slow, and they install packages, so they need a package index or uv's cache.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.wads import freedoom

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

ROOT = Path(__file__).resolve().parents[1]
RECORD = ("--record", "out", "--steps", "20", "--token-rate", "max")


@pytest.fixture(scope="module")
def uv() -> str:
    found = shutil.which("uv") or next((str(p) for p in ROOT.glob(".uv/**/bin/uv")), None)
    if found is None:
        pytest.skip("uv is neither on PATH nor in .uv")
    return found


@pytest.fixture(scope="module")
def wad() -> Path:
    return Path(freedoom("freedoom1").path).resolve()


def run(command: list[str], folder: Path, **variables: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")}
    done = subprocess.run(
        command, cwd=folder, env=environment | variables, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def check_record(folder: Path) -> None:
    summary = json.loads((folder / "out" / "summary.json").read_text())
    assert summary["steps"] == 20 and summary["exit_reason"] == "finished"
    assert summary["tokens_served"] > 0 and summary["frames"] > 0
    assert summary["last_loss"] < summary["first_loss"]


def check_shipped_recording(program: str, folder: Path) -> None:
    run([program, "screenshot", "--at", "2000", "--size", "120x40", "-o", "shipped.txt"], folder)
    screen = (folder / "shipped.txt").read_text()
    assert "step 2,000/4,000" in screen and "recording: H200, 2026-11-30, every 9th frame" in screen
    listed = json.loads(run([program, "runs", "--shipped", "--json"], folder))
    assert listed["steps"] == 4000 and Path(listed["folder"]).is_relative_to(folder / "venv")


def pinned(package: str) -> str:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    return next(pin for pin in project["tool"]["uv"]["constraint-dependencies"] if pin.split("==")[0] == package)


def test_the_wheel_in_an_empty_environment_records(uv: str, wad: Path, tmp_path: Path) -> None:
    run([uv, "build", "--wheel", "--quiet", "--out-dir", str(tmp_path / "dist"), str(ROOT)], tmp_path)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    run([uv, "venv", "--quiet", "--python", sys.executable, str(tmp_path / "venv")], tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    run([uv, "pip", "install", "--quiet", "--python", str(python), str(wheel)], tmp_path)
    program = str(tmp_path / "venv" / "bin" / "ofa-tui")
    check_shipped_recording(program, tmp_path)
    run([program, *RECORD, "--wad", str(wad)], tmp_path, OFA_TUI_CACHE=str(tmp_path / "cache"))
    check_record(tmp_path)


def test_zig_compiles_where_no_compiler_is_on_the_path(uv: str, wad: Path, tmp_path: Path) -> None:
    run([uv, "pip", "install", "--quiet", "--python", sys.executable, "--target", str(tmp_path / "zig"),
         pinned("ziglang")], tmp_path)
    (tmp_path / "bin").mkdir()
    run(
        [sys.executable, "-m", "ofa_tui", *RECORD, "--wad", str(wad)],
        tmp_path,
        PATH=str(tmp_path / "bin"), CXX="", PYTHONPATH=f"{tmp_path / 'zig'}{os.pathsep}{ROOT}",
        OFA_TUI_CACHE=str(tmp_path / "cache"),
    )
    check_record(tmp_path)


def test_a_fresh_clone_without_uv_sets_itself_up(tmp_path: Path) -> None:
    run(["git", "clone", "--quiet", str(ROOT), str(tmp_path / "clone")], tmp_path)
    # A PATH with Python, git and the system's tools, but without uv.
    folders = [folder for folder in os.environ["PATH"].split(os.pathsep) if not (Path(folder) / "uv").exists()]
    path = os.pathsep.join(folders)
    said = run([str(tmp_path / "clone" / "scripts" / "run"), "--version"], Path("/"), PATH=path)
    assert "[set-up]" in said and "ofa-tui 0." in said
    again = run([str(tmp_path / "clone" / "scripts" / "run"), "--version"], Path("/"), PATH=path)
    assert "[set-up]" not in again, "the second call has nothing to set up"
    assert (tmp_path / "clone" / ".uv").is_dir()
