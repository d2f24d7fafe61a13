"""One run of the UI from check to restored terminal."""

from __future__ import annotations

from functools import partial

from ofa_tui.engine.protocol import Engine
from ofa_tui.tui.app import OfaApp
from ofa_tui.tui.options import UiOptions
from ofa_tui.tui.terminal import SignalGuard, check_terminal, input_closed


def run_session(engine: Engine, options: UiOptions | None = None) -> int:
    """See ofa_tui.tui.run_ui."""
    check_terminal()
    app = OfaApp(engine, options=options)

    def ask(code: int) -> None:
        if app.loop is not None:
            app.loop.call_soon_threadsafe(partial(app.exit, code, return_code=code))

    try:
        # Before the guard: the terminal is still untouched, so a signal may end a long compilation at once.
        engine.start()
        with SignalGuard(ask, partial(engine.stop, 3.0)) as guard:
            app.heartbeat = lambda: guard.leave(129) if input_closed() else None
            code = app.run()
    finally:
        engine.stop()
        if app.recorder is not None:
            app.recorder.close()
    for error in (app.failure, app._exception):
        if error is not None:
            raise error
    return guard.code or code or app.return_code or 0
