"""The list of recorded runs says what their summaries say."""

from __future__ import annotations

import io
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from ofa_tui.cli import main
from ofa_tui.commands import runs
from ofa_tui.record.listing import find_runs, thumbnail_of
from ofa_tui.record.reader import RecordedRun
from ofa_tui.tui.colour import Depth
from ofa_tui.tui.encode import encode_rows
from ofa_tui.tui.picture import draw


@pytest.fixture(scope="module")
def folder(record: Path, other_record: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, one of them killed, beside folders that are none."""
    folder = tmp_path_factory.mktemp("several")
    shutil.copytree(record, folder / "a" / "deep" / "first")
    shutil.copytree(other_record, folder / "second")
    (folder / "second" / "summary.json").unlink()
    (folder / "mine").mkdir()
    (folder / "mine" / "loss.csv").write_text("my,own,data\n")
    (folder / "theirs").mkdir()
    (folder / "theirs" / "run.json").write_text('{"name": "another program\'s"}')
    shutil.copytree(record, folder / ".hidden")
    (folder / "loop").symlink_to(folder)
    return folder


def test_json_has_every_figure(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", str(folder), "--json"]) == 0
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    written = json.loads((folder / "a" / "deep" / "first" / "summary.json").read_text())
    assert {name: first[name] for name in written if name in first} == {
        name: value for name, value in written.items() if name not in ("served_text", "message")}
    assert (first["exit_reason"], second["exit_reason"]) == ("finished", "killed")
    assert Path(first["folder"]) == folder / "a" / "deep" / "first" and Path(second["folder"]) == folder / "second"
    assert (first["steps"], second["steps"], first["steps_planned"]) == (40, 25, 40)
    assert second["last_loss"] == RecordedRun(folder / "second").losses[-1].loss


def test_in_a_pipe_it_is_a_line_a_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", str(folder)]) == 0
    head, first, second = capsys.readouterr().out.splitlines()
    assert head.split()[0] == "folder" and "\x1b" not in first + second
    assert f"{folder / 'second'}" in second and "25/25" in second and second.endswith("killed")
    assert head.index("steps") + len("steps") == first.index("40/40") + len("40/40")


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_the_newest_frame(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert main(["runs", str(folder)]) == 0
    frame = thumbnail_of(RecordedRun(folder / "second"))
    assert frame is not None
    rows = encode_rows(draw(frame.pixels, frame.palette, runs.PICTURE_COLUMNS, runs.PICTURE_ROWS,
                            depth=Depth.TRUECOLOR, gamma=runs.BRIGHTER), Depth.TRUECOLOR)
    nothing, first, second = terminal.getvalue().split(f"{folder}/")
    assert not nothing and "steps    40/40" in first and "ended    killed" in second
    assert all(row in second for row in rows)


def test_the_thumbnail_is_the_newest_recorded_frame(record: Path) -> None:
    run = RecordedRun(record)
    thumbnail = thumbnail_of(run)
    *_, newest = run.frames()
    assert thumbnail is not None
    assert np.array_equal(thumbnail.palette[thumbnail.pixels], newest.frame.palette[newest.frame.pixels])


def test_a_picture_that_is_none_is_left_out(tmp_path: Path, record: Path) -> None:
    shutil.copytree(record, tmp_path / "run")
    (tmp_path / "run" / "frames" / "99999999.png").write_bytes(b"\x89PNG\r\n\x1a\nnot a picture")
    (run,) = find_runs(tmp_path)
    assert thumbnail_of(run) is None


def test_names_do_not_steer_the_terminal(tmp_path: Path, record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(record, tmp_path / "a\x1b[2Jb")
    assert main(["runs", str(tmp_path)]) == 0
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize(("name", "words"), [("nowhere", "not there"), ("file", "is a file"), (".", "--record DIR")])
def test_bad_input(tmp_path: Path, name: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["runs", str(tmp_path / name)]) == 2
    said = capsys.readouterr().err
    assert said.startswith("ofa-tui: ") and said.count("\n") == 1 and words in said
