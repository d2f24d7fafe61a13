"""What the UI remembers from one run to the next: files in the state folder that are there or not."""

from __future__ import annotations

from contextlib import suppress

from ofa_tui import locations


def introduced() -> bool:
    """Whether the panes were explained to this person before."""
    return (locations.state() / "introduced").exists()


def remember_introduction() -> None:
    """A folder that cannot be written costs no more than another introduction."""
    with suppress(OSError):
        locations.state().mkdir(parents=True, exist_ok=True)
        (locations.state() / "introduced").touch()
