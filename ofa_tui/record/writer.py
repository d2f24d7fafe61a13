"""A run folder, written while the run goes on.

    run.json        every setting, version, input hash, the machine     loss.csv        step,loss,lr,seconds
    progress.jsonl  a sample a second                                    sweeps.jsonl    held-out losses
    served.jsonl    every token with its piece of text                   events.jsonl    steering, for --events
    frames/*.png    a frame of game 0 now and then                       frames.zst      frames (frame_log.py)
    kernel.log      launch, states, roles, abort                         summary.json    at the end (summary.py)
    checkpoints.jsonl  what was written, and what could not be           ui.cast         the UI (--cast)
    ptxas.txt       the assembler's report on a GPU's kernel
    timeline.bin    what each SM ran and when, with --timeline (timeline_log.py)
    served.json.zst in place of served.jsonl in a record that was thinned (served_pack.py, thin.py)

Everything but the two JSON objects and the pictures is appended line by line, so a kill leaves what there was.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ofa_tui import __version__, abi
from ofa_tui.engine.protocol import Frame, RunInfo, ServedToken, Snapshot, StepLoss, TimelinePart
from ofa_tui.errors import OfaError
from ofa_tui.record import served_pack
from ofa_tui.record.busy import busy_shares, op_seconds
from ofa_tui.record.demo_log import DemoRecorder
from ofa_tui.record.events import to_line
from ofa_tui.record.files import AppendFile, write_json, write_whole
from ofa_tui.record.frame_log import FrameEncoder
from ofa_tui.record.kernel_log import roles_line, sweep_line
from ofa_tui.record.machine import describe_machine
from ofa_tui.record.png import encode_png
from ofa_tui.record.presence import Presence
from ofa_tui.record.summary import Tally, summarise
from ofa_tui.record.timeline_log import TimelineLog

FORMAT = 1
SAMPLE_EVERY_S = 1.0
LOSS_HEADER = "step,loss,lr,seconds"
CAST, LOSSES = "ui.cast", "loss.csv"
FILES = (
    "run.json", LOSSES, "progress.jsonl", "sweeps.jsonl", "served.jsonl", "events.jsonl", "frames.zst",
    "checkpoints.jsonl", "kernel.log", CAST, "summary.json", "timeline.bin", served_pack.NAME,
)  # fmt: skip


def claim_folder(folder: Path) -> None:
    """Makes the folder of a new record, before anything slow begins.

    Raises OfaError for a path that is a file, cannot be written, or holds a run already.
    """
    if os.path.exists(folder) and not os.path.isdir(folder):
        raise OfaError(f"{folder} is a file; give --record a folder that is new or empty")
    try:
        for name in FILES:
            if os.path.exists(folder / name) and (name == LOSSES or os.path.getsize(folder / name)):
                raise OfaError(f"{folder} already holds a {name}; give --record a folder that is new or empty")
        (folder / "frames").mkdir(parents=True, exist_ok=True)
        probe = folder / ".probe"
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise OfaError(f"cannot write into {folder} ({reason}); give --record a folder that can be written") from None


class Companion(Protocol):
    """What is written beside the record's own files, from the same snapshots."""

    def write(self, snapshot: Snapshot) -> None:
        """Takes every snapshot in order. Raises OfaError where it cannot be written."""
        ...

    def close(self) -> None:
        """A second call changes nothing. Raises OfaError."""
        ...


class RunWriter:
    """Takes the snapshots of one run and writes them down. Needs neither a terminal nor a GPU."""

    def __init__(
        self, folder: Path, settings: Mapping[str, Any], info: RunInfo, *, frame_every_s: float = 10.0,
        demo: DemoRecorder | None = None,
    ):
        """`settings` goes into run.json as it is (plain values: options, corpus, WAD, hashes). `demo` gets Doom's
        commands.

        Raises OfaError as `claim_folder` does, and for a full disk.
        """
        claim_folder(folder)
        # First of all: of two that begin in one folder at the same time, one makes this file.
        self._loss = AppendFile(folder / LOSSES, new=True)
        self._presence = Presence(folder)
        self.folder = folder
        self.info = info
        self.tally = Tally(info.tokens_per_step)
        self._frame_every_s = frame_every_s
        self._demo = demo
        self.companion: Companion | None = None
        """Gets every snapshot from now on, and is closed with the record."""
        write_json(
            folder / "run.json",
            {
                "format": FORMAT,
                "version": __version__,
                "started": datetime.now(UTC).isoformat(timespec="seconds"),
                "machine": describe_machine(),
                "run": dataclasses.asdict(info),
                **settings,
            },
        )
        self._progress = AppendFile(folder / "progress.jsonl")
        self._sweeps = AppendFile(folder / "sweeps.jsonl")
        self._served = AppendFile(folder / "served.jsonl")
        self._events = AppendFile(folder / "events.jsonl")
        self._checkpoints = AppendFile(folder / "checkpoints.jsonl")
        self._frames = AppendFile(folder / "frames.zst")
        self._log = AppendFile(folder / "kernel.log")
        self._timeline = TimelineLog(folder)
        self._encoder = FrameEncoder()
        self._newest_frame: Frame | None = None
        self._others: dict[int, Frame] = {}
        """Newest frames of games but the first that are not written yet."""
        self._picture: tuple[int, float] | None = None  # number and seconds of the last PNG
        self._sample: Snapshot | None = None
        self._state = ""
        self._roles = np.zeros(0, np.uint32)
        self._finished = False
        self._loss.write_lines([LOSS_HEADER])
        self._log.write_lines([f"launch: {info.backend}, {info.device}, {info.n_sms} SMs, preset {info.preset}"])

    def write(self, snapshot: Snapshot) -> None:
        """Writes down what is new. Raises OfaError when it cannot (full disk, folder gone)."""
        self.tally.add(snapshot)
        self._loss.write_lines([_loss_line(entry) for entry in snapshot.losses])
        self._sweeps.write_objects([dataclasses.asdict(sweep) for sweep in snapshot.sweeps])
        self._served.write_objects([_served_entry(token) for token in snapshot.served])
        self._events.write_lines([to_line(applied) for applied in snapshot.applied])
        self._checkpoints.write_objects([dataclasses.asdict(saved) for saved in snapshot.saved])
        self._timeline.write(snapshot.timeline)
        for saved in snapshot.saved:
            self.log(f"{snapshot.seconds:.3f} s: {saved.text()}")
        if self._demo and snapshot.commands:
            self._demo.write(snapshot.commands[0])
        for frame in snapshot.frames:
            self._write_frame(frame, snapshot.seconds)
        self._others |= {frame.game: frame for frame in snapshot.others}
        self._write_changes(snapshot)
        if self._sample is None or snapshot.seconds - self._sample.seconds >= SAMPLE_EVERY_S:
            self._write_sample(snapshot)
        if self.companion:
            self.companion.write(snapshot)

    def log(self, text: str) -> None:
        """A line, or several, in kernel.log."""
        self._log.write_lines(text.splitlines())

    def add_text(self, name: str, text: str) -> None:
        """A file of its own, such as the assembler's report on a GPU's kernel. Raises OfaError."""
        write_whole(self.folder / name, text.encode())

    def finish(self, exit_reason: str, message: str = "") -> dict[str, Any]:
        """Writes what is held back and summary.json; gives the summary. A second call changes nothing.

        Raises OfaError when it cannot be written; the folder reads all the same.
        """
        summary = summarise(self.tally, exit_reason, message)
        if self._finished:
            return summary
        self._finished = True
        files = (self._loss, self._progress, self._sweeps, self._served, self._events, self._checkpoints, self._frames,
                 self._log)
        try:
            if self.companion:
                self.companion.close()
            self._write_others(self.tally.seconds)
            self._frames.write(self._encoder.flush())
            if self._newest_frame and self._picture and self._newest_frame.number != self._picture[0]:
                self._write_picture(self._newest_frame)
            if self._sample and self._sample.sms is not None:
                self.log(_sm_table(self._sample))
            self.log(f"{self.tally.seconds:.3f} s: {exit_reason}{': ' + message if message else ''}")
            write_json(self.folder / "summary.json", summary)
        finally:
            self._presence.close()
            for file in files:
                file.close()
            self._timeline.close()
            if self._demo:
                self._demo.close()
        return summary

    def _write_frame(self, frame: Frame, seconds: float) -> None:
        self._frames.write(self._encoder.add(frame, seconds))
        self._newest_frame = frame
        if self._picture is None or seconds - self._picture[1] >= self._frame_every_s:
            self._write_picture(frame)
            self._picture = (frame.number, seconds)

    def _write_others(self, seconds: float) -> None:
        for frame in self._others.values():
            self._frames.write(self._encoder.add(frame, seconds))
        self._others = {}

    def _write_picture(self, frame: Frame) -> None:
        write_whole(self.folder / "frames" / f"{frame.number:08}.png", encode_png(frame.pixels, frame.palette))

    def _write_changes(self, snapshot: Snapshot) -> None:
        if snapshot.state != self._state:
            self._state = snapshot.state
            self.log(f"{snapshot.seconds:.3f} s: {snapshot.state}{' ' + snapshot.message if snapshot.message else ''}")
        if not np.array_equal(snapshot.roles, self._roles):
            self._roles = snapshot.roles.copy()
            self.log(roles_line(snapshot.seconds, snapshot.roles))
        for sweep in snapshot.sweeps:
            self.log(sweep_line(snapshot.seconds, sweep))

    def _write_sample(self, snapshot: Snapshot) -> None:
        before = self._sample
        interval = snapshot.seconds - before.seconds if before else snapshot.seconds
        entry: dict[str, Any] = {
            "seconds": round(snapshot.seconds, 3),
            "state": snapshot.state,
            "step": snapshot.steps_done,
            "version": snapshot.version,
            "tokens": snapshot.steps_done * self.info.tokens_per_step,
            "tokens_per_s": round(snapshot.train_tokens_per_s, 1),
            "step_ms": round(snapshot.step_ms, 3),
            "served": snapshot.tokens_served,
            "served_per_s": round(snapshot.served_per_s, 2),
            "frames_per_s": round(snapshot.frames_per_s, 2),
            "roles": [abi.ROLES[role] for role in snapshot.roles],
        }
        if snapshot.sms is not None:
            earlier = before.sms if before else None
            shares = busy_shares(earlier, snapshot.sms, interval)
            entry["busy"] = [round(float(share), 3) for share in shares]
            entry["op_seconds"] = op_seconds(earlier, snapshot.sms)
        if snapshot.device:
            entry["device"] = {name: round(value, 3) for name, value in snapshot.device.items()}
        # A block of frames is closed at least this often, so that slow or paused runs are on disk as well; before the
        # sample, so that whoever follows the record finds all that is older than its newest sample.
        self._write_others(snapshot.seconds)
        self._frames.write(self._encoder.flush())
        self._progress.write_objects([entry])
        sms = snapshot.sms.copy() if snapshot.sms is not None else None
        self._sample = dataclasses.replace(snapshot, sms=sms, losses=[], served=[], frames=[], others=[], commands=(),
                                           timeline=TimelinePart())


def _loss_line(entry: StepLoss) -> str:
    # str of a float32 is the shortest decimal that reads back as the same bits.
    return f"{entry.step},{np.float32(entry.loss)!s},{entry.learning_rate!r},{entry.seconds:.6f}"


def _served_entry(token: ServedToken) -> dict[str, Any]:
    return {**dataclasses.asdict(token), "seconds": round(token.seconds, 6)}


def _sm_table(snapshot: Snapshot) -> str:
    rows = ["SM  role   tasks done  waiting s  working s"]
    for sm, status in enumerate(snapshot.sms if snapshot.sms is not None else ()):
        role = abi.ROLES[int(status["role"])] if int(status["role"]) < len(abi.ROLES) else "?"
        tasks, waiting, working = status["tasks_done"], status["wait_ns"] / 1e9, status["op_ns"].sum() / 1e9
        rows.append(f"{sm:<3} {role:<6} {int(tasks):>10}  {waiting:>9.3f}  {working:>9.3f}")
    return "\n".join(rows)
