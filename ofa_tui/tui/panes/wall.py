"""Pane 1 with every game at once: the pictures in rows, each above a line that says which it is."""

from __future__ import annotations

from ofa_tui.tui.colour import blend
from ofa_tui.tui.grid import Grid
from ofa_tui.tui.layout import Box
from ofa_tui.tui.model import RunModel
from ofa_tui.tui.panes.doom import PictureStyle, draw_frame_picture, level_name
from ofa_tui.tui.picture import fit
from ofa_tui.tui.theme import Theme


def columns_for(games: int, width: int, height: int) -> int:
    """Pictures side by side that make them largest."""

    def shown(columns: int) -> int:
        rows = -(-games // columns)
        across, down, _ = fit(max(1, width // columns), max(1, height // rows - 1))
        return across * down

    return max(range(1, games + 1), key=lambda columns: (shown(columns), -columns))


def paint_wall(grid: Grid, box: Box, model: RunModel, theme: Theme, style: PictureStyle) -> None:
    """The games' newest frames in `box`; the one that keys act on stands out."""
    games = len(model.frames)
    columns = columns_for(games, box.width, box.height)
    rows = -(-games // columns)
    for game in range(games):
        row, column = divmod(game, columns)
        left, top = box.x + column * box.width // columns, box.y + row * box.height // rows
        right, bottom = box.x + (column + 1) * box.width // columns, box.y + (row + 1) * box.height // rows
        _paint_cell(grid, Box(left, top, right - left, bottom - top), game, model, theme, style)


def _paint_cell(grid: Grid, box: Box, game: int, model: RunModel, theme: Theme, style: PictureStyle) -> None:
    frame = model.frames[game]
    if frame is not None and box.height > 1:
        width, height, source = fit(box.width, box.height - 1)
        picture = draw_frame_picture(frame, width, height, source, style)
        grid.paste(picture, box.x + (box.width - width) // 2, box.y + (box.height - 1 - height) // 2)
    selected = game == model.game
    back = theme.panel if selected else blend(theme.panel, theme.background, 0.5)
    grid.fill(box.x, box.y + box.height - 1, box.width, 1, back)
    parts = [f" {game}"]
    if frame is not None:
        status = frame.status
        parts += [level_name(status, model.info.wad), f"hp {int(status['health'])}", f"kills {int(status['kills'])}"]
    text = next(
        (
            text for count in range(len(parts), 1, -1) for text in ("  ".join(parts[:count]), " ".join(parts[:count]))
            if len(text) < box.width
        ),
        parts[0],
    )  # fmt: skip
    colour = theme.doom_text if selected else theme.muted
    grid.text(box.x, box.y + box.height - 1, text, colour, bold=selected, limit=box.width)
