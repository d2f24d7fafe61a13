"""Pane 4 where several streams are told: each has rows of its own, the selected one the most."""

from __future__ import annotations

import re

from ofa_tui import abi
from ofa_tui.tui.draw import draw_frame
from ofa_tui.tui.grid import Grid, text_cells
from ofa_tui.tui.layout import Box, Frame
from ofa_tui.tui.model import RunModel, Story
from ofa_tui.tui.panes.serve import Span, draw_line, shortened, text_lines
from ofa_tui.tui.theme import Theme

COLUMN = 48
"""Cells that a stream needs where some stand beside each other."""
BETWEEN = 3
"""Cells between them."""
NUMBER = 4
"""Cells of a stream's number and what follows it."""
LEAST_OF_OLDER = 3
"""Rows that an older story needs: a free one, its heading, some text."""
GAP_FROM = 5
"""Rows of a stream from which on its last one stays free."""


def places(area: Box, count: int, selected: int) -> dict[int, Box]:
    """Where each of `count` streams is drawn, in the order of reading. Where not all have a row, those around the
    selected one."""
    columns = columns_of(area.width, count)
    width = (area.width - BETWEEN * (columns - 1)) // columns
    lines = -(-count // columns)
    line = selected // columns
    first = min(max(0, line - area.height // 2), max(0, lines - area.height))
    shown = range(first, min(lines, first + area.height))
    boxes: dict[int, Box] = {}
    y = area.y
    for number, height in zip(shown, row_shares(area.height, len(shown), line - first), strict=True):
        for place, stream in enumerate(range(number * columns, min(count, (number + 1) * columns))):
            boxes[stream] = Box(area.x + place * (width + BETWEEN), y, width, height)
        y += height
    return boxes


def columns_of(width: int, count: int) -> int:
    """Streams that stand beside each other: as many as there is room for, without a gap if that can be."""
    most = min(count, max(1, (width + BETWEEN) // (COLUMN + BETWEEN)))
    return next((columns for columns in range(most, 1, -1) if count % columns == 0), min(most, 2))


def row_shares(rows: int, count: int, selected: int) -> list[int]:
    """Rows for each of `count` lines of streams, at most as many: one each, then two, then twice as much of the rest
    for the selected one, and what does not divide."""
    if not count:
        return []
    least = 2 if rows >= 2 * count else 1
    rest = rows - least * count
    each = rest // (count + 1) if least == 2 else 0
    shares = [least + each] * count
    shares[selected] += rest - each * count
    return shares


def stream_at(boxes: dict[int, Box], x: int, y: int, otherwise: int) -> int:
    """The stream that is drawn at a cell."""
    return next((stream for stream, box in boxes.items()
                 if box.x <= x < box.x + box.width and box.y <= y < box.y + box.height), otherwise)


def paint_streams(
    grid: Grid, frame: Frame, model: RunModel, theme: Theme, active: bool, *, prompt_rows: int, gap: bool
) -> dict[int, Box]:
    """The newest story of each stream, and older ones where there is room. `prompt_rows` at the bottom stay free for
    the prompt line. Returns where each stream is drawn."""
    snapshot = model.snapshot
    subtitle: list[tuple[str, int]] = []
    if snapshot:
        subtitle = [(f"{snapshot.served_per_s:,.0f} tok/s  weights v{snapshot.version:,}", theme.muted)]
    title = [("4 serve", theme.serve_text), (f"  stream {model.stream}", theme.muted)]
    inner = draw_frame(grid, frame, theme, title, subtitle, active=active)
    area = inner._replace(height=max(0, inner.height - prompt_rows))
    boxes = places(area, model.info.streams, model.stream)
    indent = NUMBER if min((box.height for box in boxes.values()), default=0) == 1 else 0
    for stream, box in boxes.items():
        last = box.y + box.height == area.y + area.height
        free = gap and not last and box.height >= GAP_FROM
        if box.height == 1:
            _paint_one_row(grid, box, model, theme, stream)
        else:
            _paint_title(grid, box, model, theme, stream)
            text = Box(box.x + indent, box.y + 1, max(1, box.width - indent), box.height - 1 - free)
            _paint_stories(grid, text, model, theme, stream)
    return boxes


def _paint_stories(grid: Grid, box: Box, model: RunModel, theme: Theme, stream: int) -> None:
    """The end of the newest story, and below it the beginnings of older ones, where there is room."""
    rests, now_s = model.rests(stream), model.snapshot.seconds if model.snapshot else 0.0
    y, end = box.y, box.y + box.height
    for age, story in enumerate(reversed(model.told[stream])):
        lines = text_lines(story, theme, box.width, now_s, not age and not rests)
        if age:
            if end - y < LEAST_OF_OLDER:
                break
            lines = [[], [(f"#{story.number}  {story.tokens} tok", theme.muted, False)], *lines]
        elif len(lines) > box.height:
            lines = _end_of(lines, box, theme)
        whole, x = len(lines) <= end - y, box.x
        for line in lines[: end - y]:
            x = draw_line(grid, box.x, y, line, box.width, theme.muted if age or rests else None)
            y += 1
        if not whole:
            grid.text(min(x, box.x + box.width - 1), y - 1, "…", theme.muted)


def _end_of(lines: list[list[Span]], box: Box, theme: Theme) -> list[list[Span]]:
    """The end of a text in the rows there are, of which none is blank."""
    lines = [line for line in lines if line]
    if box.height == 1:
        return [_last_words(lines, box.width, theme)]
    return shortened([[], *lines], box.height + 1, box.width, theme)[1:] if len(lines) > box.height else lines


def _paint_title(grid: Grid, box: Box, model: RunModel, theme: Theme, stream: int) -> None:
    """The stream's number, its story, a rule, and its rate: as far as there is room, the rate last."""
    x = _paint_number(grid, box, model, theme, stream)
    end = box.x + box.width
    story = model.told[stream][-1] if model.told[stream] else None
    rests = model.rests(stream)
    for text, colour, bold in _title(model, theme, story, rests):
        if x + text_cells(text) > end:
            break
        x = grid.text(x, box.y, text, colour, bold=bold)
    figures = ""
    if story and not rests:
        figures = next((text for text in _figures(story) if x + text_cells(text) + 4 <= end), "")
    rule = end - x - 2 - text_cells(figures)
    if rule > 0:
        x = grid.text(x + 1, box.y, "─" * (rule + (not figures)), theme.border)
        grid.text(x + 1, box.y, figures, theme.muted)


def _title(model: RunModel, theme: Theme, story: Story | None, rests: bool) -> list[Span]:
    if story is None:
        serves = bool(model.role_counts()[abi.SERVE])
        waits = "rests" if rests else "waiting for the first token" if serves else "no SM serves"
        return [(f" {waits}", theme.muted, False)]
    spans: list[Span] = [(" rests", theme.muted, False)] if rests else []
    spans.append((f" #{story.number}", theme.muted if rests else theme.serve_text, not rests))
    if story.prompted:
        spans.append((" prompt", theme.muted if rests else theme.serve_text, False))
    spans.append((f"  {story.tokens} tok", theme.muted, False))
    return spans


def _figures(story: Story) -> list[str]:
    """What stands at the right end, the longest first."""
    rate = f"{story.tokens_per_s:.0f} tok/s"
    return [f"{rate}  v{story.version:,}", rate] if story.tokens_per_s else [f"v{story.version:,}"]


def _paint_number(grid: Grid, box: Box, model: RunModel, theme: Theme, stream: int) -> int:
    chosen = stream == model.stream
    colours = (theme.background, theme.serve) if chosen else (theme.muted, theme.panel)
    return grid.text(box.x, box.y, f" {stream} ", *colours, bold=chosen, limit=box.width)


def _paint_one_row(grid: Grid, box: Box, model: RunModel, theme: Theme, stream: int) -> None:
    """The number and the end of the newest story."""
    x = _paint_number(grid, box, model, theme, stream)
    end = box.x + box.width
    rests = model.rests(stream)
    story = model.told[stream][-1] if model.told[stream] else None
    if story and not rests:
        now_s = model.snapshot.seconds if model.snapshot else 0.0
        lines = [line for line in text_lines(story, theme, max(1, end - x - 1), now_s, True) if line]
        draw_line(grid, x + 1, box.y, _last_words(lines, end - x - 1, theme), max(0, end - x - 1))
        return
    for text, colour, bold in _title(model, theme, story, rests):
        if x + text_cells(text) > end:
            return
        x = grid.text(x, box.y, text, colour, bold=bold)


def _last_words(lines: list[list[Span]], room: int, theme: Theme) -> list[Span]:
    """What fits into one row of the end of a text; "…" stands for what is left out."""
    row: list[Span] = []
    for line in reversed(lines):
        row = [*line, (" ", theme.text, False), *row] if row else list(line)
        if sum(text_cells(text) for text, _, _ in row) > room:
            break
    else:
        return row
    over = sum(text_cells(text) for text, _, _ in row) + 1 - room
    while row and over > 0:
        text, colour, bold = row.pop(0)
        words = re.match(r"\s*\S*\s*", text)
        cut = words.end() if words and words.end() < len(text) else len(text)
        over -= text_cells(text[:cut])
        if cut < len(text):
            row.insert(0, (text[cut:], colour, bold))
    while row and not row[0][0].lstrip():
        del row[0]
    if row:
        row[0] = (row[0][0].lstrip(), *row[0][1:])
    return [("…", theme.muted, False), *row]
