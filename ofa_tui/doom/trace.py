"""Traces: a row per tic of what a game was and what it looked like, by which two engines are compared.

docs/doom.md describes the columns, their types and hashes. A trace is a dictionary of arrays, as a .npz holds it.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ofa_tui.doom.library import LOAD, ROW, SERIAL, TICS_PER_S, TracedGame
from ofa_tui.doom.lmp import Demo
from ofa_tui.errors import OfaError

Trace = dict[str, np.ndarray]

CHUNK_TICS = 10 * TICS_PER_S


@dataclass(frozen=True)
class Played:
    """A demo that was played: `rows` ROW [tics], `loads` LOAD [level loads], `pictures` by tic u1 [200, 320]."""

    rows: np.ndarray
    loads: np.ndarray
    pictures: dict[int, np.ndarray]


def play_demo(
    demo: Demo,
    blob: np.ndarray,
    *,
    lanes: int = SERIAL,
    traced: bool = True,
    pictures: Iterable[int] = (),
    on_progress: Callable[[int], None] | None = None,
) -> Played:
    """Plays and draws every tic. `pictures`: tics whose frame is kept; `on_progress` gets the tics done.

    Without `traced` the rows are those of TracedGame without it.
    """
    wanted = sorted(set(pictures))
    kept: dict[int, np.ndarray] = {}
    rows, loads = [], []
    with TracedGame(blob, lanes, traced, **demo.settings()) as game:
        for first, end in _chunks(len(demo.commands), wanted):
            some_rows, some_loads = game.play(demo.commands[first:end])
            rows.append(some_rows)
            loads.append(some_loads)
            if end - 1 in wanted:
                kept[end - 1] = game.picture()
            if on_progress:
                on_progress(end)
    return Played(np.concatenate(rows), np.concatenate(loads), kept)


def _chunks(tics: int, stops: list[int]) -> Iterator[tuple[int, int]]:
    """(first, end) of runs of tics; each of `stops` is the last tic of one."""
    ends = {*range(CHUNK_TICS, tics, CHUNK_TICS), tics, *(stop + 1 for stop in stops)}
    first = 0
    for end in sorted(ends):
        yield first, end
        first = end


def trace_of(demo: Demo, played: Played, wad_sha256: str) -> Trace:
    """The trace of a demo that was played traced."""
    columns = _columns(played.rows, ROW)
    if sum(demo.present) == 1:
        del columns["pl"]
    loads = {f"load_{name}": column for name, column in _columns(played.loads, LOAD).items()}
    header = np.frombuffer(demo.header(), np.uint8)
    return {**columns, **loads, "header": header, "wad_sha256": np.array(wad_sha256)}


def _columns(table: np.ndarray, dtype: np.dtype) -> Trace:
    return {name: np.ascontiguousarray(table[name]) for name in dtype.names or () if name != "_pad"}


def encode_trace(trace: Trace) -> bytes:
    """A .npz."""
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **trace)
    return file.getvalue()


def load_trace(path: Path) -> Trace:
    """Reads a .npz. Raises OfaError."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except OSError as error:
        raise OfaError(f"cannot read the trace {path} ({error.strerror or error}); check the path") from None
    except (ValueError, AttributeError, EOFError, zipfile.BadZipFile):
        raise OfaError(f"{path} is no trace; give a .npz that --trace wrote") from None


@dataclass(frozen=True)
class Difference:
    """The first row in which a column of two traces differs, and how many rows do."""

    column: str
    row: int
    expected: object
    got: object
    rows: int


def compare(expected: Trace, got: Trace, columns: Iterable[str] | None = None) -> list[Difference]:
    """Differences in all columns that both have (or in `columns`), first ones first.

    Where one trace is longer, the column `length` differs in the first row that only one has.
    """
    shared = [name for name in expected if name in got] if columns is None else list(columns)
    found = []
    for name in shared:
        a, b = np.atleast_1d(expected[name]), np.atleast_1d(got[name])
        rows = min(len(a), len(b))
        unequal = (a[:rows] != b[:rows]).reshape(rows, -1).any(axis=1)
        if len(wrong := np.flatnonzero(unequal)):
            first = int(wrong[0])
            found.append(Difference(name, first, a[first].tolist(), b[first].tolist(), len(wrong)))
    lengths = len(expected["tic"]), len(got["tic"])
    if lengths[0] != lengths[1]:
        found.append(Difference("length", min(lengths), *lengths, abs(lengths[0] - lengths[1])))
    # The index of a column that has a row per level load is no tic.
    return sorted(found, key=lambda d: (d.column.startswith("load_"), d.row))
