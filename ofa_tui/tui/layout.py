"""Where each pane goes: pure arithmetic on the terminal's size, in cells, borders included."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

PANES = ("doom", "sms", "loss", "serve", "player")
"""In the order of their digits 1-5."""
MAXIMISED = (*PANES, "log")
"""What a digit gives all the room; the log, 6, has no other place."""

HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-medium"), (160, "-wide")]


LEAST_ROWS = 6
"""Below, a pane stands alone."""


class SizeClass(Enum):
    SINGLE = "single"  # below 80x24: one pane at a time
    NARROW = "narrow"
    MEDIUM = "medium"
    WIDE = "wide"


class Box(NamedTuple):
    x: int
    y: int
    width: int
    height: int


class Frame(NamedTuple):
    """Sides a pane draws a border on."""

    top: bool = True
    sides: bool = True


def size_class(width: int, height: int) -> SizeClass:
    if width < 80 or height < 24:
        return SizeClass.SINGLE
    if width < 100 or height < 34:
        return SizeClass.NARROW
    if width < 160 or height < 48:
        return SizeClass.MEDIUM
    return SizeClass.WIDE


def frame(kind: SizeClass, pane: str, zoomed: bool) -> Frame:
    """Full borders where there is room, else only a title line; the one-row SM strip has none."""
    if kind in (SizeClass.MEDIUM, SizeClass.WIDE) or (zoomed and kind is SizeClass.NARROW):
        return Frame(True, True)
    if pane == "sms" and not zoomed:
        return Frame(False, False)
    return Frame(True, False)


def picture_rows(columns: int) -> int:
    """Rows a full-width Doom picture needs in that many columns (the bar is cropped below 100)."""
    return round(columns * 3 / 8 * (1.0 if columns >= 100 else 0.84))


def arrange(
    width: int, height: int, *, zoom: str | None = None, single: str = "doom", bar: bool = False, games: bool = True
) -> dict[str, Box]:
    """Boxes of "header", "tiles", "footer" and of the panes that show; with `bar` also of "replay", above the footer.

    `zoom` names a pane that takes all the room; `single` is the pane shown where only one fits. Without `games` the
    loss curve has the picture's place, and there is no player.
    """
    if bar and height > LEAST_ROWS:
        boxes = _arrange(width, height, size_class(width, height), 1, zoom, single)
        boxes |= {"replay": Box(0, height - 2, width, 1)}
    else:
        boxes = _arrange(width, height, size_class(width, height), 0, zoom, single)
    return boxes if games or not {"doom", "player"} <= boxes.keys() else _without_games(boxes)


def _arrange(
    width: int, height: int, kind: SizeClass, bar_rows: int, zoom: str | None, single: str
) -> dict[str, Box]:
    if kind is SizeClass.SINGLE:
        return _one_pane(width, height, 0, bar_rows, zoom or single)
    tile_rows = {SizeClass.WIDE: 3, SizeClass.MEDIUM: 2, SizeClass.NARROW: 1}[kind]
    if zoom:
        return _one_pane(width, height, tile_rows, bar_rows, zoom)
    boxes = {
        "header": Box(0, 0, width, 1),
        "tiles": Box(0, 1, width, tile_rows),
        "footer": Box(0, height - 1, width, 1),
    }
    top = 1 + tile_rows
    rows = height - 1 - bar_rows - top
    if kind is SizeClass.WIDE:
        boxes |= _wide(width, top, rows)
    elif kind is SizeClass.MEDIUM:
        boxes |= _medium(width, top, rows)
    else:
        boxes |= _narrow(width, top, rows)
    return boxes


def _without_games(boxes: dict[str, Box]) -> dict[str, Box]:
    """The Doom pane, which has only a sentence to say, in the player's place; the loss in its; serve in both others."""
    loss, player = boxes["loss"], boxes["player"]
    serve = loss._replace(height=loss.height + boxes["serve"].height)
    others = {name: box for name, box in boxes.items() if name != "player"}
    return others | {"loss": boxes["doom"], "doom": player, "serve": serve}


def with_footer_of(boxes: dict[str, Box], rows: int) -> dict[str, Box]:
    """The boxes with a footer of so many rows; those above it give way."""
    if rows <= 1 or "footer" not in boxes:
        return boxes
    footer, bar = boxes["footer"], boxes.get("replay")
    top = max(1, footer.y - rows + 1)
    below = {"footer": footer._replace(y=top, height=footer.y + 1 - top)}
    if bar is not None and top > 1:
        top -= 1
        below["replay"] = bar._replace(y=top)
    above = {name: box._replace(height=min(box.height, top - box.y)) for name, box in boxes.items() if box.y < top}
    return above | below


def _one_pane(width: int, height: int, tile_rows: int, bar_rows: int, pane: str) -> dict[str, Box]:
    """Header and footer give way when fewer than LEAST_ROWS are left."""
    if height < LEAST_ROWS:
        return {pane: Box(0, 0, width, height)}
    boxes = {"header": Box(0, 0, width, 1), "footer": Box(0, height - 1, width, 1)}
    if tile_rows:
        boxes["tiles"] = Box(0, 1, width, tile_rows)
    boxes[pane] = Box(0, 1 + tile_rows, width, height - 2 - tile_rows - bar_rows)
    return boxes


def _split(total: int, parts: list[int]) -> list[int]:
    """`total` divided in proportion to `parts`, remainders to the first."""
    whole = sum(parts)
    sizes = [total * part // whole for part in parts]
    sizes[0] += total - sum(sizes)
    return sizes


def _wide(width: int, top: int, rows: int) -> dict[str, Box]:
    """Doom over SMs on the left; loss, serve, player on the right."""
    right = width * 39 // 100
    left = width - right
    doom = min(rows - 8, 2 + picture_rows(left - 2))
    loss, serve = _split(rows - 6, [24, 25])
    if loss > serve:
        loss, serve = serve, loss
    return {
        "doom": Box(0, top, left, doom),
        "sms": Box(0, top + doom, left, rows - doom),
        "loss": Box(left, top, right, loss),
        "serve": Box(left, top + loss, right, serve),
        "player": Box(left, top + loss + serve, right, 6),
    }


def _medium(width: int, top: int, rows: int) -> dict[str, Box]:
    """Doom, SMs, player on the left; loss over serve on the right."""
    right = width * 39 // 100
    left = width - right
    doom = min(rows - 11, 2 + picture_rows(left - 2))
    sms = rows - doom - 5
    loss = rows * 16 // 36
    return {
        "doom": Box(0, top, left, doom),
        "sms": Box(0, top + doom, left, sms),
        "player": Box(0, top + doom + sms, left, 5),
        "loss": Box(left, top, right, loss),
        "serve": Box(left, top + loss, right, rows - loss),
    }


def _narrow(width: int, top: int, rows: int) -> dict[str, Box]:
    """As medium with title lines instead of borders; the SMs are one row across the bottom."""
    right = width * 2 // 5
    left = width - right
    body = rows - 1
    loss = body // 2
    return {
        "doom": Box(0, top, left, body - 4),
        "player": Box(0, top + body - 4, left, 4),
        "loss": Box(left, top, right, loss),
        "serve": Box(left, top + loss, right, body - loss),
        "sms": Box(0, top + body, width, 1),
    }
