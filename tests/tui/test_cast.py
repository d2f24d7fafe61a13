"""What a cast sends for a change of the screen makes exactly that change."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest
from ansi_screen import AnsiScreen
from hypothesis import given, settings
from hypothesis import strategies as st
from test_encode import COLOURS, GLYPHS

from ofa_tui.errors import OfaError
from ofa_tui.record.files import AppendFile
from ofa_tui.tui.cast import WORTH_A_MOVE, CastFile, changes
from ofa_tui.tui.grid import Grid

WIDTH, HEIGHT = 2 * WORTH_A_MOVE + 6, 2


def copy(grid: Grid) -> Grid:
    new = Grid(grid.width, grid.height, 0, 0)
    new.paste(grid, 0, 0)
    return new


WORDS = st.tuples(st.integers(0, WIDTH - 1), st.integers(0, HEIGHT - 1), st.sampled_from(GLYPHS),
                  st.sampled_from(COLOURS), st.sampled_from(COLOURS), st.booleans())  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(WORDS, max_size=6), min_size=1, max_size=4))
def test_changes_turn_one_screen_into_the_next(frames: list[list[tuple[int, int, str, int, int, bool]]]) -> None:
    screen, before, now = AnsiScreen(WIDTH, HEIGHT), None, Grid(WIDTH, HEIGHT, 0xFFFFFF, 0)
    for words in frames:
        now = copy(now)
        for x, y, glyph, fg, bg, bold in words:
            now.text(x, y, glyph, fg, bg, bold=bold)
        screen.feed(changes(before, now))
        assert not screen.shows(now)
        assert not changes(now, now)
        before = now


def test_a_change_of_one_cell_sends_one_cell() -> None:
    before = Grid(120, 40, 0xFFFFFF, 0)
    now = copy(before)
    now.text(70, 20, "x", 0xFF0000)
    assert len(changes(before, now)) < 60 < len(changes(None, now)) / 40


def test_times_never_fall(tmp_path: Path) -> None:
    cast = CastFile(AppendFile(tmp_path / "ui.cast"), (4, 1), 0)
    for number, seconds in enumerate((1.0, 0.5, 2.0, 2.0)):
        grid = Grid(4, 1, 0xFFFFFF, 0)
        grid.text(0, 0, str(number), 0xFFFFFF)
        cast.show(seconds, grid)
    cast.close(1.5)
    events = [json.loads(line) for line in (tmp_path / "ui.cast").read_text().splitlines()[1:]]
    assert [at for at, _, _ in events] == [1.0, 1.0, 2.0, 2.0, 2.0]


def test_a_full_disk_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(_descriptor: int, _data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    file = AppendFile(tmp_path / "ui.cast")
    monkeypatch.setattr(os, "write", write)
    with pytest.raises(OfaError, match=r"ui\.cast.*No space left"):
        CastFile(file, (4, 1), 0)
