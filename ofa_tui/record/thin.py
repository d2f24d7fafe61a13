"""A smaller copy of a record, to be passed on: fewer frames of Doom, the served text packed, places made names.

What is kept is what it was: every frame that is left has its own number and time, and losses, samples, roles, events
and all served tokens are the record's. run.json says what is not there, under "thinned".
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ofa_tui.errors import OfaError
from ofa_tui.record import served_pack
from ofa_tui.record.files import AppendFile, cannot_write, write_json, write_whole
from ofa_tui.record.frame_log import FrameEncoder, TimedFrame
from ofa_tui.record.reader import RecordedRun, ordinal
from ofa_tui.record.writer import claim_folder

LEVEL = 19
KEPT = ("loss.csv", "progress.jsonl", "sweeps.jsonl", "events.jsonl")
LEFT_OUT = ("timeline.bin", "ui.cast", "checkpoints.jsonl", "ptxas.txt")
"""Large, or of no use to others."""
FOLDERS = re.compile(r"(?<![\w.~/-])/(?:[^\s/]+/)+")


def thin_record(run: RecordedRun, folder: Path, every: int) -> None:
    """Writes the copy into a folder that is new or empty; of each game it has frames at least `every` tics apart.

    Raises OfaError for a record without run.json, one that was thinned before, and where something cannot be written.
    """
    if not run.run:
        raise OfaError(f"{run.folder} has no run.json that can be read; only a whole record can be thinned")
    if run.frames_every > 1:
        raise OfaError(f"{run.folder} was thinned before; thin the record that it was made from")
    claim_folder(folder)
    kept = _write_frames(run, folder, every)
    write_whole(folder / served_pack.NAME, served_pack.pack_served(run.served))
    for name in KEPT:
        _copy(run.folder / name, folder / name)
    for picture in sorted((run.folder / "frames").glob("*.png")):
        _copy(picture, folder / "frames" / picture.name)
    log = run.folder / "kernel.log"
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    write_whole(folder / log.name, without_folders(text).encode())
    summary = run.summary
    write_json(folder / "summary.json", summary | {
        "frames_kept": kept, "message": without_folders(str(summary.get("message", ""))),
    })
    # Last: a folder with it is whole.
    write_json(folder / "run.json", _told(run, every))


def without_folders(text: str) -> str:
    """Of every absolute path in it the last name."""
    return FOLDERS.sub("", text)


def _told(run: RecordedRun, every: int) -> dict[str, Any]:
    """run.json of the copy."""
    told = _named(run.run)
    left_out = [name for name in LEFT_OUT if (run.folder / name).exists() and (run.folder / name).stat().st_size]
    note = f"thinned: every {ordinal(every)} frame of Doom is kept" + "".join(f", no {name}" for name in left_out)
    machine, info = told.get("machine"), told.get("run")
    if isinstance(machine, dict) and isinstance(machine.get("system"), str):
        # What follows the kernel's version names an owner's build of it.
        machine["system"] = machine["system"].partition("-")[0]
    if isinstance(info, dict):
        info["notes"] = [*run.info.notes, note]
    return told | {"thinned": {"frames_every": every, "left_out": left_out}}


def _named(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _named(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_named(inner) for inner in value]
    if not isinstance(value, str):
        return value
    return Path(value).name if value.startswith("/") else without_folders(value)


def thinned(frames: Iterator[TimedFrame], every: int) -> Iterator[TimedFrame]:
    """The first frame of each game, and those at least `every` tics after the last one of it that was kept."""
    due: dict[int, int] = {}
    for timed in frames:
        frame = timed.frame
        if frame.number >= due.get(frame.game, 0):
            due[frame.game] = frame.number + every
            yield timed


def _write_frames(run: RecordedRun, folder: Path, every: int) -> int:
    """How many of game 0 were written."""
    encoder, file, kept = FrameEncoder(LEVEL), AppendFile(folder / "frames.zst"), 0
    try:
        for timed in thinned(run.frames(), every):
            file.write(encoder.add(timed.frame, timed.seconds))
            kept += timed.frame.game == 0
        file.write(encoder.flush())
    finally:
        file.close()
    return kept


def _copy(source: Path, target: Path) -> None:
    """Nothing where there is no source."""
    try:
        if source.exists():
            shutil.copyfile(source, target)
    except OSError as error:
        raise cannot_write(target, error) from None
