"""Pane 1: the game's picture, and what to say where there is none."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ofa_tui.engine.protocol import Frame as DoomFrame
from ofa_tui.engine.protocol import RunInfo
from ofa_tui.tui.colour import Depth
from ofa_tui.tui.draw import draw_frame
from ofa_tui.tui.grid import Grid
from ofa_tui.tui.layout import Box, Frame
from ofa_tui.tui.model import RunModel
from ofa_tui.tui.panes.serve import wrap_spans
from ofa_tui.tui.picture import GAMMAS, Blocks, draw, fit
from ofa_tui.tui.theme import Theme

AMMO_OF_WEAPON = (None, 0, 1, 0, 3, 2, 2, None, 1)
"""Index into `ammo` (bullets, shells, cells, rockets) for fist, pistol, shotgun, chaingun, rocket launcher, plasma
rifle, BFG, chainsaw, super shotgun."""
WEAPONS = (
    "fist", "pistol", "shotgun", "chaingun", "rocket launcher", "plasma rifle", "BFG 9000", "chainsaw", "super shotgun",
)  # fmt: skip


@dataclass(frozen=True)
class PictureStyle:
    depth: Depth
    gamma_step: int
    quadrants: bool | None
    tolerance: float = 0.0
    blocks: Blocks = Blocks.QUARTERS


def map_label(episode: int, number: int, wad: str) -> str:
    """E1M1, or MAP01 where the game of that WAD file has no episodes (the engine then counts as episode 1)."""
    name = wad.lower()
    if number > 9 or any(game in name for game in ("doom2", "tnt", "plutonia", "hacx")):
        return f"MAP{number:02d}"
    return f"E{episode}M{number}"


def level_name(status: np.void, wad: str) -> str:
    """The level a frame shows."""
    return map_label(int(status["episode"]), int(status["map"]), wad)


def ammo_text(status: np.void) -> str:
    weapon = int(status["weapon"])
    kind = AMMO_OF_WEAPON[weapon] if weapon < len(AMMO_OF_WEAPON) else None
    return "-" if kind is None else str(int(status["ammo"][kind]))


def why_no_doom(info: RunInfo) -> str:
    """Of a run without games. What a live run could do about it, a recorded one cannot any more."""
    if info.backend == "replay":
        return "No game was played in this recorded run."
    return info.doom_missing or "No game runs: this run was started with doom=0."


def paint_doom(
    grid: Grid,
    frame: Frame,
    model: RunModel,
    theme: Theme,
    active: bool,
    style: PictureStyle,
    player: str,
) -> Box | None:
    """Draws all but the picture; returns the box for it, None where there is no frame or no room.

    `player` says who plays.
    """
    doom = model.frame
    title = [("1 doom", theme.doom_text)]
    subtitle: list[tuple[str, int]] = []
    if doom is not None:
        which = f" #{model.game}" if model.info.games > 1 else ""
        title = [(f"1 doom{which} · {level_name(doom.status, model.info.wad)} · {player}", theme.doom_text)]
        subtitle = _figures(model, doom.status, theme)
    inner = draw_frame(grid, frame, theme, title, subtitle, active=active, inset=0)
    if doom is None:
        _paint_missing(grid, inner.x, inner.y, inner.width, inner.height, model, theme)
        return None
    if inner.width < 1 or inner.height < 1:
        return None
    grid.fill(inner.x, inner.y, inner.width, inner.height, 0x000000 if theme.dark else theme.background)
    return inner


def _figures(model: RunModel, status: np.void, theme: Theme) -> list[tuple[str, int]]:
    """The line under the picture. Of a game that stands still it says how far it can be stepped, in seconds."""
    rate = model.snapshot.frames_per_s if model.snapshot else 0.0
    figures = f"hp {int(status['health'])}  ammo {ammo_text(status)}  kills {int(status['kills'])}"
    steps = int(status["behind"]), int(status["ahead"])
    if (model.games_held or model.state == "paused") and any(steps):
        return [("held  " if model.games_held else "", theme.warning), (f"◀ {steps[0]} s  {steps[1]} s ▶", theme.muted),
                (f"  {figures}", theme.muted)]
    return [(f"{rate:.1f} fps" if rate else "0 fps", theme.muted), (f"  {figures}", theme.muted)]


def paint_picture(grid: Grid, box: Box, model: RunModel, style: PictureStyle) -> None:
    """The newest frame of the game that is shown, in the middle of the box."""
    if model.frame is None:
        return
    columns, rows, source = fit(box.width, box.height)
    picture = draw_frame_picture(model.frame, columns, rows, source, style)
    grid.paste(picture, box.x + (box.width - columns) // 2, box.y + (box.height - rows) // 2)


def draw_frame_picture(doom: DoomFrame, columns: int, rows: int, source: int, style: PictureStyle) -> Grid:
    return draw(
        doom.pixels,
        doom.palette,
        columns,
        rows,
        depth=style.depth,
        gamma=GAMMAS[style.gamma_step % len(GAMMAS)],
        quadrants=style.quadrants,
        source=source,
        thin=doom.status["automap"] != 0,
        tolerance=style.tolerance,
        blocks=style.blocks,
    )


def _paint_missing(grid: Grid, x: int, y: int, width: int, height: int, model: RunModel, theme: Theme) -> None:
    text = "waiting for the first frame" if model.info.games else why_no_doom(model.info)
    room = max(10, min(width - 4, 64))
    lines = wrap_spans([(text, theme.muted, False)], room)
    heading = [] if model.info.games else [[("No Doom here", theme.doom_text, True)], []]
    block = ([*heading, *lines] if len(heading) + len(lines) <= height else lines)[:height]
    top = y + max(0, (height - len(block)) // 2)
    for row, line in enumerate(block):
        at = x + max(0, (width - room) // 2)
        for piece, colour, bold in line:
            at = grid.text(at, top + row, piece, colour, bold=bold, limit=max(0, x + width - at))
