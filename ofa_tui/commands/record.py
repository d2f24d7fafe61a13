"""`ofa-tui --record DIR`: a run without a terminal, written down as it goes."""

from __future__ import annotations

import contextlib
import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ofa_tui.assemble import assemble, check
from ofa_tui.commands.checkpoints import checkpoint_folder, final_code, saver_of
from ofa_tui.console import say
from ofa_tui.errors import OfaError
from ofa_tui.installation import command
from ofa_tui.record.demo_log import DemoRecorder
from ofa_tui.record.session import record
from ofa_tui.record.writer import CAST, RunWriter, claim_folder
from ofa_tui.settings import Settings

if TYPE_CHECKING:
    from ofa_tui.engine.protocol import Engine
    from ofa_tui.http.server import Endpoint
    from ofa_tui.tui.run_cast import RunCast


def record_run(
    settings: Settings,
    folder: Path,
    *,
    frame_every_s: float,
    doom_demo: Path | None = None,
    endpoint: Endpoint | None = None,
    cast: tuple[int, int] | None = None,
    theme: str = "",
) -> int:
    """Runs to the last step and its held-out sweep; with `cast`, writes the UI at that size (columns, rows) down too.

    Raises OfaError; a folder that got no run is taken away again.
    """
    check(settings, doom_required=True)
    if doom_demo is not None and not settings.sms[2]:
        raise OfaError("--doom-demo has nothing to write: no SM plays Doom in this run; give it one with --sms doom=1")
    demo = DemoRecorder(doom_demo) if doom_demo is not None else None
    with _claimed(folder), checkpoint_folder(settings, folder / "checkpoints") as claim:
        run = assemble(settings, doom_required=True)
        saver = saver_of(run, settings, claim) if settings.writes_checkpoints else None
        facts = {"settings": settings.as_dict(), **run.facts}
        writer = RunWriter(folder, facts, run.engine.info, frame_every_s=frame_every_s, demo=demo)
        for name, text in run.texts.items():
            writer.add_text(name, text)
        with contextlib.ExitStack() as stack:
            engine = stack.enter_context(endpoint.serving(run.engine, run.sampling)) if endpoint else run.engine
            if cast:
                writer.companion = stack.enter_context(_cast(folder / CAST, run.engine, cast, theme))
            code = record(engine, writer, saver)
    missed = run.events - writer.tally.events_applied
    if missed > 0:
        say(f"{missed} of {run.events} events were not reached: the run ended before their step, token or tic")
    if demo is not None:
        _say_demo(demo)
    say(f"the record is in {folder}; look at it with: {command()} replay {shlex.quote(str(folder))}")
    return final_code(code, saver, settings)


def _cast(path: Path, engine: Engine, size: tuple[int, int], theme: str) -> contextlib.closing[RunCast]:
    from ofa_tui.tui.run_cast import RunCast

    return contextlib.closing(RunCast(path, engine, size, theme=theme, timestamp=int(time.time())))


def _say_demo(demo: DemoRecorder) -> None:
    if demo.files:
        say(f"demos of {len(demo.files)} game{'s' * (len(demo.files) > 1)}: {', '.join(map(str, demo.files))}; "
             f"play one with: {command()} doom demo {shlex.quote(str(demo.files[0]))}")
    else:
        say("no demo was written, because no game began in this run")
    if demo.missed:
        say(f"{demo.missed:,} tics went by unread, because the machine was too busy; their demo ends there")


@contextlib.contextmanager
def _claimed(folder: Path) -> Iterator[None]:
    """Claims the folder of a record, and takes it away again where a failure leaves it without a run."""
    was_there = folder.exists()
    claim_folder(folder)
    try:
        yield
    except BaseException:
        if not (folder / "run.json").exists():
            with contextlib.suppress(OSError):
                (folder / "frames").rmdir()
                if not was_there:
                    folder.rmdir()
        raise
