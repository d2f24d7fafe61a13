"""Writes a run's checkpoints beside it: at every so many steps, when a person asks, and at the end."""

from __future__ import annotations

import contextlib
import errno
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from ofa_tui.checkpoint.checkpoint import Described, file_name, tensors_of
from ofa_tui.checkpoint.folder import Claim
from ofa_tui.checkpoint.tensors import write_tensors
from ofa_tui.engine.config import RunState
from ofa_tui.engine.protocol import Saved
from ofa_tui.engine.resident import ResidentEngine
from ofa_tui.errors import OfaError

IDLE_S, SOON_S = 0.1, 0.01
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
NOT_ALLOWED = (errno.EROFS, errno.EACCES, errno.EPERM)
MOST_STEPS_SAID = 5


class Saver:
    """A thread that waits for steps, has the engine copy its state, and writes it while the run goes on.

    Each outcome is reported to the engine, whose snapshots carry it. A checkpoint that cannot be written does not end
    the run; `missed` says at its end which those are.
    """

    def __init__(self, engine: ResidentEngine, folder: Path | Claim, described: Callable[[], Described], *,
                 every: int = 0, at_end: bool = False, keep: int = 3, earlier: Iterable[tuple[int, Path]] = ()) -> None:
        """`folder` is claimed with the first checkpoint where it is not yet. `every` 0: only when asked, and at the end
        if told so. `keep`: the newest ones of this run that stay, beside one of before the first step; `earlier`,
        (step, file) of the run that is resumed, count as its own. `described` is asked once."""
        self._claim = folder if isinstance(folder, Claim) else Claim(folder)
        self.folder = self._claim.folder
        self._engine, self._describe = engine, described
        self._every, self._at_end, self._keep = every, at_end or every > 0, keep
        self._described: Described | None = None
        self._asked, self._closing = threading.Event(), threading.Event()
        self._kept = dict(earlier)
        self._written: set[int] = set()
        self._failed: dict[int, str] = {}
        self._failing = False
        self._tried = -1
        self._thread = threading.Thread(target=self._work, name="checkpoints", daemon=True)

    def save_initial(self) -> None:
        """Writes the state before the engine's start. Raises OfaError, since nothing is lost yet."""
        state = self._engine.settled_state()
        failure = self._write(state, 0.0)
        if failure:
            raise OfaError(f"cannot write the checkpoint {self._path(state.step)} ({failure}); "
                           "give a folder that can be written and has room with --checkpoints")

    def start(self) -> None:
        """Before or after the engine's."""
        self._thread.start()

    def ask(self) -> None:
        """For a checkpoint at the next step."""
        self._asked.set()

    def close(self) -> None:
        """After the engine's stop: finishes what is being written and writes the end, where told so. Safe to call
        twice."""
        if self._closing.is_set():
            return
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._at_end or self._asked.is_set():
            self._save_end()
        self._claim.release()

    def _save_end(self) -> None:
        try:
            state = self._engine.settled_state()
        except OfaError as error:
            self._fail(int(self._engine.look()["steps_done"]), _reason(error))
            return
        if state.step not in self._written and state.step != self._tried:
            self._write(state, 0.0)

    def news(self, saved: Iterable[Saved]) -> list[str]:
        """What a person is told of these outcomes: of failures in a row the first one."""
        told = []
        for outcome in saved:
            if not (outcome.error and self._failing):
                told.append(outcome.text())
            self._failing = bool(outcome.error)
        return told

    def missed(self) -> str:
        """One sentence on the checkpoints that are not there though they were to be written; empty where all are."""
        if not self._failed:
            return ""
        steps = sorted(self._failed)
        which = ", ".join(map(str, steps[:MOST_STEPS_SAID])) + (
            f" and {len(steps) - MOST_STEPS_SAID} later ones" if len(steps) > MOST_STEPS_SAID else "")
        newest = f"the newest one is {self._path(max(self._written))}" if self._written else "none was written"
        return (f"the checkpoint{'s' * (len(steps) > 1)} of step{'s' * (len(steps) > 1)} {which} could not be saved "
                f"({self._failed[steps[-1]]}); {newest}")

    # --- the thread -----------------------------------------------------------------------------------------------

    def _work(self) -> None:
        try:
            while not self._closing.is_set():
                if not self._engine.running:
                    self._closing.wait(SOON_S)
                    continue
                asked = self._asked.is_set()
                step = 0 if asked else self._next_step()
                if step is None:
                    self._asked.wait(IDLE_S)
                    continue
                captured = self._engine.capture(step, partial(self._goes_on, asked))
                if captured is None:
                    continue
                if asked:
                    self._asked.clear()
                self._write(captured.state, captured.held_s)
        except OfaError as error:
            self._fail(int(self._engine.look()["steps_done"]), f"{_reason(error)}, so that no more are written")

    def _goes_on(self, asked: bool) -> bool:
        return not self._closing.is_set() and (asked or not self._asked.is_set())

    def _next_step(self) -> int | None:
        """The step to wait for: the next multiple, or the last step where the end is to be kept."""
        done, last = int(self._engine.look()["steps_done"]), self._engine.info.steps
        candidates = [(done // self._every + 1) * self._every] if self._every else []
        step = min([*candidates, *([last] if self._at_end else [])], default=last + 1)
        return step if step <= last and self._tried < last else None

    # --- files ----------------------------------------------------------------------------------------------------

    def _path(self, step: int) -> Path:
        return self.folder / file_name(step)

    def _write(self, state: RunState, held_s: float) -> str:
        """Returns why it cannot be, or nothing."""
        step = self._tried = state.step
        began = time.monotonic()
        try:
            self._described = self._described or self._describe()
            self._claim.take()
            size = write_tensors(self._path(step), *tensors_of(state, self._described))
        except (OSError, MemoryError, OfaError) as error:
            return self._fail(step, _reason(error), _advice(error))
        self._kept[step] = self._path(step)
        self._written.add(step)
        self._failed.pop(step, None)
        self._prune()
        self._engine.report(Saved(step, str(self._path(step)), size, held_s * 1e3, time.monotonic() - began))
        return ""

    def _fail(self, step: int, reason: str, advice: str = "") -> str:
        self._failed[step] = reason
        goes_on = "" if self._closing.is_set() else "the run goes on and "
        path = str(self._path(step))
        error = f"cannot write the checkpoint {path} ({reason}); {goes_on}older checkpoints are kept{advice}"
        self._engine.report(Saved(step, path, error=error))
        return reason

    def _prune(self) -> None:
        late = sorted(step for step in self._kept if step > 0)
        for step in late[: -self._keep]:
            with contextlib.suppress(OSError):
                self._kept.pop(step).unlink()


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).partition(";")[0] or type(error).__name__


def _advice(error: Exception) -> str:
    number = error.errno if isinstance(error, OSError) else None
    if number in NO_ROOM:
        return "; make room for the next one"
    if number in NOT_ALLOWED:
        return "; make the folder writable for the next one"
    return ""
