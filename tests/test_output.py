"""What is printed where it cannot be written, and which commands it tells people to type."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ofa_tui import cli, installation

COMMANDS = (("--help",), ("--version",), ("doctor",), ("program", "show", "--preset", "tiny"), ("prepare", "--help"))
UNWRITABLE = {os.devnull: (os.O_RDONLY, errno.EBADF)}
"""What cannot be written: how it is opened, and the error. A device that is always full where the system has one."""
if Path("/dev/full").exists():
    UNWRITABLE["/dev/full"] = (os.O_WRONLY, errno.ENOSPC)


def run(arguments: tuple[str, ...], output: int, unbuffered: bool) -> tuple[int, str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    environment |= {"PYTHONUNBUFFERED": "1"} if unbuffered else {}
    done = subprocess.run([sys.executable, "-m", "ofa_tui", *arguments], stdout=output, stderr=subprocess.PIPE,
                          env=environment, text=True, timeout=120)
    return done.returncode, done.stderr


@pytest.mark.parametrize("place", UNWRITABLE)
@pytest.mark.parametrize("unbuffered", [True, False], ids=["unbuffered", "buffered"])
@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_an_output_that_takes_nothing_is_one_sentence(arguments: tuple[str, ...], unbuffered: bool, place: str) -> None:
    mode, reason = UNWRITABLE[place]
    output = os.open(place, mode)
    try:
        code, said = run(arguments, output, unbuffered)
    finally:
        os.close(output)
    assert code in (1, 2) and said.count("\n") == 1
    assert said.startswith(f"ofa-tui: standard output cannot be written ({os.strerror(reason)})")


@pytest.mark.parametrize("unbuffered", [True, False], ids=["unbuffered", "buffered"])
@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_reader_that_left_hears_nothing(arguments: tuple[str, ...], unbuffered: bool) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        code, said = run(arguments, writing, unbuffered)
    finally:
        os.close(writing)
    assert code in (1, 141) and not said


def test_an_error_of_another_file_is_still_a_bug(monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
                                                 capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("OFA_TUI_CACHE", str(tmp_path))
    assert cli.guarded(lambda: len((tmp_path / "missing").read_text())) == 70
    assert "internal error (FileNotFoundError" in capsys.readouterr().err
    assert "missing" in (tmp_path / "crash.log").read_text()


def test_commands_are_printed_as_the_program_was_started(monkeypatch: pytest.MonkeyPatch,
                                                         capsys: pytest.CaptureFixture[str]) -> None:
    for script, wanted in (("./scripts/run", "./scripts/run"), ("/a b/scripts/run", "'/a b/scripts/run'")):
        monkeypatch.setenv(installation.STARTED_AS, script)
        assert cli.main(["--steps", "x"]) == 2
        assert capsys.readouterr().err.endswith(f"see {wanted} --help\n")
    monkeypatch.delenv(installation.STARTED_AS)
    for program, wanted in (("/usr/bin/ofa-tui", "ofa-tui"), ("/x/ofa_tui/__main__.py", "python3 -m ofa_tui")):
        monkeypatch.setattr(sys, "argv", [program])
        monkeypatch.setattr(sys, "executable", "/usr/bin/python3")
        assert installation.command() == wanted


def test_what_adds_a_package_is_what_the_environment_has(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "executable", "/e/bin/python")
    monkeypatch.setattr(installation, "find_spec", lambda name: object())
    assert installation.how_to_add("pycuda", "six") == "/e/bin/python -m pip install pycuda six"
    monkeypatch.setattr(installation, "find_spec", lambda name: None)
    monkeypatch.setattr(installation.shutil, "which", lambda name: "/bin/uv")
    assert installation.how_to_add("pycuda") == "uv pip install --python /e/bin/python pycuda"
    monkeypatch.setattr(installation.shutil, "which", lambda name: None)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / ".venv"))
    private = tmp_path / ".uv" / "venv" / "bin" / "uv"
    private.parent.mkdir(parents=True)
    private.write_text("")
    assert installation.how_to_add("pycuda") == f"{private} pip install --python /e/bin/python pycuda"
