"""Traces of a few bytes a tic, small enough to be committed: a checksum of the simulation, one of the picture."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np

from ofa_tui.doom.library import ROW
from ofa_tui.doom.trace import Played

PICTURE = ("face", "face_ns", "fb_full", "fb_sbar", "fb_sbar_ns", "fb_view", "palette")
SIMULATION = tuple(sorted(set(ROW.names or ()) - {*PICTURE, "fb_tanoob", "_pad"}))


def summarise(played: Played) -> np.ndarray:
    """u4 [tics, 2]: CRC-32 of each row's simulation columns and of its picture columns, both in order of name."""
    return np.stack([_checksums(played.rows, names) for names in (SIMULATION, PICTURE)], axis=1)


def _checksums(rows: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
    columns = [np.ascontiguousarray(rows[name]).view(np.uint8).reshape(len(rows), -1) for name in names]
    return np.array([zlib.crc32(row) for row in np.concatenate(columns, axis=1)], np.uint32)


def save(path: Path, played: Played, wad_sha256: str) -> None:
    np.savez_compressed(path, checksums=summarise(played), wad_sha256=np.array(wad_sha256))


def load(path: Path) -> np.ndarray:
    with np.load(path) as file:
        return file["checksums"]


def first_difference(expected: np.ndarray, got: np.ndarray) -> str | None:
    """Where two summaries part, in words; None where they do not."""
    tics = min(len(expected), len(got))
    wrong = np.argwhere(expected[:tics] != got[:tics])
    if len(wrong):
        return f"tic {wrong[0][0]}: another {('simulation', 'picture')[wrong[0][1]]}"
    return None if len(expected) == len(got) else f"{len(expected)} tics expected, {len(got)} got"
