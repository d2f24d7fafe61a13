"""The saver of a run's checkpoints, as the options ask for it."""

from __future__ import annotations

from pathlib import Path

from ofa_tui.assemble import Assembled
from ofa_tui.checkpoint.saver import Saver
from ofa_tui.settings import Settings


def saver_of(run: Assembled, settings: Settings, folder: Path) -> Saver:
    """One that writes to `folder` unless another was named. Writes the checkpoint of the start, if it was asked for.

    Raises OfaError where that one cannot be written.
    """
    at_end = settings.checkpoint_at_end or (settings.checkpoints is not None and not settings.checkpoint_at_start)
    saver = Saver(run.engine, settings.checkpoints or folder, run.describe, every=settings.checkpoint_every,
                  at_end=at_end, keep=settings.keep)
    if settings.checkpoint_at_start:
        saver.save_initial()
    return saver
