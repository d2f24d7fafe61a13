"""Names that several processes want at the same moment, and what is said of a write that fails."""

from __future__ import annotations

import errno
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ofa_tui.errors import OfaError
from ofa_tui.record.files import AppendFile, cannot_write, make_new_file, make_new_folder


def test_each_of_many_gets_a_place_of_its_own(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        folders = list(pool.map(lambda _: make_new_folder(tmp_path / "run"), range(40)))
        files = list(pool.map(lambda _: make_new_file(tmp_path / "shot.png"), range(40)))
    assert {path.name for path in folders} == {"run", *(f"run-{number}" for number in range(2, 41))}
    assert {path.name for path in files} == {"shot.png", *(f"shot-{number}.png" for number in range(2, 41))}


def test_one_of_two_makes_a_new_file(tmp_path: Path) -> None:
    AppendFile(tmp_path / "loss.csv", new=True).close()
    with pytest.raises(OfaError, match="File exists"):
        AppendFile(tmp_path / "loss.csv", new=True)


@pytest.mark.parametrize("make", [make_new_folder, make_new_file])
def test_a_place_that_cannot_be_is_said(make, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OfaError, match=r"Not a directory\); start elsewhere$"):
        make(tmp_path / "file" / "new", "start elsewhere")


def test_room_is_asked_for_where_it_helps(tmp_path: Path) -> None:
    said = {number: str(cannot_write(tmp_path, OSError(number, "why"), "go")) for number in (errno.ENOSPC, errno.EROFS)}
    assert said[errno.ENOSPC].endswith("(why); make room, or go") and said[errno.EROFS].endswith("(why); go")
