"""The film of a recorded game shows the recorded frames, each at its time."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ofa_tui.cli import main
from ofa_tui.commands.export import HEIGHT, WIDTH
from ofa_tui.engine.protocol import Frame
from ofa_tui.record.reader import RecordedRun

ENCODER = """#!/bin/sh
for last; do :; done
echo "$@" > "$last.said"
exec cat > "$last"
"""


def _frames(record: Path) -> list[Frame]:
    return [timed.frame for timed in RecordedRun(record).frames()]


def _colours(frame: Frame) -> np.ndarray:
    """u1 [200, 320, 3]"""
    return frame.palette[frame.pixels]


def _rows_shown_once(picture: np.ndarray) -> np.ndarray:
    """u1 [200, 320, 3] of u1 [240, 320, 3]: the first of every six rows is there twice."""
    sixes = picture.reshape(HEIGHT // 6, 6, WIDTH, 3)
    assert np.array_equal(sixes[:, 0], sixes[:, 1])
    return sixes[:, 1:].reshape(200, WIDTH, 3)


@pytest.mark.parametrize(("options", "every", "start", "end"),
                         [([], 3, 0.0, 1e9), (["--every", "2", "--from", "0.4", "--to", "1.1"], 2, 0.4, 1.1)])
def test_a_gif(record: Path, tmp_path: Path, options: list[str], every: int, start: float, end: float) -> None:
    output = tmp_path / "doom.gif"
    assert main(["export", str(record), "-o", str(output), *options]) == 0
    frames = [frame for frame in _frames(record) if start * 35 <= frame.number - 1 < end * 35]
    film, at_ms = Image.open(output), 0
    assert film.n_frames > 3
    for number in range(film.n_frames):
        film.seek(number)
        moment = (frames[0].number - 1) / 35 + at_ms / 1000
        shown = min(frames, key=lambda frame: abs((frame.number - 1) / 35 - moment))
        assert abs((shown.number - 1) / 35 - moment) < 0.006, "hundredths of a second, which do not add up"
        assert np.array_equal(_rows_shown_once(np.array(film.convert("RGB"))), _colours(shown))
        at_ms += film.info["duration"]
    whole = (frames[-1].number - frames[0].number) / 35
    assert whole <= at_ms / 1000 + 0.006 <= whole + 2 * every / 35 + 0.02


def test_an_mp4_goes_through_ffmpeg_a_picture_a_tic(
    record: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = tmp_path / "bin" / "ffmpeg"
    encoder.parent.mkdir()
    encoder.write_text(ENCODER)
    encoder.chmod(0o755)
    monkeypatch.setenv("PATH", f"{encoder.parent}{os.pathsep}{os.environ['PATH']}")
    output = tmp_path / "doom.mp4"
    assert main(["export", str(record), "-o", str(output), "--every", "2"]) == 0
    frames = _frames(record)
    pictures = np.frombuffer(output.read_bytes(), np.uint8).reshape(-1, HEIGHT, WIDTH, 3)
    kept = [frames[0]]
    for frame in frames:
        if frame.number >= kept[-1].number + 2:
            kept.append(frame)
    assert len(pictures) == kept[-1].number - kept[0].number + 1
    for tic, picture in enumerate(pictures, kept[0].number):
        shown = max((frame for frame in kept if frame.number <= tic), key=lambda frame: frame.number)
        assert np.array_equal(_rows_shown_once(picture), _colours(shown))
    (said,) = tmp_path.glob(".*.said")
    assert f"-s {WIDTH}x{HEIGHT}" in said.read_text() and "-r 35" in said.read_text()


def test_an_ffmpeg_that_fails(
    record: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    encoder = tmp_path / "ffmpeg"
    encoder.write_text("#!/bin/sh\necho no such encoder >&2\nexit 1\n")
    encoder.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert main(["export", str(record), "-o", str(tmp_path / "doom.mp4")]) == 2
    assert "no such encoder" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ffmpeg"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-o", "doom.avi"], ["doom.avi", ".gif and .mp4"]),
        (["-o", "nowhere/doom.gif"], ["nowhere/doom.gif", "folder that exists"]),
        (["-o", "doom.mp4"], ["ffmpeg", ".gif"]),
        (["--every", "0"], ["--every 0"]),
        (["--from", "nan"], ["--from nan"]),
        (["--from", "3", "--to", "2"], ["--to 2", "--from 3"]),
        (["--from", "999"], ["no frames of game #0"]),
        (["--game", "1"], ["no game #1", "#0 alone"]),
    ],
)
def test_bad_input(record: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str],
                   words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["export", str(record), *arguments]) == 2
    said = capsys.readouterr().err
    assert said.startswith("ofa-tui: ") and said.count("\n") == 1 and all(word in said for word in words)
    assert not list(tmp_path.iterdir())
