"""The recorded runs under a folder, each with its figures."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from ofa_tui import abi
from ofa_tui.errors import OfaError
from ofa_tui.record.reader import RecordedRun

DEEPEST = 3
"""Levels of folders that are looked into."""
NOT_LISTED = ("served_text", "message")


def find_runs(folder: Path) -> list[RecordedRun]:
    """Every run in the folder and DEEPEST levels below it, oldest first. Raises OfaError where there is no folder.

    A folder is a run where it has a run.json with a run in it, or a damaged one beside what else a run leaves; what
    is below such a folder is not looked at.
    """
    if not folder.is_dir():
        raise OfaError(f"{folder} {'is a file' if folder.exists() else 'is not there'}; name a folder to look into")
    return sorted(_runs_below(folder, DEEPEST), key=lambda run: (str(run.run.get("started", "")), str(run.folder)))


def _runs_below(folder: Path, levels: int) -> Iterator[RecordedRun]:
    if (folder / "run.json").is_file():
        run = RecordedRun(folder)
        with suppress(OfaError):
            run.check_not_empty()
            # One that is no object of JSON is damaged; another object is some other program's.
            if isinstance(run.run.get("run"), dict) or not run.run:
                yield run
                return
    try:
        inner = sorted(entry.path for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)
                       and not entry.name.startswith("."))
    except OSError:
        return
    for path in inner if levels else ():
        yield from _runs_below(Path(path), levels - 1)


def damage_of(run: RecordedRun) -> str:
    """RecordedRun.damage; of a record that may still be written only what its growth does not explain."""
    return run.damage if run.ended or run.killed or not run.run else ""


def figures_of(run: RecordedRun) -> dict[str, Any]:
    """Plain values: the folder, what ran, what summary.json says but for the texts, and what is damaged.

    What a damaged run.json does not tell is None.
    """
    summary = {name: value for name, value in run.summary.items() if name not in NOT_LISTED}
    info, known = run.info, isinstance(run.run.get("run"), dict)
    return {
        "folder": str(run.folder),
        "started": run.run.get("started"),
        **{name: getattr(info, name) if known else None for name in ("preset", "parameters", "backend", "device")},
        "steps_planned": info.steps if known else None,
        "games": info.games if known else None,
        **summary,
        **({"damage": damage} if (damage := damage_of(run)) else {}),
    }


@dataclass(frozen=True)
class Thumbnail:
    pixels: np.ndarray  # u1 [200, 320], palette indices
    palette: np.ndarray  # u1 [256, 3]


def thumbnail_of(run: RecordedRun) -> Thumbnail | None:
    """The newest frame that was kept as a picture; None where there is none that can be read."""
    newest = max((path for path in (run.folder / "frames").glob("*.png") if path.stem.isdigit()), default=None)
    if newest is None:
        return None
    try:
        with Image.open(newest, formats=["PNG"]) as picture:
            if picture.mode != "P" or picture.size != (abi.FRAME_WIDTH, abi.FRAME_HEIGHT):
                return None
            palette = np.zeros((256, 3), np.uint8)
            known = np.array(picture.getpalette("RGB") or [], np.uint8).reshape(-1, 3)
            palette[: len(known)] = known
            return Thumbnail(np.array(picture), palette)
    except (OSError, ValueError, SyntaxError):
        return None
