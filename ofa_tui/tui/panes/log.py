"""Pane 6, which shows maximised only: the log of the run, its newest line below."""

from __future__ import annotations

from rich.cells import cell_len

from ofa_tui.tui.draw import draw_frame
from ofa_tui.tui.grid import Grid
from ofa_tui.tui.layout import Frame
from ofa_tui.tui.run_log import RunLog
from ofa_tui.tui.theme import Theme

LEAST_TEXT = 24
"""Columns of text below which the time is left out."""


def paint_log(grid: Grid, frame: Frame, log: RunLog, theme: Theme, active: bool, back: int) -> int:
    """Draws the log `back` lines before its newest one; returns how many that are at most."""
    entries = list(log.entries)
    inner_rows = max(0, grid.height - (2 if frame.sides else 1))
    most = max(0, len(entries) - inner_rows)
    back = min(back, most)
    subtitle = [(f"{back:,} newer below", theme.muted)] if back else []
    inner = draw_frame(grid, frame, theme, [("6 log", theme.bright)], subtitle, active=active)
    if not entries:
        grid.text(inner.x, inner.y, "nothing happened yet", theme.muted, limit=inner.width)
        return most
    if inner.height < 1:
        return most
    colours = {"steered": theme.key, "measured": theme.held_out, "saved": theme.train_text, "state": theme.bright,
               "said": theme.muted, "failed": theme.error}  # fmt: skip
    shown = entries[len(entries) - back - inner.height : len(entries) - back] if most else entries
    gutter = max(cell_len(entry.when) for entry in shown) + 2
    if inner.width - gutter < LEAST_TEXT:
        gutter = 0
    for y, entry in enumerate(shown, inner.y):
        if gutter:
            grid.text(inner.x, y, entry.when, theme.muted, limit=gutter)
        grid.text(inner.x + gutter, y, entry.text, colours[entry.kind], limit=inner.width - gutter)
    return most
