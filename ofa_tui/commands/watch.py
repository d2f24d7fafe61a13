"""`ofa-tui`: a run in the terminal UI."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ofa_tui.assemble import assemble, check
from ofa_tui.commands.checkpoints import checkpoint_folder, final_code, saver_of
from ofa_tui.console import say
from ofa_tui.engine.protocol import RunInfo, Snapshot
from ofa_tui.record.files import make_new_folder
from ofa_tui.record.writer import RunWriter
from ofa_tui.settings import Settings
from ofa_tui.timeline.limits import machine_limits
from ofa_tui.timeline.programs import program_facts
from ofa_tui.tui import run_ui
from ofa_tui.tui.preferences import read_preferences
from ofa_tui.tui.terminal import check_terminal
from ofa_tui.tui.theme import check_theme

if TYPE_CHECKING:
    from ofa_tui.http.server import Endpoint


def watch_run(
    settings: Settings, *, theme: str | None, reduced_motion: bool, endpoint: Endpoint | None = None
) -> int:
    """Shows the run until the person quits. Raises OfaError before anything is built where it cannot be."""
    preferences = read_preferences()
    check_theme(theme or preferences.theme)
    check(settings, doom_required=settings.wad is not None)
    check_terminal()
    # It is made with the first checkpoint: the process's number keeps it apart from those of runs that begin now.
    folder = Path.cwd() / f"ofa-tui-{datetime.now():%Y-%m-%d-%H%M%S}-{os.getpid()}-checkpoints"
    with checkpoint_folder(settings, folder) as claim:
        run = assemble(settings, doom_required=settings.wad is not None)
        facts = {"settings": settings.as_dict(), **run.facts}
        saver = saver_of(run, settings, claim) if run.engine.can_copy_state else None
        options = replace(
            preferences.options(),
            recorder=live_recorder(facts, run.engine.info),
            checkpoint=saver.ask if saver else None,
            theme=theme or preferences.theme,
            reduced_motion=reduced_motion or preferences.reduced_motion,
            facts=program_facts(run.engine.programs) if settings.timeline else None,
            limits=machine_limits(run.engine.info) if settings.timeline else None,
        )
        with endpoint.serving(run.engine, run.sampling) if endpoint else nullcontext(run.engine) as engine:
            if saver is None:
                return final_code(run_ui(engine, options), None, settings)
            saver.start()
            try:
                code = run_ui(engine, options)
            finally:
                saver.close()
                for text in saver.news(run.engine.poll().saved):
                    say(f"ofa-tui: {text}")
        return final_code(code, saver, settings)


class _LiveRecording:
    """A recording that the key `r` started, in a folder named after the moment."""

    def __init__(self, facts: Mapping[str, Any], info: RunInfo) -> None:
        self.folder = make_new_folder(Path.cwd() / f"ofa-tui-{datetime.now():%Y-%m-%d-%H%M%S}",
                                      "start in a folder that can be written")
        self._writer = RunWriter(self.folder, facts, info)

    def write(self, snapshot: Snapshot) -> None:
        self._writer.write(snapshot)

    def close(self, exit_reason: str = "recording stopped", message: str = "") -> None:
        self._writer.finish(exit_reason, message)


def live_recorder(facts: Mapping[str, Any], info: RunInfo) -> Callable[[], _LiveRecording]:
    """What the key `r` opens: a record in the working directory, with `facts` in its run.json."""
    return lambda: _LiveRecording(facts, info)
