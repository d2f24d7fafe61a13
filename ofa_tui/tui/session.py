"""One run of the UI from check to restored terminal."""

from __future__ import annotations

from functools import partial

from ofa_tui.engine.protocol import Engine
from ofa_tui.errors import AbortedError
from ofa_tui.tui.app import OfaApp
from ofa_tui.tui.options import UiOptions
from ofa_tui.tui.terminal import SignalGuard, check_terminal, input_closed

CHECK_INPUT_S = 0.5


def run_session(engine: Engine, options: UiOptions | None = None) -> int:
    """See ofa_tui.tui.run_ui."""
    check_terminal()
    app = OfaApp(engine, options=options)
    stop = partial(engine.stop, 3.0)

    def ask(code: int) -> None:
        loop = getattr(app, "_loop", None)
        if loop is not None and loop.is_running():
            loop.call_soon_threadsafe(partial(app.exit, code, code))

    with SignalGuard(ask, stop) as guard:
        app.on_closed_input = lambda: guard.leave(129) if input_closed() else None
        engine.start()
        try:
            code = app.run()
        finally:
            engine.stop()
            if app.recorder is not None:
                app.recorder.close()
    if app.abort_message:
        raise AbortedError(app.abort_message)
    return guard.code or code or app.return_code or 0
