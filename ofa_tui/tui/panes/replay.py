"""The replay bar: where in the recorded run the panes are, and how fast they go."""

from __future__ import annotations

from collections.abc import Callable

from ofa_tui.engine.replay import ReplayEngine
from ofa_tui.tui.draw import bar, duration
from ofa_tui.tui.grid import Grid
from ofa_tui.tui.theme import Theme

AT_EDGE_S = 4.0
"""So close behind a growing record counts as following it; it is written once a second."""
QUIET_S = 5.0
"""So long without anything new is worth saying."""
LEAST_BAR = 8


def standing(engine: ReplayEngine) -> str:
    """What the replay is doing, in a word or a few."""
    if engine.growing:
        behind = engine.end - engine.seconds
        if engine.waited_s >= QUIET_S:
            return f"nothing new for {engine.waited_s:.0f} s"
        if engine.paused:
            return f"paused, {behind:.0f} s behind"
        return "following" if behind <= AT_EDGE_S else f"{behind:.0f} s behind"
    if engine.at_end:
        return "the run is over" if engine.follow else "end"
    return "paused" if engine.paused else "replay"


def paint_replay(grid: Grid, engine: ReplayEngine, colours: Callable[[], Theme]) -> None:
    """One line: state, speed, time, a bar, the time of the end; the last ones give way."""
    theme = colours()
    grid.fill(0, 0, grid.width, 1, theme.panel)
    sign = "‖" if engine.paused else "■" if engine.at_end and not engine.growing else "►"
    x = grid.text(1, 0, f"{sign} {standing(engine)}", theme.warning if engine.paused else theme.key, bold=True)
    x = grid.text(x + 2, 0, f"{engine.speed:g}x", theme.bright)
    x = grid.text(x + 2, 0, duration(engine.seconds), theme.text)
    end = duration(engine.end) + ("…" if engine.growing else "")
    room = grid.width - x - len(end) - 5
    if room >= LEAST_BAR:
        length = engine.end - engine.begin
        share = (engine.seconds - engine.begin) / length if length > 0 else 1.0
        bar(grid, x + 2, 0, room, share, theme.train, theme.idle)
        grid.fill(x + 2 + room, 0, grid.width, 1, theme.panel)
    if room >= 0:
        grid.text(grid.width - len(end) - 1, 0, end, theme.muted)
