"""Commands that take a recorded run take the one that ships where no folder is named, and a smaller one can be made."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ofa_tui import locations
from ofa_tui.cli import main
from ofa_tui.record.reader import RecordedRun


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("size", "mark"), [
    ("200x60", "recording: H200 · 132 SMs, 2026-11-30, every 9th frame"),
    ("120x40", "recording: H200, 2026-11-30, every 9th frame"),
    ("80x24", "recording: H200, 2026-11-30"), ("60x20", "recording: H200"),
])
def test_a_screenshot_is_marked_as_a_recording(elsewhere: Path, size: str, mark: str) -> None:
    assert main(["screenshot", "--at", "1500", "--size", size, "-o", "at.txt"]) == 0
    header = (elsewhere / "at.txt").read_text().splitlines()[0]
    assert mark in header and "step 1,500" in header


def test_a_report_goes_into_the_working_folder(elsewhere: Path) -> None:
    before = sorted(locations.recording().rglob("*"))
    assert main(["report"]) == 0
    page = (elsewhere / "report" / "report.html").read_text()
    assert "1,342 frames of the first game, which were drawn but not kept" in page
    assert "thinned: every 9th frame of Doom is kept" in page and "NVIDIA H200" in page
    assert sorted(locations.recording().rglob("*")) == before


def test_it_is_listed_with_its_folder(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs", "--shipped", "--json"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["folder"] == str(locations.recording()) and json.loads(line)["steps"] == 4000


def test_a_film_of_it(elsewhere: Path) -> None:
    assert main(["export", "--to", "2"]) == 0
    assert (elsewhere / "doom.gif").read_bytes().startswith(b"GIF8")


def test_a_thinned_record_is_a_record(record: Path, elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(record), "--thin", "3", "-o", "small"]) == 0
    assert capsys.readouterr().out.startswith("small: every 3rd frame, ")
    whole, small = RecordedRun(record), RecordedRun(elsewhere / "small")
    assert small.served == whole.served and small.losses == whole.losses
    assert small.summary["frames_kept"] < whole.summary["frames_kept"] / 2
    assert main(["screenshot", "small", "-o", "small.txt"]) == 0
    assert "every 3rd frame" in (elsewhere / "small.txt").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["replay", "--follow"], ["--follow", "folder"]),
        (["screenshot", "--steps", "3"], ["--steps", "--live"]),
        (["screenshot", "nowhere", "--live"], ["folder", "--live"]),
        (["runs"], ["no recorded run", "--shipped"]),
        (["runs", "--shipped", "."], ["--shipped"]),
        (["export", "--thin", "1", "-o", "new"], ["--thin 1", "2"]),
        (["export", "--thin", "2"], ["-o FOLDER"]),
        (["export", "--thin", "2", "-o", "new"], ["thinned before"]),
        (["export", "--thin", "2", "-o", "new", "--every", "2"], ["--every", "--thin"]),
        (["export", "--thin", "2", "-o", "new", "--cast", "80x24"], ["--cast", "--thin"]),
    ],
)
def test_bad_input(arguments: list[str], words: list[str], elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert said.startswith("ofa-tui: ") and said.count("\n") == 1 and all(word in said for word in words)
    assert not list(elsewhere.iterdir())
