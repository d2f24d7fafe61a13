"""Reads a run folder: whole, still being written, or cut anywhere by a kill or a full disk."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ofa_tui import abi
from ofa_tui.engine.protocol import AppliedEvent, RunInfo, ServedToken, StepLoss, SweepLoss
from ofa_tui.errors import OfaError
from ofa_tui.program.ops import OPCODES
from ofa_tui.record import served_pack
from ofa_tui.record.events import from_line
from ofa_tui.record.frame_log import FrameFile, TimedFrame
from ofa_tui.record.kernel_log import parse_change
from ofa_tui.record.lines import GrowingLines
from ofa_tui.record.presence import writer_is_gone
from ofa_tui.record.summary import Tally, summarise

KILLED = "killed"
"""Exit reason of a run whose record has no summary: it was killed, or it still goes on."""
ALWAYS_THERE = ("loss.csv", "progress.jsonl", "frames.zst")
"""Files that a record has from its beginning on, whatever ran."""
RATES = ("tokens_per_s", "step_ms", "served_per_s", "frames_per_s")


def ordinal(number: int) -> str:
    """"1st", "2nd", "11th"."""
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th") if number % 100 not in (11, 12, 13) else "th"
    return f"{number}{ending}"


class RecordedRun:
    """The contents of a run folder, as of the last `refresh`. What is missing or cut is left out, never an error."""

    def __init__(self, folder: Path):
        """Raises OfaError where there is no recorded run."""
        self.folder = folder
        if not folder.is_dir():
            what = "is a file" if folder.exists() else "names no folder that is there"
            raise OfaError(f"{folder} {what}; give the folder that --record wrote")
        if not any((folder / name).exists() for name in ("run.json", "loss.csv")):
            raise OfaError(f"{folder} holds no recorded run; give the folder that --record wrote")
        self._losses = GrowingLines(folder / "loss.csv", _loss, heading=True)
        self._sweeps = GrowingLines(folder / "sweeps.jsonl", _sweep)
        self._served = GrowingLines(folder / "served.jsonl", _served)
        self._damaged_pack = self._read_pack()
        self._events = GrowingLines(folder / "events.jsonl", _applied)
        self._samples = GrowingLines(folder / "progress.jsonl", _sample)
        self._log = GrowingLines(folder / "kernel.log", parse_change)
        self.frame_file = FrameFile(folder / "frames.zst")
        self._written_summary: dict[str, Any] = {}
        self.killed = False
        """Whether its writer is known to have ended without a summary."""
        self.refresh()

    def check_not_empty(self) -> None:
        """Raises OfaError where nothing of a run can be read: another program's folder, or one that lost all."""
        known = isinstance(self.run.get("run"), dict)
        if not (known or self.losses or self.samples or self.served or self.frame_file.blocks):
            raise OfaError(f"{self.folder} holds no recorded run that can be read: no run in its run.json, and no "
                           "losses, samples, texts or frames; give the folder that --record wrote")

    def _read_pack(self) -> str:
        """Takes in the served text of a thinned record; the name of its file where it is damaged, else empty."""
        try:
            data = (self.folder / served_pack.NAME).read_bytes()
        except OSError:
            return ""
        try:
            self._served.entries += served_pack.unpack_served(data)
        except ValueError:
            return served_pack.NAME
        return ""

    def refresh(self) -> None:
        """Reads what was written since."""
        # First: a writer that was gone before the summary is looked for did not write one.
        gone = writer_is_gone(self.folder)
        # The summary is written last, and a line of progress.jsonl after all that came before it.
        self._written_summary = self._written_summary or _read_object(self.folder / "summary.json")
        for part in (self._samples, self._losses, self._sweeps, self._served, self._events, self._log):
            part.refresh()
        self.frame_file.refresh()
        self.killed = gone and not self._written_summary

    @cached_property
    def run(self) -> dict[str, Any]:
        """run.json."""
        return _read_object(self.folder / "run.json")

    @cached_property
    def info(self) -> RunInfo:
        """The run's RunInfo, with empty values where run.json is damaged."""
        known = self.run.get("run")
        return _run_info(known if isinstance(known, dict) else {})

    @property
    def frames_every(self) -> int:
        """1 where all frames are kept; else how many tics at least lie between two of them (thin.py)."""
        told = self.run.get("thinned")
        every = told.get("frames_every") if isinstance(told, dict) else 1
        return every if isinstance(every, int) and every > 0 else 1

    @property
    def losses(self) -> list[StepLoss]:
        return self._losses.entries

    @property
    def sweeps(self) -> list[SweepLoss]:
        return self._sweeps.entries

    @property
    def sweep_seconds(self) -> list[float]:
        """When each of `sweeps` came; empty for records that do not tell."""
        return [change.seconds for change in self._log.entries if not change.roles]

    @property
    def served(self) -> list[ServedToken]:
        return self._served.entries

    @property
    def events(self) -> list[AppliedEvent]:
        return self._events.entries

    @property
    def samples(self) -> list[dict[str, Any]]:
        """progress.jsonl; what a line lacks is 0 or empty."""
        return self._samples.entries

    @property
    def role_changes(self) -> list[tuple[float, tuple[int, ...]]]:
        """(seconds, role of each SM) from then on."""
        return [(change.seconds, change.roles) for change in self._log.entries if change.roles]

    def frames(self) -> Iterator[TimedFrame]:
        """The frames of all games, in order, read from disk as they are asked for."""
        return iter(self.frame_file)

    @property
    def summary(self) -> dict[str, Any]:
        """summary.json; computed from the rest, with the exit reason "killed", where there is none."""
        return self._written_summary or self._recomputed()

    @property
    def ended(self) -> bool:
        """Whether the record says how the run ended."""
        return bool(self._written_summary)

    @property
    def damage(self) -> str:
        """One sentence on what is known to be damaged or missing; empty where nothing is."""
        lines = (self._samples, self._losses, self._sweeps, self._served, self._events)
        parts = [] if self.run else ["run.json"]
        parts += [f"{part.damaged} lines of {part.path.name}" for part in lines if part.damaged > 1]
        parts += [self._damaged_pack] if self._damaged_pack else []
        parts += [f"a line of {part.path.name}" for part in lines if part.damaged == 1]
        parts += [f"the last line of {part.path.name}" for part in lines if part.torn]
        parts += [self.frame_file.damage] if self.frame_file.damage else []
        parts += [f"the end of {self.frame_file.path.name}"] if self.frame_file.torn and not parts else []
        missing = [name for name in ALWAYS_THERE if not (self.folder / name).exists()] if self.ended else []
        said = [f"damaged and left out: {', '.join(parts)}"] if parts else []
        said += [f"missing: {', '.join(missing)}"] if missing else []
        return "; ".join([*said, "the rest is shown"]) if said else ""

    @property
    def exit_reason(self) -> str:
        """"finished", "aborted", "failed", "stopped", a signal's name, or KILLED."""
        return str(self._written_summary.get("exit_reason", KILLED))

    @property
    def complete(self) -> bool:
        """Whether the run came to its own end."""
        return self.exit_reason == "finished"

    @property
    def message(self) -> str:
        """Why an aborted or failed run ended."""
        return str(self._written_summary.get("message", ""))

    @property
    def ending(self) -> str:
        """How the record ends, as part of a sentence that begins with a step."""
        if self.exit_reason.startswith("SIG"):
            return f"where {self.exit_reason} ended the run"
        known = {
            "finished": "where the run was finished",
            "stopped": "where the run was stopped",
            "recording stopped": "where the recording was stopped and the run went on",
            KILLED: "where the run was killed" if self.killed
            else "where the record breaks off: the run was killed, or it still goes on",
        }
        return known.get(self.exit_reason, f"where the run {self.exit_reason}") + (
            f": {self.message}" if self.message else "")

    @property
    def seconds(self) -> float:
        """How long the run took, as far as its lines tell."""
        times = [0.0, *(entry.seconds for entry in self.losses[-1:]), *(entry.seconds for entry in self.served[-1:])]
        times += [float(sample["seconds"]) for sample in self.samples[-1:]]
        return max([*times, float(self._written_summary.get("seconds", 0.0))])

    def _recomputed(self) -> dict[str, Any]:
        tally = Tally(self.info.tokens_per_step, sweeps=self.sweeps)
        tally.add_losses(self.losses)
        for token in self.served:
            tally.add_served(token)
        for timed in self.frames():
            if timed.frame.game:
                continue
            tally.add_frame(timed.frame.number, timed.seconds)
        tally.seconds = max(self.seconds, tally.last_frame[1] if tally.last_frame else 0.0)
        return summarise(tally, KILLED)


def _read_object(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _run_info(known: dict[str, Any]) -> RunInfo:
    """Values of another kind than they should be count as missing."""
    kinds: dict[str, type] = {"str": str, "int": int}
    values: dict[str, Any] = {}
    for field in fields(RunInfo):
        kind = kinds.get(str(field.type), list)
        value = known.get(field.name)
        fits = 0 <= value < 2**63 if isinstance(value, int) and kind is int else isinstance(value, kind)
        values[field.name] = value if fits else kind()
    values["notes"] = tuple(map(str, values["notes"]))
    # Records from before there were several streams do not say how many.
    streams = min(max(values["streams"], 1), abi.MAX_STREAMS)
    return RunInfo(**values | {
        "n_sms": min(values["n_sms"], abi.MAX_SMS), "games": min(values["games"], abi.MAX_GAMES),
        "streams": streams, "telling": min(max(values["telling"], 1), streams),
    })


def _finite(seconds: float) -> float:
    if not math.isfinite(seconds):
        raise ValueError("no time")
    return seconds


def _loss(line: str) -> StepLoss:
    step, loss, learning_rate, seconds = line.split(",")
    return StepLoss(int(step), float(np.float32(loss)), float(learning_rate), _finite(float(seconds)))


def _sweep(line: str) -> SweepLoss:
    sweep = SweepLoss(**json.loads(line))
    return replace(sweep, step=int(sweep.step), loss=float(sweep.loss))


def _served(line: str) -> ServedToken:
    token = ServedToken(**json.loads(line))
    _finite(token.seconds)
    if not 0 <= token.stream < abi.MAX_STREAMS:
        raise ValueError("no stream")
    return replace(token, text=str(token.text), index=int(token.index), token=int(token.token),
                   version=int(token.version), story=int(token.story), position=int(token.position),
                   from_prompt=bool(token.from_prompt), first=bool(token.first), seconds=float(token.seconds),
                   stream=int(token.stream))


def _applied(line: str) -> AppliedEvent:
    event = from_line(line)
    return AppliedEvent(event, event.when)


def _sample(line: str) -> dict[str, Any]:
    sample: dict[str, Any] = json.loads(line)
    return sample | {
        "seconds": _finite(float(sample["seconds"])),
        **{name: _finite(float(sample.get(name, 0))) for name in RATES},
        **{name: int(sample.get(name, 0)) for name in ("step", "version", "served")},
        "busy": [_finite(float(share)) for share in sample.get("busy", [])],
        "roles": [name if name in abi.ROLES else "idle" for name in sample.get("roles", [])],
        "op_seconds": {
            name: _finite(float(spent)) for name, spent in sample.get("op_seconds", {}).items() if name in OPCODES
        },
        "device": {name: _finite(float(value)) for name, value in sample.get("device", {}).items()},
    }
