"""What the command line may say about the terminal UI."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from ofa_tui.engine.protocol import Snapshot
from ofa_tui.timeline.limits import Limits
from ofa_tui.timeline.programs import Facts
from ofa_tui.tui.colour import Depth


def short_path(path: Path) -> str:
    """The path as the person in this working directory would write it."""
    with suppress(ValueError):
        return f"./{path.relative_to(Path.cwd())}"
    return str(path)


class Recorder(Protocol):
    """A recording in progress. Both methods may raise OfaError (a full disk, a folder gone)."""

    folder: Path

    def write(self, snapshot: Snapshot) -> None:
        """Takes every snapshot in order. `applied` of the first holds all events since the launch."""
        ...

    def close(self, exit_reason: str = "recording stopped", message: str = "") -> None:
        """A second call changes nothing."""
        ...


@dataclass(frozen=True)
class UiOptions:
    recorder: Callable[[], Recorder] | None = None
    """Opens a new recording for the key `r`; None hides the key."""
    checkpoint: Callable[[], None] | None = None
    """Asks for a checkpoint, for the key `k`; None hides the key."""
    facts: Facts | None = None
    """Of the run's tasks, where it keeps a timeline."""
    limits: Limits | None = None
    """What its machine could do at most."""
    record_from_start: bool = False
    theme: str = ""
    """Name of a theme; empty: "contrast" where NO_COLOR is set, else "dark"."""
    depth: Depth | None = None
    """Colour depth; None: what the environment announces."""
    reduced_motion: bool = False
    """Repaint text once a second and the picture four times a second."""
    screenshots: Path = field(default_factory=Path.cwd)
    """Folder that screenshots and demos go to."""
    quadrants: bool | None = None
    """Quarter blocks (True), half blocks (False) or whichever suits the pane's width (None)."""
    gamma_step: int | None = None
    """Index into picture.GAMMAS to begin with; None: what suits the colour depth."""
    log_loss: bool = True
    """Whether the loss axis is logarithmic to begin with."""
    introduce: bool = False
    """Whether the guide through the panes shows first."""
    keymap: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The person's own keys, by action."""
