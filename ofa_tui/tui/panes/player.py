"""Pane 5: who plays and which keys are down."""

from __future__ import annotations

import numpy as np

from ofa_tui.tui.draw import draw_frame, sparkline
from ofa_tui.tui.grid import Grid
from ofa_tui.tui.layout import Frame
from ofa_tui.tui.manual import BUTTON_FIRE, BUTTON_USE, BUTTON_WEAPON
from ofa_tui.tui.model import RunModel
from ofa_tui.tui.panes.doom import WEAPONS
from ofa_tui.tui.theme import Theme

TICS_PER_SECOND = 35


def lit_keys(status: np.void) -> list[tuple[str, bool]]:
    """The keyboard a person would need for the command of this tic, and which of its keys are down."""
    forward, side, turn, buttons = (int(status[name]) for name in ("forward", "side", "turn", "buttons"))
    if buttons & 0x80:  # a special code, not keys
        buttons = 0
    return [
        ("W", forward > 0),
        ("A", side < 0),
        ("S", forward < 0),
        ("D", side > 0),
        ("", False),
        ("←", turn > 0),
        ("→", turn < 0),
        ("", False),
        ("FIRE", bool(buttons & BUTTON_FIRE)),
        ("USE", bool(buttons & BUTTON_USE)),
        ("WEAPON", bool(buttons & BUTTON_WEAPON)),
    ]


def angle_degrees(angle_bam: int) -> int:
    """A binary angle (2**32 is a full circle, 0 is east) in whole degrees."""
    return round(angle_bam * 360 / 2**32) % 360


def turn_rate(turn: int) -> int:
    """Degrees a second, without sign, of a command's turn (1/65536 of a circle a tic)."""
    return round(abs(turn) * 360 * TICS_PER_SECOND / 65536)


def paint_player(
    grid: Grid,
    frame: Frame,
    model: RunModel,
    theme: Theme,
    active: bool,
    behaviour: str,
    playing: bool,
    latch: bool,
) -> None:
    inner = draw_frame(grid, frame, theme, [("5 player", theme.doom_text)], active=active)
    if model.frame is None:
        missing = "no game was played" if model.replay else "no game runs"
        text = "waiting for the first frame" if model.info.games else missing
        grid.text(inner.x, inner.y, text, theme.muted, limit=inner.width)
        return
    status = model.frame.status
    lines = [
        lambda y: _paint_keys(grid, inner.x, y, inner.width, status, theme),
        lambda y: _paint_behaviour(grid, inner.x, y, inner.width, status, theme, behaviour, playing, latch),
        lambda y: _paint_place(grid, inner.x, y, inner.width, status, theme),
        lambda y: _paint_health(grid, inner.x, y, inner.width, inner.height - 3, model, theme),
    ]
    for row, paint in enumerate(lines[: inner.height]):
        paint(inner.y + row)


def _paint_keys(grid: Grid, x: int, y: int, width: int, status: np.void, theme: Theme) -> None:
    end = x + width
    for label, down in lit_keys(status):
        text = f" {label} " if label else ""
        if x + len(text) > end:
            break
        if label:
            ink, back = (theme.background, theme.doom) if down else (theme.muted, theme.idle)
            x = grid.text(x, y, text, ink, back, bold=down)
        x += 1


def _paint_behaviour(
    grid: Grid, x: int, y: int, width: int, status: np.void, theme: Theme, behaviour: str, playing: bool, latch: bool
) -> None:
    end = x + width
    if playing:
        x = grid.text(x, y, "you play", theme.doom_text, bold=True, limit=end - x)
        if latch:
            x = grid.text(x + 2, y, "latch on", theme.bright, limit=max(0, end - x - 2))
    else:
        x = grid.text(x, y, behaviour, theme.doom_text, bold=True, limit=end - x)
    weapon = int(status["weapon"])
    parts = [
        WEAPONS[weapon] if weapon < len(WEAPONS) else "",
        f"turn {turn_rate(int(status['turn'])):3d}°/s",
        f"seen {int(status['sectors_seen'])}/{int(status['sectors_total'])}" if int(status["sectors_total"]) else "",
        f"kills {int(status['kills'])}/{int(status['total_kills'])}",
        f"stuck {int(status['stuck_tics']) / TICS_PER_SECOND:.1f} s",
    ]
    _paint_parts(grid, x, y, end, [f"  {part}" for part in parts if part], theme.muted)


def _paint_parts(grid: Grid, x: int, y: int, end: int, parts: list[str], colour: int) -> None:
    """Parts, whole, up to the first that does not fit."""
    for part in parts:
        if x + len(part) > end:
            break
        x = grid.text(x, y, part, colour)


def _paint_place(grid: Grid, x: int, y: int, width: int, status: np.void, theme: Theme) -> None:
    parts = [
        f"seed {int(status['seed'])}",
        f" · tic {int(status['tic']):,}",
        f" · x {int(status['x']) >> 16:,} y {int(status['y']) >> 16:,}",
        f" ang {angle_degrees(int(status['angle']))}°",
    ]
    _paint_parts(grid, x, y, x + width, parts, theme.muted)


def _paint_health(grid: Grid, x: int, y: int, width: int, rows: int, model: RunModel, theme: Theme) -> None:
    """Health over time, its full height 100 or 200: one line beside its label, or a chart above it where there is
    room."""
    now = int(model.frame.status["health"]) if model.frame is not None else 0
    full = 200 if max([now, *model.health]) > 100 else 100
    label = f"hp {now} of {full}, last {len(model.health) // 2} s"
    colour = theme.faded(theme.doom, 0.75)
    if rows >= 4:
        rows = min(rows - 1, 12)
        sparkline(grid, x, y + 1, list(model.health), width, colour, rows=rows - 1, top=full)
        grid.text(x + width - len(label), y + rows, label, theme.muted)
        return
    room = max(0, min(60, width - len(label) - 1))
    sparkline(grid, x, y, list(model.health), room, colour, top=full)
    _paint_parts(grid, x + room + 1, y, x + width, [label], theme.muted)
