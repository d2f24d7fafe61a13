"""A run without a terminal: the engine's snapshots go to a writer until the run ends or a signal ends it."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from types import FrameType

from ofa_tui.checkpoint.saver import Saver
from ofa_tui.engine.protocol import Engine, Snapshot
from ofa_tui.errors import AbortedError, OfaError
from ofa_tui.progress import Progress
from ofa_tui.record.summary import Tally, summarise
from ofa_tui.record.writer import RunWriter

POLLS_PER_S = 70
"""Twice the frame rate: a frame is written within half of its time."""

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


STOPPING_S = 0.05
"""The stop that a process asked for reaches all its threads well within this time."""


class _Caught(list[int]):
    """The signals that came, in order, but for SIGTSTP: `stop` tells whether that came last."""

    stop = False


@contextlib.contextmanager
def _catching_signals() -> Iterator[_Caught]:
    """While it is open none of the signals ends or stops the process."""
    caught = _Caught()

    def note(number: int, frame: FrameType | None) -> None:
        caught.append(number)

    def note_stop(number: int, frame: FrameType | None) -> None:
        caught.stop = True

    before = {number: signal.signal(number, note) for number in SIGNALS}
    before[signal.SIGTSTP] = signal.signal(signal.SIGTSTP, note_stop)
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def record(
    engine: Engine,
    writer: RunWriter,
    saver: Saver | None = None,
    *,
    progress: Progress | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Starts the engine, records until its training is finished, stops it and writes the summary.

    `saver` writes checkpoints meanwhile; where it keeps the end, it does so after a signal too.

    Returns 0, or 128 + N when signal N ended the run (the record is complete up to there). Must be called from the
    main thread. Raises AbortedError when the kernel stopped itself (the reason is in kernel.log too), and OfaError
    when the engine cannot start or the record cannot be written; the engine is stopped in every case.
    """
    progress = progress or Progress("recording", total=engine.info.steps)
    exit_reason, message = "failed", ""
    with _catching_signals() as caught:
        try:
            engine.start()
            if saver:
                saver.start()
            last = _follow(engine, writer, saver, progress, caught, sleep)
            if last.state == "aborted":
                raise AbortedError(_reason(last, writer))
            over = last.state == "finished" or not caught
            exit_reason = last.state if over else signal.Signals(caught[0]).name
            engine.stop()
            if saver:
                saver.close()
            _write(engine, writer, saver, progress)
        except AbortedError as error:
            exit_reason, message = "aborted", str(error)
            raise
        except OfaError as error:
            message = str(error)
            raise
        finally:
            engine.stop()
            if saver:
                saver.close()
            # After a first failure the summary is written if that is still possible; the failure is what counts.
            try:
                with contextlib.suppress(OfaError) if message else contextlib.nullcontext():
                    writer.finish(exit_reason, message)
            finally:
                progress.close(_closing_note(writer.tally, exit_reason))
    return 128 + caught[0] if caught and exit_reason != "finished" else 0


def _follow(
    engine: Engine,
    writer: RunWriter,
    saver: Saver | None,
    progress: Progress,
    caught: _Caught,
    sleep: Callable[[float], None],
) -> Snapshot:
    """Writes every snapshot until one says that the run is over, or a signal comes."""
    while True:
        snapshot = _write(engine, writer, saver, progress)
        if snapshot.state in ("finished", "stopped", "aborted") or caught:
            return snapshot
        progress.update(snapshot.steps_done, _note(snapshot, engine, writer))
        if caught.stop:
            caught.stop = False
            progress.end()
            _stop_process(engine)
            writer.log(f"{snapshot.seconds:.3f} s: stopped by SIGTSTP, and continued")
        sleep(1 / POLLS_PER_S)


def _stop_process(engine: Engine) -> None:
    """Until SIGCONT. The run is held: a GPU's kernel would go on with nobody to write down what it does."""
    engine.pause(True)
    noting = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTSTP)
    time.sleep(STOPPING_S)
    signal.signal(signal.SIGTSTP, noting)
    engine.pause(False)


def _write(engine: Engine, writer: RunWriter, saver: Saver | None, progress: Progress) -> Snapshot:
    snapshot = engine.poll()
    writer.write(snapshot)
    for text in saver.news(snapshot.saved) if saver else ():
        progress.message(text)
    return snapshot


def _reason(last: Snapshot, writer: RunWriter) -> str:
    """One sentence; the kernel's whole report is in kernel.log."""
    cause = last.message.splitlines()[0] if last.message else "the kernel stopped itself"
    return f"{cause}; {writer.folder / 'kernel.log'} says what every SM was doing"


def _note(snapshot: Snapshot, engine: Engine, writer: RunWriter) -> str:
    parts = [f"step {snapshot.steps_done}/{engine.info.steps}"]
    if writer.tally.last_losses:
        parts.append(f"loss {writer.tally.last_losses[-1].loss:.3f}")
    parts.append(f"{snapshot.train_tokens_per_s:,.0f} tokens/s")
    if engine.info.games:
        parts.append(f"{snapshot.frames_per_s:.1f} frames/s")
    if snapshot.steps_done >= engine.info.steps:
        parts.append("measuring the held-out text")
    return ", ".join(parts)


def _closing_note(tally: Tally, exit_reason: str) -> str:
    summary = summarise(tally, exit_reason)
    note = f"{'ended by ' if exit_reason.startswith('SIG') else ''}{exit_reason} after {summary['steps']} steps"
    if tally.first_loss and tally.first_loss.step:
        note += f", from step {tally.first_loss.step} to {tally.last_losses[-1].step + 1}"
    if summary["last_loss"] is not None:
        note += f", loss {summary['last_loss']:.3f}"
    if summary["held_out_loss"] is not None:
        note += f", held out {summary['held_out_loss']:.3f}"
    return note
