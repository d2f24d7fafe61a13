"""A run in a terminal that cannot move its cursor: lines, as --record prints them, to its end."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

from ofa_tui.console import say
from ofa_tui.engine.protocol import Engine, Snapshot
from ofa_tui.errors import AbortedError
from ofa_tui.progress import Progress
from ofa_tui.signals import SignalledError, signals_raise
from ofa_tui.tui.terminal import WITHOUT_A_TERMINAL

POLLS_PER_S = 10
HINT = (
    "ofa-tui: this terminal cannot show the UI (TERM={term!r}), so the {what} goes by in lines; Ctrl-C ends it. "
    "{way_out}, and TERM=xterm-256color shows it where the terminal can move its cursor"
)


def run_lines(engine: Engine, term: str, *, sleep: Callable[[float], None] = time.sleep) -> int:
    """Starts the engine, says how it goes until it is finished or a signal comes, stops it. Returns the exit code.

    Raises AbortedError where the kernel stopped itself. Must be called from the main thread.
    """
    replay = engine.info.backend == "replay"
    what = "replay" if replay else "run"
    say(HINT.format(term=term, what=what, way_out=WITHOUT_A_TERMINAL[replay]))
    progress = Progress("replaying" if replay else "running", total=engine.info.steps)
    figures = _Figures(engine)
    code = 0
    try:
        with signals_raise():
            engine.start()
            while figures.take(engine.poll()).state not in ("finished", "stopped", "aborted", "broken off"):
                progress.update(figures.steps, figures.text())
                sleep(1 / POLLS_PER_S)
    except KeyboardInterrupt:
        code = 128 + signal.SIGINT
    except SignalledError as error:
        code = error.exit_code
    finally:
        engine.stop()
        progress.close(figures.text())
    if figures.aborted:
        raise AbortedError(figures.aborted)
    return code


class _Figures:
    def __init__(self, engine: Engine) -> None:
        self._info = engine.info
        self._parts: dict[str, str] = {}
        self.steps = 0
        self.aborted = ""

    def take(self, snapshot: Snapshot) -> Snapshot:
        self.steps = snapshot.steps_done
        parts = self._parts
        parts["steps"] = f"step {self.steps}/{self._info.steps}"
        if snapshot.losses:
            parts["loss"] = f"loss {snapshot.losses[-1].loss:.3f}"
        if snapshot.sweeps:
            parts["held out"] = f"held out {snapshot.sweeps[-1].loss:.3f}"
        parts["tokens"] = f"{snapshot.train_tokens_per_s:,.0f} tokens/s"
        if self._info.games:
            parts["frames"] = f"{snapshot.frames_per_s:.1f} frames/s"
        if snapshot.state == "aborted":
            self.aborted = snapshot.message or "the kernel stopped itself"
        return snapshot

    def text(self) -> str:
        return ", ".join(self._parts.values())
