"""Demo files grow with the run: whole after every write, one per game, and honest about what was missed."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ofa_tui import abi
from ofa_tui.doom.lmp import read_demo
from ofa_tui.engine.protocol import Commands
from ofa_tui.errors import OfaError
from ofa_tui.record.demo_log import DemoRecorder


def game(tics: int, number: int) -> np.ndarray:
    """DOOM_COMMAND [tics] of one game."""
    rows = np.zeros(tics, abi.DOOM_COMMAND)
    rows["forward"] = np.arange(tics) % 50
    rows["turn"] = -(np.arange(tics) % 100)
    rows["buttons"] = number
    rows["starts"][0] = 1
    rows["episode"], rows["map"], rows["skill"] = 1, number, 2
    return rows


@given(st.lists(st.integers(1, 60), min_size=1, max_size=4), st.data())
def test_every_split_of_the_stream_gives_the_same_demos(tmp_path_factory, lengths: list[int], data) -> None:
    stream = np.concatenate([game(tics, number) for number, tics in enumerate(lengths, 1)])
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream)), max_size=6)) | {0, len(stream)})
    recorder = DemoRecorder(tmp_path_factory.mktemp("demos") / "run.lmp")
    for first, end in itertools.pairwise(cuts):
        recorder.write(Commands(first, stream[first:end]))
        assert read_demo(recorder.path).ended
    recorder.close()
    assert recorder.missed == 0
    demos = [read_demo(path) for path in recorder.files]
    assert [len(demo.commands) for demo in demos] == lengths
    assert [demo.map for demo in demos] == list(range(1, len(lengths) + 1))
    for number, (demo, tics) in enumerate(zip(demos, lengths, strict=True), 1):
        rows = game(tics, number)
        assert np.array_equal(demo.commands["forward"][:, 0], rows["forward"])
        assert np.array_equal(demo.commands["turn"][:, 0], rows["turn"].astype(np.int16) << 8)
        assert np.array_equal(demo.commands["buttons"][:, 0], rows["buttons"])


def test_a_gap_ends_the_demo_and_the_next_game_begins_another(tmp_path: Path) -> None:
    recorder = DemoRecorder(tmp_path / "run.lmp")
    rows = game(30, 1)
    recorder.write(Commands(0, rows[:10]))
    recorder.write(Commands(20, np.concatenate([rows[20:], game(5, 2)])))
    recorder.close()
    assert recorder.missed == 10
    assert [len(read_demo(path).commands) for path in recorder.files] == [10, 5]


def test_a_copy_can_be_saved_at_any_time(tmp_path: Path) -> None:
    recorder = DemoRecorder(tmp_path / "run.lmp")
    with pytest.raises(OfaError, match="no game"):
        recorder.save_copy(tmp_path / "copy.lmp")
    recorder.write(Commands(0, game(7, 1)))
    recorder.save_copy(tmp_path / "copy.lmp")
    recorder.write(Commands(7, game(9, 2)))
    assert len(read_demo(tmp_path / "copy.lmp").commands) == 7
    with pytest.raises(OfaError, match="nowhere"):
        recorder.save_copy(tmp_path / "nowhere" / "copy.lmp")
    recorder.close()


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine.lmp").write_bytes(b"mine")
    (tmp_path / "run-2.lmp").write_bytes(b"mine too")
    with pytest.raises(OfaError, match="another name"):
        DemoRecorder(tmp_path / "mine.lmp")
    with pytest.raises(OfaError, match="nowhere"):
        DemoRecorder(tmp_path / "nowhere" / "run.lmp")
    recorder = DemoRecorder(tmp_path / "run.lmp")
    recorder.write(Commands(0, np.concatenate([game(3, 1), game(4, 2)])))
    recorder.close()
    assert [path.name for path in recorder.files] == ["run.lmp", "run-3.lmp"]
    assert (tmp_path / "run-2.lmp").read_bytes() == b"mine too"


@given(st.lists(st.tuples(st.sampled_from(["play", "wind", "show"]), st.integers(-40, 40)), max_size=12), st.data())
def test_a_rewound_demo_is_what_was_played_in_the_end(tmp_path_factory, turns: list[tuple[str, int]], data) -> None:
    """Against a list of what lies behind the game and what lies ahead of it. Files are whole at any time."""
    rows, behind, ahead = [game(1, 1)], [(0, 1)], []
    for number, (turn, amount) in enumerate(turns, 1):
        if turn == "play":
            played = game(abs(amount) + 1, number % 200)
            played["starts"] = 0
            behind += [(int(row["forward"]), int(row["buttons"])) for row in played]
            ahead = []
        else:
            undone = max(min(amount, len(behind) - 1), -len(ahead)) if turn == "wind" else 0
            played = np.zeros(1, abi.DOOM_COMMAND)
            played["skipped"], played["undone"] = 1, undone
            both, place = behind + ahead, len(behind) - undone
            behind, ahead = both[:place], both[place:]
        rows.append(played)
    stream = np.concatenate(rows)
    folder = tmp_path_factory.mktemp("demos")
    recorder = DemoRecorder(folder / "run.lmp")
    cuts = sorted(data.draw(st.sets(st.integers(0, len(stream)), max_size=6)) | {0, len(stream)})
    for first, end in itertools.pairwise(cuts):
        recorder.write(Commands(first, stream[first:end]))
        assert read_demo(folder / "run.lmp").ended
    recorder.save_copy(folder / "copy.lmp")
    recorder.close()
    for name in ("run.lmp", "copy.lmp"):
        demo = read_demo(folder / name)
        assert demo.ended and demo.commands[:, 0][["forward", "buttons"]].tolist() == behind, name


def test_a_demo_without_a_name_leaves_nothing_but_its_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    recorder = DemoRecorder()
    recorder.write(Commands(0, np.concatenate([game(3, 1), game(4, 2)])))
    assert recorder.tics == 4 and recorder.start is not None and recorder.start.map == 2
    recorder.save_copy(tmp_path / "copy.lmp")
    again = recorder.save_copy(tmp_path / "copy.lmp")
    assert again.name == "copy-2.lmp" and again.read_bytes() == (tmp_path / "copy.lmp").read_bytes()
    recorder.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy-2.lmp", "copy.lmp"]
