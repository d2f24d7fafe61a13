"""The saver of a run's checkpoints, as the options ask for it, and what it says at the end."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from pathlib import Path

from ofa_tui.assemble import Assembled
from ofa_tui.checkpoint.folder import Claim, check_new, earlier_checkpoints
from ofa_tui.checkpoint.saver import Saver
from ofa_tui.console import say
from ofa_tui.settings import Settings

NOT_SAVED = 4
"""Exit code of a run that came to its end without some of its checkpoints."""


@contextlib.contextmanager
def checkpoint_folder(settings: Settings, folder: Path) -> Iterator[Claim]:
    """`folder` unless another was named, held while this is open: at once where the run is to write there, else from
    its first checkpoint on. Raises OfaError where another run holds it, it cannot be written, or a new run finds
    checkpoints there."""
    claim = Claim(settings.checkpoints or folder)
    try:
        if settings.writes_checkpoints:
            claim.take_at_start()
            if not settings.resume:
                check_new(claim.folder)
        yield claim
    finally:
        claim.release()


def saver_of(run: Assembled, settings: Settings, claim: Claim) -> Saver:
    """One that writes into the claimed folder. Writes the checkpoint of the start, if it was asked for.

    Raises OfaError where that one cannot be written, or the folder holds checkpoints that are not of this run.
    """
    describe = functools.cache(run.describe)
    earlier = []
    if settings.resume and settings.writes_checkpoints:
        earlier = earlier_checkpoints(claim.folder, run.facts["resumed"]["step"], lambda: describe().identity)
    saver = Saver(run.engine, claim, describe, every=settings.checkpoint_every, at_end=settings.checkpoint_at_end,
                  keep=settings.keep, earlier=earlier)
    if settings.checkpoint_at_start:
        saver.save_initial()
    return saver


def final_code(code: int, saver: Saver | None, settings: Settings) -> int:
    """The exit code of a run that would end with `code`. Says which checkpoints could not be saved, and that a run
    which a signal ended has none of its end, where that is so."""
    if code > 128 and not settings.writes_checkpoints:
        say("ofa-tui: the end of this run was not kept, so no run can go on from it; --checkpoint-at-end keeps it")
    missed = saver.missed() if saver else ""
    if not missed:
        return code
    say(f"ofa-tui: {missed}")
    return code or NOT_SAVED
