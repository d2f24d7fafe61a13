"""Pane 4: what the model writes, story by story, the newest tokens bold."""

from __future__ import annotations

from rich.cells import cell_len

from ofa_tui import abi
from ofa_tui.tui.draw import draw_frame
from ofa_tui.tui.grid import Grid
from ofa_tui.tui.layout import Frame
from ofa_tui.tui.model import FRESH_PIECES, FRESH_S, RunModel, Story
from ofa_tui.tui.theme import Theme

Span = tuple[str, int, bool]
"""(text, colour, bold)"""


def wrap_spans(spans: list[Span], width: int) -> list[list[Span]]:
    """Breaks coloured text into lines of at most `width` cells, at spaces where possible.

    Newlines break; a space at a break is dropped; a word longer than a line is cut.
    """
    lines: list[list[Span]] = [[]]
    room = width

    def put(text: str, colour: int, bold: bool) -> None:
        nonlocal room
        line = lines[-1]
        if line and line[-1][1:] == (colour, bold):
            line[-1] = (line[-1][0] + text, colour, bold)
        else:
            line.append((text, colour, bold))
        room -= cell_len(text)

    def new_line() -> None:
        nonlocal room
        if lines[-1]:
            text, colour, bold = lines[-1].pop()
            if text := text.rstrip(" "):
                lines[-1].append((text, colour, bold))
        lines.append([])
        room = width

    for word in _words(spans):
        length = sum(cell_len(text) for text, _, _ in word)
        first = word[0][0]
        if first == "\n":
            new_line()
            continue
        if length > room and lines[-1]:
            new_line()
            if first == " ":
                continue
        for text, colour, bold in word:
            for character in text if length > width else (text,):
                if cell_len(character) > room:
                    new_line()
                put(character, colour, bold)
    return lines


def _words(spans: list[Span]) -> list[list[Span]]:
    """Runs without spaces, single spaces, and newlines; a word may have several colours."""
    words: list[list[Span]] = []
    inside = False
    for text, colour, bold in spans:
        start = 0
        for at, character in enumerate(text):
            if character in " \n\t\r":
                if at > start:
                    _extend(words, inside, (text[start:at], colour, bold))
                inside, start = False, at + 1
                if character != "\r":
                    words.append([("\n" if character == "\n" else " ", colour, bold)])
        if start < len(text):
            _extend(words, inside, (text[start:], colour, bold))
            inside = True
    return words


def _extend(words: list[list[Span]], inside: bool, span: Span) -> None:
    if inside:
        words[-1].append(span)
    else:
        words.append([span])


def story_lines(story: Story, theme: Theme, width: int, now_s: float, writing: bool) -> list[list[Span]]:
    """Heading and wrapped text of one story; a cursor at its end while it is being written."""
    rate = story.tokens_per_s
    heading: list[Span] = [(f"#{story.number}", theme.serve_text, True)]
    if story.prompted:
        heading.append((" prompt ", theme.serve_text, False))
    heading.append((f" {story.tokens} tok", theme.muted, False))
    if width >= 40:
        if rate:
            heading.append((f"  {rate:.0f} tok/s", theme.muted, False))
        heading.append((f"  v{story.version:,}", theme.muted, False))
    spans: list[Span] = []
    newest = len(story.pieces) - FRESH_PIECES
    for index, (text, seconds, from_prompt) in enumerate(story.pieces):
        fresh = writing and index >= newest and now_s - seconds < FRESH_S
        colour = theme.muted if from_prompt else theme.serve_text if fresh else theme.text
        if spans and spans[-1][1:] == (colour, fresh and not from_prompt):
            spans[-1] = (spans[-1][0] + text, colour, spans[-1][2])
        else:
            spans.append((text, colour, fresh and not from_prompt))
    if spans:
        spans[0] = (spans[0][0].lstrip(), *spans[0][1:])
    if writing:
        spans.append(("▌", theme.serve, False))
    elif spans:
        spans[-1] = (spans[-1][0].rstrip(), *spans[-1][1:])
    return [heading, *wrap_spans(spans, width)]


def _lines(story: Story, theme: Theme, width: int, now_s: float, writing: bool) -> list[list[Span]]:
    """story_lines, remembered for stories that are done."""
    if writing:
        return story_lines(story, theme, width, now_s, True)
    key = (story.tokens, theme, width)
    if story.wrapped is None or story.wrapped[0] != key:
        story.wrapped = (key, story_lines(story, theme, width, now_s, False))
    return list(story.wrapped[1])


def _shortened(block: list[list[Span]], rows: int, width: int, theme: Theme) -> list[list[Span]]:
    """A story's heading and the end of its text in `rows` (at least 2) rows; "…" stands for what is left out."""
    first, *rest = block[len(block) - rows + 1 :]
    while first and sum(cell_len(text) for text, _, _ in first) >= width:
        text, colour, bold = first[0]
        shorter = text.partition(" ")[2]
        first = [(shorter, colour, bold), *first[1:]] if shorter else first[1:]
    return [block[0], [("…", theme.muted, False), *first], *rest]


def paint_serve(
    grid: Grid, frame: Frame, model: RunModel, theme: Theme, active: bool, *, prompt_rows: int, gap: bool
) -> None:
    """The newest stories that fit, oldest at the top. `prompt_rows` at the bottom stay free for the prompt line."""
    snapshot = model.snapshot
    subtitle: list[tuple[str, int]] = []
    if snapshot:
        subtitle = [(f"{snapshot.served_per_s:,.0f} tok/s  weights v{snapshot.version:,}", theme.muted)]
    inner = draw_frame(grid, frame, theme, [("4 serve", theme.serve_text)], subtitle, active=active)
    rows = inner.height - prompt_rows
    counts = model.role_counts()
    if not model.stories:
        message = "waiting for the first token"
        if snapshot and not counts[abi.SERVE]:
            message = "no SM serves" if model.replay else "no SM serves: [ gives it one"
        grid.text(inner.x, inner.y, message, theme.muted, limit=inner.width)
        return
    now_s = snapshot.seconds if snapshot else 0.0
    blocks: list[list[list[Span]]] = []
    used = 0
    for index, story in enumerate(reversed(model.stories)):
        block = _lines(story, theme, inner.width, now_s, writing=index == 0)
        if index and gap:
            block = [*block, []]
        if used and used + len(block) > rows:
            room = rows - used
            if room >= 3:
                blocks.append(_shortened(block, room, inner.width, theme))
            break
        blocks.append(block)
        used += len(block)
    newest = blocks[0]
    if len(newest) > rows:  # keep the heading, drop the oldest text
        blocks[0] = _shortened(newest, rows, inner.width, theme) if rows > 1 else newest[-rows:]
    y = inner.y
    for block in reversed(blocks):
        for line in block:
            x = inner.x
            for text, colour, bold in line:
                x = grid.text(x, y, text, colour, bold=bold, limit=inner.x + inner.width - x)
            y += 1
