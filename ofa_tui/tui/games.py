"""What the UI keeps of each game beside its frames: the automap's place, and its demo so far."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ofa_tui import abi
from ofa_tui.engine.protocol import Snapshot
from ofa_tui.errors import OfaError
from ofa_tui.record.demo_log import DemoRecorder

OFF, FOLLOW, STAY = range(len(abi.AUTOMAP_MODES))
WIDEST_PAN = 256
"""Map units that an arrow moves the map by at zoom 0."""


@dataclass(frozen=True)
class MapView:
    """What an "automap" event says."""

    mode: int = OFF
    zoom: int = 0
    x: int = 0
    y: int = 0

    def switched(self) -> MapView:
        """On, where the player is, or off."""
        return MapView(FOLLOW if self.mode == OFF else OFF, self.zoom)

    def followed(self) -> MapView:
        """Stays where it is, or follows the player again."""
        return MapView(STAY if self.mode == FOLLOW else FOLLOW, self.zoom)

    def zoomed(self, steps: int) -> MapView:
        low, high = abi.AUTOMAP_ZOOMS
        return replace(self, zoom=min(max(self.zoom + steps, low), high))

    def panned(self, right: int, up: int) -> MapView:
        step = max(8, round(WIDEST_PAN * 0.8**self.zoom))
        return replace(self, x=_limited(self.x + right * step), y=_limited(self.y + up * step))

    def as_args(self) -> tuple[int, int, int, int]:
        return self.mode, self.zoom, self.x, self.y


def _limited(value: int) -> int:
    return min(max(value, -32768), 32767)


class Games:
    """The games of a run, from its snapshots in order."""

    def __init__(self, count: int) -> None:
        self.maps = [MapView()] * count
        self.wall = False
        """All are shown, not one."""
        self._demos = [DemoRecorder() for _ in range(count)]
        self._failure: OfaError | None = None

    def absorb(self, snapshot: Snapshot) -> None:
        for applied in snapshot.applied:
            event = applied.event
            if event.action == "automap" and event.target < len(self.maps):
                self.maps[event.target] = MapView(*event.args)
        try:
            for demo, commands in zip(self._demos, snapshot.commands, strict=False):
                demo.write(commands)
        except OfaError as error:
            self._failure, self._demos = error, []

    def demo(self, game: int) -> DemoRecorder:
        """The demo of the game. Raises OfaError where it could not be kept."""
        if self._failure is not None:
            raise self._failure
        return self._demos[game]

    def close(self) -> None:
        for demo in self._demos:
            demo.close()
