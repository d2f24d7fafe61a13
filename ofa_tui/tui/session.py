"""One run of the UI from check to restored terminal."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from ofa_tui.engine.protocol import Engine
from ofa_tui.errors import AbortedError, OfaError
from ofa_tui.tui.app import OfaApp
from ofa_tui.tui.glyphs import character_set, look_alike
from ofa_tui.tui.handlers import absorb_news, close_recording
from ofa_tui.tui.model import RunModel
from ofa_tui.tui.options import UiOptions, short_path
from ofa_tui.tui.picture import blocks_of
from ofa_tui.tui.preferences import read_preferences
from ofa_tui.tui.terminal import SignalGuard, drawn_in, input_closed
from ofa_tui.tui.tmux import TmuxWatch


def closing_line(model: RunModel, saved: Sequence[Path], broken: Sequence[Path] = ()) -> str:
    """What the run came to, in one line for the restored terminal; empty for one that never got going.

    `broken` are recordings that broke off, `saved` all else that was written.
    """
    if model.snapshot is None:
        return ""
    parts = [f"{'replayed ' if model.replay else ''}step {model.snapshot.steps_done:,} of {model.info.steps:,}"]
    if model.state == "broken off":
        parts[0] += f", {model.snapshot.message}"
    if model.losses.count:
        parts.append(f"loss {model.losses.values[-1]:.3f}")
    if model.sweeps:
        parts.append(f"held-out loss {model.sweeps[-1].loss:.3f}")
    for word, paths in (("saved", saved), ("recording broke off in", broken)):
        if there := [short_path(path) for path in dict.fromkeys(paths) if path.exists()]:
            parts.append(f"{word} {', '.join(there)}")
    return "ofa-tui: " + " · ".join(parts)


def run_session(engine: Engine, options: UiOptions | None = None) -> int:
    """See ofa_tui.tui.run_ui."""
    app = OfaApp(engine, options=options or read_preferences().options())
    codec = character_set(encoding=(sys.__stderr__.encoding if sys.__stderr__ else "") or "ascii")
    app.blocks = blocks_of(codec)

    def ask(code: int) -> None:
        if app.loop is not None:
            app.loop.call_soon_threadsafe(app.do.end, code)

    guard = SignalGuard(ask, partial(engine.stop, 3.0))
    try:
        # Before the guard: the terminal is still untouched, so a signal may end a long compilation at once.
        engine.start()
        with guard, TmuxWatch(app.flow.learn_rate), drawn_in(codec):
            app.heartbeat = lambda: guard.leave(129) if input_closed() else None
            code = app.run()
    finally:
        engine.stop()
        take_the_end(app, guard.code)
        app.games.close()
        with suppress(OSError):  # a terminal that went away reads nothing any more
            if summary := closing_line(app.model, app.saved, app.broken):
                print(look_alike(summary, codec), flush=True)
    for error in (app.failure, app._exception):
        if error is not None:
            raise error
    return guard.code or code or app.return_code or 0


def take_the_end(app: OfaApp, signal_code: int) -> None:
    """Gives the model and the recording what the run, which is stopped, did since they looked last, and closes the
    recording with the reason of the end. `signal_code` is 128 + the number of the signal that ended it, else 0."""
    reason, message = _ending(app, signal_code)
    if app.model.snapshot is not None and app.replay is None and reason not in ("aborted", "failed"):
        try:
            absorb_news(app)
        except OfaError as error:
            app.failure = error
            reason, message = _ending(app, signal_code)
    close_recording(app, reason, message)


def _ending(app: OfaApp, signal_code: int) -> tuple[str, str]:
    """An exit reason as headless runs write it, and a message."""
    if app.failure is not None:
        return "aborted" if isinstance(app.failure, AbortedError) else "failed", str(app.failure)
    if app._exception is not None:
        return "failed", f"{type(app._exception).__name__}: {app._exception}"
    if app.model.state == "finished":
        return "finished", ""
    return signal.Signals(signal_code - 128).name if signal_code else "stopped", ""
