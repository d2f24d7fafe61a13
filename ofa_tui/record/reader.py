"""Reads a run folder: whole, still being written, or cut anywhere by a kill or a full disk."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ofa_tui.engine.protocol import AppliedEvent, RunInfo, ServedToken, StepLoss, SweepLoss
from ofa_tui.errors import OfaError
from ofa_tui.record.events import from_line
from ofa_tui.record.frame_log import TimedFrame, read_frames
from ofa_tui.record.summary import Tally, summarise

T = TypeVar("T")
KILLED = "killed"
"""Exit reason of a run whose record has no summary: it was killed, or it still goes on."""


class RecordedRun:
    """The contents of a run folder. What is missing or cut is left out, never an error."""

    def __init__(self, folder: Path):
        """Raises OfaError where there is no recorded run."""
        self.folder = folder
        if not folder.is_dir():
            what = "is a file" if folder.exists() else "names no folder that is there"
            raise OfaError(f"{folder} {what}; give the folder that --record wrote")
        if not any((folder / name).exists() for name in ("run.json", "loss.csv")):
            raise OfaError(f"{folder} holds no recorded run; give the folder that --record wrote")

    @cached_property
    def run(self) -> dict[str, Any]:
        """run.json."""
        return _read_object(self.folder / "run.json")

    @cached_property
    def info(self) -> RunInfo:
        """The run's RunInfo, with empty values where run.json is damaged."""
        defaults: dict[str, Any] = {
            field.name: {"str": "", "int": 0}.get(str(field.type), ()) for field in fields(RunInfo)
        }
        known = self.run.get("run")
        known = known if isinstance(known, dict) else {}
        values = {name: known.get(name, default) for name, default in defaults.items()}
        values["notes"] = tuple(values["notes"])
        return RunInfo(**values)

    @cached_property
    def losses(self) -> list[StepLoss]:
        return _parsed(_whole_lines(self.folder / "loss.csv")[1:], _loss)

    @cached_property
    def sweeps(self) -> list[SweepLoss]:
        return _parsed(_whole_lines(self.folder / "sweeps.jsonl"), lambda line: SweepLoss(**json.loads(line)))

    @cached_property
    def served(self) -> list[ServedToken]:
        return _parsed(_whole_lines(self.folder / "served.jsonl"), lambda line: ServedToken(**json.loads(line)))

    @cached_property
    def events(self) -> list[AppliedEvent]:
        return _parsed(_whole_lines(self.folder / "events.jsonl"), _applied)

    @cached_property
    def samples(self) -> list[dict[str, Any]]:
        """progress.jsonl: each has `seconds` at least."""
        return _parsed(_whole_lines(self.folder / "progress.jsonl"), _sample)

    def frames(self) -> Iterator[TimedFrame]:
        """The frames of all games, in order, read from disk as they are asked for."""
        return read_frames(self.folder / "frames.zst")

    @cached_property
    def summary(self) -> dict[str, Any]:
        """summary.json; computed from the rest, with the exit reason "killed", where there is none."""
        return self._written_summary or self._recomputed()

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
            KILLED: "where the record breaks off: the run was killed, or it still goes on",
        }
        return known.get(self.exit_reason, f"where the run {self.exit_reason}") + (
            f": {self.message}" if self.message else "")

    @cached_property
    def seconds(self) -> float:
        """How long the run took, as far as its lines tell."""
        times = [0.0, *(entry.seconds for entry in self.losses[-1:]), *(entry.seconds for entry in self.served[-1:])]
        times += [float(sample["seconds"]) for sample in self.samples[-1:]]
        return max([*times, float(self._written_summary.get("seconds", 0.0))])

    @cached_property
    def _written_summary(self) -> dict[str, Any]:
        return _read_object(self.folder / "summary.json")

    def _recomputed(self) -> dict[str, Any]:
        tally = Tally(self.info.tokens_per_step, losses=self.losses, sweeps=self.sweeps)
        for token in self.served:
            tally.add_served(token.text, token.first, token.version)
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


def _whole_lines(path: Path) -> list[str]:
    """The lines that end in a newline: the last one may have been cut."""
    try:
        return path.read_bytes().decode("utf-8", "replace").split("\n")[:-1]
    except OSError:
        return []


def _parsed(lines: list[str], parse: Callable[[str], T]) -> list[T]:
    """What can be parsed; a full disk may leave half a line before a whole one."""
    result = []
    for line in lines:
        try:
            result.append(parse(line))
        except (ValueError, TypeError, KeyError, OfaError):
            continue
    return result


def _loss(line: str) -> StepLoss:
    step, loss, learning_rate, seconds = line.split(",")
    return StepLoss(int(step), float(np.float32(loss)), float(learning_rate), float(seconds))


def _applied(line: str) -> AppliedEvent:
    event = from_line(line)
    return AppliedEvent(event, event.when)


def _sample(line: str) -> dict[str, Any]:
    sample = json.loads(line)
    float(sample["seconds"])
    return sample
