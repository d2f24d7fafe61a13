"""Writes a run's checkpoints beside it: at every so many steps, when a person asks, and at the end."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from ofa_tui.checkpoint.checkpoint import Described, file_name, tensors_of
from ofa_tui.checkpoint.tensors import scratch_name, write_tensors
from ofa_tui.engine.config import RunState
from ofa_tui.engine.protocol import Saved
from ofa_tui.engine.resident import ResidentEngine
from ofa_tui.errors import OfaError

IDLE_S, SOON_S = 0.1, 0.01


class Saver:
    """A thread that waits for steps, has the engine copy its state, and writes it while the run goes on.

    Each outcome is reported to the engine, whose snapshots carry it. A checkpoint that cannot be written does not end
    the run.
    """

    def __init__(self, engine: ResidentEngine, folder: Path, described: Callable[[], Described], *, every: int = 0,
                 at_end: bool = False, keep: int = 3) -> None:
        """`every` 0: only when asked, and at the end if told so. `keep`: the newest ones of this run that stay, beside
        one of before the first step. `described` is asked once."""
        self.folder = folder
        self._engine, self._describe = engine, described
        self._every, self._at_end, self._keep = every, at_end or every > 0, keep
        self._described: Described | None = None
        self._asked, self._closing = threading.Event(), threading.Event()
        self._written: list[tuple[int, Path]] = []
        self._tried = -1
        self._thread = threading.Thread(target=self._work, name="checkpoints", daemon=True)

    def save_initial(self) -> None:
        """Writes the state before the engine's start. Raises OfaError, since nothing is lost yet."""
        error = self._write(self._engine.settled_state(), 0.0)
        if error:
            raise OfaError(error)

    def start(self) -> None:
        """Before or after the engine's."""
        with contextlib.suppress(OSError):
            for left in self.folder.glob(scratch_name(Path("step-*.safetensors")).name):
                left.unlink()
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
        if not (self._at_end or self._asked.is_set()):
            return
        with contextlib.suppress(OfaError):  # a run that ended inside a step has nothing to be kept
            state = self._engine.settled_state()
            if state.step not in (step for step, _ in self._written):
                self._write(state, 0.0)

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
            self._engine.report(Saved(-1, str(self.folder), error=f"no more checkpoints are written: {error}"))

    def _goes_on(self, asked: bool) -> bool:
        return not self._closing.is_set() and (asked or not self._asked.is_set())

    def _next_step(self) -> int | None:
        """The step to wait for: the next multiple, or the last step where the end is to be kept."""
        done, last = int(self._engine.look()["steps_done"]), self._engine.info.steps
        candidates = [(done // self._every + 1) * self._every] if self._every else []
        step = min([*candidates, *([last] if self._at_end else [])], default=last + 1)
        return step if step <= last and self._tried < last else None

    # --- files ----------------------------------------------------------------------------------------------------

    def _write(self, state: RunState, held_s: float) -> str:
        """Returns the sentence that says why it cannot be, or nothing."""
        path = self.folder / file_name(state.step)
        self._tried = state.step
        began = time.monotonic()
        size, error = 0, ""
        try:
            self._described = self._described or self._describe()
            self.folder.mkdir(parents=True, exist_ok=True)
            size = write_tensors(path, *tensors_of(state, self._described))
        except OSError as failure:
            error = (f"cannot write the checkpoint {path} ({failure.strerror or type(failure).__name__}); the run goes "
                     "on and older checkpoints are kept; make room for the next one")
        else:
            self._written.append((state.step, path))
            self._prune()
        self._engine.report(Saved(state.step, str(path), size, held_s * 1e3, time.monotonic() - began, error))
        return error

    def _prune(self) -> None:
        late = [entry for entry in self._written if entry[0] > 0]
        for entry in late[: -self._keep]:
            with contextlib.suppress(OSError):
                entry[1].unlink()
            self._written.remove(entry)
