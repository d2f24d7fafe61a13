"""What is said of records that are damaged, empty or another program's."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path

import pytest

from ofa_tui.cli import main
from ofa_tui.commands import export_cast
from ofa_tui.commands.runs import _plain
from ofa_tui.record.files import AppendFile


@pytest.fixture
def damaged(record: Path, tmp_path: Path) -> Path:
    """Half of its frames and no samples."""
    folder = Path(shutil.copytree(record, tmp_path / "damaged"))
    frames = folder / "frames.zst"
    os.truncate(frames, frames.stat().st_size // 2)
    (folder / "progress.jsonl").unlink()
    return folder


@pytest.mark.parametrize("command", [["report"], ["screenshot", "-o", "a.txt"], ["export", "-o", "a.gif"],
                                     ["export", "--cast", "80x24", "--to", "0.5", "-o", "a.cast"]])  # fmt: skip
def test_damage_is_said(command: list[str], damaged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                        capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([command[0], str(damaged), *command[1:]]) == 0
    said = capsys.readouterr().err
    assert f"ofa-tui: {damaged}: " in said and "frames.zst" in said and "missing: progress.jsonl" in said
    if command == ["report"]:
        assert "missing: progress.jsonl" in (damaged / "report" / "report.html").read_text()


@pytest.mark.parametrize("command", [["report"], ["screenshot"], ["export"], ["export", "--cast", "80x24"], ["replay"]])
@pytest.mark.parametrize("content", ["{}", "", '{"name": "of another program"}'])
def test_a_folder_without_a_run_is_refused(command: list[str], content: str, tmp_path: Path,
                                           monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "run.json").write_text(content)
    (tmp_path / "other" / "loss.csv").write_text("my,own,data\n")
    assert main([command[0], "other", *command[1:]]) == 2
    assert "other holds no recorded run that can be read" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


@pytest.mark.parametrize("content", [b"", b'{"run": {"preset"', b"\xff\x00", b"[1]"])
def test_a_run_without_its_settings_is_listed(content: bytes, record: Path, tmp_path: Path,
                                              capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path(shutil.copytree(record, tmp_path / "run"))
    (folder / "run.json").write_bytes(content)
    assert main(["runs", str(tmp_path), "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["preset"] is figures["steps_planned"] is None and figures["steps"] == 40
    assert "run.json" in figures["damage"]
    assert main(["runs", str(tmp_path)]) == 0
    said = capsys.readouterr()
    assert said.out.splitlines()[1].split()[1:4] == ["–", "–", "40/–"] and f"{folder}: damaged" in said.err


def test_json_has_no_half_characters() -> None:
    assert _plain({"a": ["b\udcff", ("\ud800", 1.5)], "c\udcff": float("nan")}) == {
        "a": ["b\ufffd", ["\ufffd", 1.5]], "c\ufffd": None}


def test_a_screenshot_is_of_the_very_end(record: Path, tmp_path: Path) -> None:
    assert main(["screenshot", str(record), "--size", "160x48", "-o", str(tmp_path / "end.txt")]) == 0
    shown = (tmp_path / "end.txt").read_text()
    assert "step 40/40" in shown and "finished" in shown


def test_a_record_without_doom_has_no_film(record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path(shutil.copytree(record, tmp_path / "text"))
    told = json.loads((folder / "run.json").read_text())
    told["run"]["games"] = 0
    (folder / "run.json").write_text(json.dumps(told))
    (folder / "frames.zst").write_bytes(b"")
    assert main(["export", str(folder), "-o", str(tmp_path / "doom.gif")]) == 2
    assert f"{folder} has no Doom" in capsys.readouterr().err


def test_a_step_of_a_record_without_losses(record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path(shutil.copytree(record, tmp_path / "run"))
    (folder / "loss.csv").unlink()
    assert main(["screenshot", str(folder), "--at", "3", "-o", str(tmp_path / "a.txt")]) == 2
    said = capsys.readouterr().err
    assert str(folder) in said and "loss.csv" in said


def test_a_cast_that_has_no_room_is_named_as_it_was_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(folder: Path, path: Path, *_: object, **__: object) -> tuple[int, float]:
        monkeypatch.setattr(os, "write", refuse)
        AppendFile(path).write(b"x")
        return 1, 0.0

    def refuse(descriptor: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(export_cast, "write_cast", full)
    assert main(["export", "--cast", "80x24", "-o", str(tmp_path / "ui.cast")]) == 2
    monkeypatch.undo()
    assert capsys.readouterr().err == (f"ofa-tui: cannot write {tmp_path / 'ui.cast'} (No space left on device); "
                                       "make room, or choose another place with -o\n")
    assert not list(tmp_path.iterdir())
