"""Pane 4: what the model writes, story by story, the newest tokens bold."""

from __future__ import annotations

from ofa_tui import abi
from ofa_tui.tui.draw import draw_frame
from ofa_tui.tui.grid import Grid, text_cells
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
        room -= text_cells(text)

    def new_line() -> None:
        nonlocal room
        if lines[-1]:
            text, colour, bold = lines[-1].pop()
            if text := text.rstrip(" "):
                lines[-1].append((text, colour, bold))
        lines.append([])
        room = width

    for word in _words(spans):
        length = sum(text_cells(text) for text, _, _ in word)
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
                if text_cells(character) > room:
                    new_line()
                put(character, colour, bold)
    return lines


def _words(spans: list[Span]) -> list[list[Span]]:
    """Runs without spaces, single spaces, and newlines; a word may have several colours. Carriage returns are none."""
    words: list[list[Span]] = []
    inside = False
    for text, colour, bold in spans:
        text, start = text.replace("\r", ""), 0
        for at, character in enumerate(text):
            if character in " \n\t":
                if at > start:
                    _extend(words, inside, (text[start:at], colour, bold))
                inside, start = False, at + 1
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


class _Wrapped:
    """Lines of a story's old pieces, which stay as they are; only the last line goes on."""

    def __init__(self) -> None:
        self.pieces = 0
        self.lines: list[list[Span]] = []
        self.open: list[Span] = []

    def take(self, spans: list[Span], pieces: int, width: int) -> None:
        *full, self.open = wrap_spans([*self.open, *spans], width)
        self.lines += full
        self.pieces += pieces


def text_lines(story: Story, theme: Theme, width: int, now_s: float, writing: bool) -> list[list[Span]]:
    """Wrapped text of one story; a cursor at its end while it is being written."""
    key = (theme, width)
    if story.wrapped is None or story.wrapped[0] != key:
        story.wrapped = (key, _Wrapped())
    wrapped = story.wrapped[1]
    old = max(wrapped.pieces, len(story.pieces) - FRESH_PIECES if writing else len(story.pieces))
    if old > wrapped.pieces:
        wrapped.take(_spans(story, wrapped.pieces, old, theme, None), old - wrapped.pieces, width)
    rest = [*wrapped.open, *_spans(story, old, len(story.pieces), theme, now_s)]
    if writing:
        rest.append(("▌", theme.serve, False))
    elif rest:
        rest[-1] = (rest[-1][0].rstrip(), *rest[-1][1:])
    return [*wrapped.lines, *wrap_spans(rest, width)]


def _spans(story: Story, start: int, end: int, theme: Theme, now_s: float | None) -> list[Span]:
    """Some of the pieces, in their colours; at `now_s` the newest are bold."""
    spans: list[Span] = []
    for index in range(start, end):
        text, seconds, from_prompt = story.pieces[index]
        fresh = now_s is not None and now_s - seconds < FRESH_S and not from_prompt
        colour = theme.muted if from_prompt else theme.serve_text if fresh else theme.text
        text = text if index else text.lstrip()
        if spans and spans[-1][1:] == (colour, fresh):
            spans[-1] = (spans[-1][0] + text, colour, fresh)
        else:
            spans.append((text, colour, fresh))
    return spans


def heading(story: Story, theme: Theme, width: int) -> list[Span]:
    """What is known of a story, as far as there is room."""
    spans: list[Span] = [(f"#{story.number}", theme.serve_text, True)]
    if story.prompted:
        spans.append((" prompt ", theme.serve_text, False))
    spans.append((f" {story.tokens} tok", theme.muted, False))
    if width >= 40:
        if story.tokens_per_s:
            spans.append((f"  {story.tokens_per_s:.0f} tok/s", theme.muted, False))
        spans.append((f"  v{story.version:,}", theme.muted, False))
    return spans


def story_lines(story: Story, theme: Theme, width: int, now_s: float, writing: bool) -> list[list[Span]]:
    """Heading and wrapped text."""
    return [heading(story, theme, width), *text_lines(story, theme, width, now_s, writing)]


def shortened(block: list[list[Span]], rows: int, width: int, theme: Theme) -> list[list[Span]]:
    """A story's heading and the end of its text in `rows` (at least 2) rows; "…" stands for what is left out."""
    first, *rest = block[len(block) - rows + 1 :]
    while first and sum(text_cells(text) for text, _, _ in first) >= width:
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
        block = story_lines(story, theme, inner.width, now_s, writing=index == 0)
        if index and gap:
            block = [*block, []]
        if used and used + len(block) > rows:
            room = rows - used
            if room >= 3:
                blocks.append(shortened(block, room, inner.width, theme))
            break
        blocks.append(block)
        used += len(block)
    newest = blocks[0]
    if len(newest) > rows:  # keep the heading, drop the oldest text
        blocks[0] = shortened(newest, rows, inner.width, theme) if rows > 1 else newest[-rows:]
    y = inner.y
    for block in reversed(blocks):
        for line in block:
            draw_line(grid, inner.x, y, line, inner.width)
            y += 1


def draw_line(grid: Grid, x: int, y: int, line: list[Span], width: int, colour: int | None = None) -> int:
    """A line of at most `width` cells, all of it in `colour` if there is one. Returns the x after it."""
    end = x + width
    for text, own, bold in line:
        x = grid.text(x, y, text, own if colour is None else colour, bold=bold, limit=max(0, end - x))
    return x
