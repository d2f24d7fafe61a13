"""Pane 2: every SM's role and how busy it is. Hue = role, brightness = busy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ofa_tui import abi
from ofa_tui.program.ops import OPS
from ofa_tui.timeline.limits import Limits
from ofa_tui.timeline.table import HEADER, Table, shortened, table_cells
from ofa_tui.tui.colour import channels, light
from ofa_tui.tui.draw import EIGHTHS, bar, draw_frame, sparkline
from ofa_tui.tui.grid import Grid
from ofa_tui.tui.layout import Box, Frame
from ofa_tui.tui.model import FAMILIES, RunModel
from ofa_tui.tui.theme import Theme

_LETTERS = "·TSD"
DETAIL_ROWS = 7
MOST_DETAIL_ROWS = 14
TABLE_EXTRA_ROWS = 5
"""Of a table beside its families: title, header, waiting, between tasks, sum."""
DROPPED = (3, 4, 2)
"""Columns of table.HEADER that a narrow pane leaves out, the first one first."""
READABLE = 3.5
"""Contrast (WCAG 2.2) from which figures on a cell are dark; bright ones then have as much or more."""


@dataclass(frozen=True)
class CellPlan:
    """How n SMs share a box: `style` list (a row each), label (letter and share), block (two cells), half (1x½).

    Where hues have no shades: letter (letter and level) in place of block, pair (two SMs a letter) in place of half.
    """

    style: str
    columns: int
    cell_width: int
    rows: int


def plan_cells(count: int, width: int, height: int, shaded: bool = True) -> CellPlan:
    """The most telling style in which all SMs fit; `shaded`: whether a hue can be shown in more than one strength."""
    if count <= height and width >= 30:
        return CellPlan("list", 1, width, count)
    if count <= 2 * height and width >= 100 and height > 1:
        return CellPlan("list", 2, width // 2, -(-count // 2))
    if height <= 1 and count * 6 <= width:
        return CellPlan("label", count, min(14, width // count), 1)
    for style, cell_width in (("label", 11), ("label", 8), ("label", 5), ("block", 2)):
        columns = min(count, width // cell_width)
        if columns and columns * height >= count and height > 1:
            rows = -(-count // columns)
            # Even rows: 132 SMs in room for 24 columns become 6 rows of 22.
            even = -(-count // rows)
            if style == "label":
                columns = even
            elif style == "block":
                rows = max(rows, min(height, 4))
                columns = -(-count // rows)
                style = "block" if shaded else "letter"
            return CellPlan(style, columns, cell_width, -(-count // columns))
    return CellPlan("half" if shaded else "pair", max(1, min(width, -(-count // max(1, 2 * height)))), 1, height)


def cell_at(plan: CellPlan, count: int, x: int, y: int) -> int | None:
    """SM drawn at cell (x, y) of the box."""
    column = x // plan.cell_width
    row = y * 2 if plan.style == "half" else y
    if column >= plan.columns or y >= max(plan.rows, 1):
        return None
    index = column * plan.rows + row if plan.style == "list" else row * plan.columns + column
    if plan.style == "pair":
        index *= 2
    return index if index < count else None


def moved(plan: CellPlan, count: int, selected: int | None, dx: int, dy: int) -> int:
    """Selection after an arrow key."""
    if selected is None:
        return 0
    step = dx * plan.rows + dy if plan.style == "list" else dx + dy * plan.columns * (1 + (plan.style == "pair"))
    target = selected + step
    return target if 0 <= target < count else selected


def legend(model: RunModel, theme: Theme, *, short: bool = False) -> list[tuple[str, int]]:
    pieces: list[tuple[str, int]] = []
    counts = model.role_counts()
    for role, name in ((abi.TRAIN, "train"), (abi.SERVE, "serve"), (abi.DOOM, "doom"), (abi.IDLE, "idle")):
        if (role == abi.IDLE and (short or not counts[role])) or (short and not counts[role]):
            continue
        if short:
            pieces.append((f" {_LETTERS[role]}{counts[role]}", theme.role_text(role)))
        else:
            hue = theme.role(role) if role else theme.muted
            pieces += [("  ■ " if pieces else "■ ", hue), (f"{name} ", theme.muted)]
            pieces.append((f"{counts[role]}", theme.text))
    return pieces


def shade(theme: Theme, roles: np.ndarray, busy: np.ndarray) -> np.ndarray:
    """Background of each SM's cell, u4 [n]: the role's hue, from the faintest that shows (idle) to all of it (busy)."""
    hues = np.array([theme.role(role) for role in range(len(abi.ROLES))], np.uint32)
    least = theme.faintest
    strength = np.where(roles == abi.IDLE, 1.0, least + (1 - least) * (0.05 + 0.95 * busy))[:, None]
    ground = channels(np.array(theme.background))
    mixed = np.rint(ground + (channels(hues[roles]) - ground) * strength).astype(np.uint32)
    return mixed[:, 0] << 16 | mixed[:, 1] << 8 | mixed[:, 2]


def ink_on(back: np.ndarray, theme: Theme) -> np.ndarray:
    """u4 [n]: for each background the darker of the theme's ground and its brightest text where it can be read, else
    the other."""
    dark, bright = sorted((theme.background, theme.bright), key=lambda colour: float(light(np.array(colour))))
    contrast = (light(back) + 0.05) / (light(np.array(dark)) + 0.05)
    return np.where(contrast >= READABLE, dark, bright).astype(np.uint32)


def _task_name(model: RunModel, sm: int) -> tuple[str, bool]:
    """(task type the SM has claimed, whether it is running rather than waiting)."""
    if model.snapshot is None or model.snapshot.sms is None:
        return "", False
    opcode = int(model.snapshot.sms[sm]["opcode"])
    return (OPS[opcode].name, int(model.snapshot.sms[sm]["phase"]) == 2) if opcode < len(OPS) else ("", False)


def task_line(model: RunModel, sm: int) -> str:
    """What an SM is doing right now."""
    snapshot = model.snapshot
    if snapshot is None or snapshot.sms is None:
        return ""
    status = snapshot.sms[sm]
    opcode = int(status["opcode"])
    if opcode >= len(OPS):
        return "between tasks" if int(status["phase"]) else "idle"
    verb = "waits to run" if int(status["phase"]) == 1 else "runs"
    return f"{verb} {OPS[opcode].name} (task {int(status['task']):,} of iteration {int(status['iteration']):,})"


def top_families(model: RunModel, sm: int, limit: int) -> list[tuple[str, float]]:
    """(family, share of the SM's task time), largest first."""
    shares = model.family_share[sm]
    order = np.argsort(-shares)[:limit]
    return [(FAMILIES[i], float(shares[i])) for i in order if shares[i] >= 0.005]


def cells_box(inner: Box, selected: int | None, zoomed: bool, table_rows: int = 0) -> Box:
    """The part of the pane the cells take; the rest is a table of `table_rows` rows, or the selected SM's detail."""
    if not zoomed or inner.height < DETAIL_ROWS + 4:
        return inner
    if table_rows:
        return inner._replace(height=max(4, inner.height - min(table_rows + 1, inner.height * 3 // 4)))
    return inner._replace(height=inner.height - DETAIL_ROWS - 1) if selected is not None else inner


def paint_sms(
    grid: Grid, frame: Frame, model: RunModel, theme: Theme, active: bool, selected: int | None, zoomed: bool
) -> Box:
    """Returns the box of the cells, for the mouse."""
    count = model.info.n_sms
    if not frame.top:
        return _paint_strip(grid, model, theme, selected)
    subtitle = legend(model, theme)
    if selected is not None and not zoomed:
        subtitle = _selected_line(model, theme, selected, grid.width - 6)
    title = [("2 SMs", theme.bright)]
    if zoomed:
        title.append((" · ↑↓ select" + ("" if model.replay else ", Enter role"), theme.muted))
    inner = draw_frame(grid, frame, theme, title, subtitle, active=active)
    table = _whole_table(model, selected) if zoomed else None
    box = cells_box(inner, selected, zoomed, len(table.rows) + TABLE_EXTRA_ROWS if table else 0)
    plan = plan_cells(count, box.width, box.height, theme.shaded)
    _paint_cells(grid, box, plan, model, theme, selected)
    if box.height < inner.height:
        top = box.y + min(box.height, plan.rows + 1)
        below = inner._replace(y=top, height=inner.y + inner.height - top)
        if table is not None:
            _paint_tables(grid, below, model, theme, table, selected)
        elif selected is not None:
            below = below._replace(height=min(below.height, MOST_DETAIL_ROWS))
            _paint_detail(grid, below, model, theme, selected)
    return box


def _selected_line(model: RunModel, theme: Theme, sm: int, room: int) -> list[tuple[str, int]]:
    role = int(model.roles[sm]) if sm < len(model.roles) else 0
    pieces = [(f"SM {sm} {abi.ROLES[role]}", theme.role_text(role))]
    used = len(pieces[0][0])
    doing = task_line(model, sm).split(" (")[0]
    shares = " ".join(f"{name} {share:.0%}" for name, share in top_families(model, sm, 3))
    for text in (f" {doing}", f" · {shares}" if shares else "", "" if model.replay else " · Enter: role"):
        if text and used + len(text) <= room:
            pieces.append((text, theme.muted))
            used += len(text)
    return pieces


def _paint_strip(grid: Grid, model: RunModel, theme: Theme, selected: int | None) -> Box:
    """All SMs in one row, counts at its right end."""
    counts = legend(model, theme, short=True)
    width = grid.width - sum(len(text) for text, _ in counts) - 2
    grid.fill(0, 0, grid.width, 1, theme.panel)
    box = Box(1, 0, max(1, width), 1)
    plan = plan_cells(model.info.n_sms, box.width, 1, theme.shaded)
    _paint_cells(grid, box, plan, model, theme, selected)
    x = box.x + box.width
    for text, colour in counts:
        x = grid.text(x, 0, text, colour)
    return box


def _paint_cells(grid: Grid, box: Box, plan: CellPlan, model: RunModel, theme: Theme, selected: int | None) -> None:
    count = min(len(model.roles), model.info.n_sms)
    if box.width <= 0 or box.height <= 0:
        return
    roles, busy = model.roles[:count], model.busy[:count]
    if plan.style == "list":
        for sm in range(count):
            column, row = divmod(sm, plan.rows)
            x, y = box.x + column * plan.cell_width, box.y + row
            _paint_row(grid, x, y, plan.cell_width, model, theme, sm, sm == selected)
        return
    back = shade(theme, roles, busy)
    if plan.style in ("letter", "pair"):
        paint_letters = _paint_letters if plan.style == "letter" else _paint_pairs
        paint_letters(grid, box, plan, roles, busy, theme, selected)
        return
    if plan.style == "half":
        _paint_halves(grid, box, plan, back, theme, selected)
        return
    number = np.arange(count)
    rows, columns = box.y + number // plan.columns, box.x + number % plan.columns * plan.cell_width
    if plan.style == "block":
        for offset, glyph in enumerate("█▉"):
            grid.char[rows, columns + offset] = ord(glyph)
            grid.fg[rows, columns + offset] = back
        if selected is not None and selected < count:
            grid.text(int(columns[selected]), int(rows[selected]), "◆", theme.bright, int(back[selected]))
        return
    ink = ink_on(back, theme)
    room = plan.cell_width - 1
    if selected is not None and selected < count:
        ink[selected], back[selected] = back[selected], theme.bright
    for offset in range(room):
        grid.fg[rows, columns + offset], grid.bg[rows, columns + offset] = ink, back
    percent = np.rint(100 * busy).astype(int).tolist()
    for sm, role in enumerate(roles.tolist()):
        text = f"{_LETTERS[role]}{percent[sm]:3d}" if role else "   ·"
        if room >= 7:
            text = f"{sm:3d} {text}" if role else f"{sm:3d} {text.strip():<4s}"
        if room >= 9 and role:
            text += "%"
        grid.char[rows[sm], columns[sm] : columns[sm] + room] = [ord(c) for c in text[:room].center(room)]


def _paint_halves(
    grid: Grid, box: Box, plan: CellPlan, colours: np.ndarray, theme: Theme, selected: int | None
) -> None:
    """Two SMs a cell, one above the other."""
    places = np.full(2 * box.height * plan.columns, theme.panel, np.uint32)
    count = min(len(colours), len(places))
    places[:count] = colours[:count]
    if selected is not None and selected < count:
        places[selected] = theme.bright
    halves = places.reshape(box.height, 2, plan.columns)
    area = (slice(box.y, box.y + box.height), slice(box.x, box.x + plan.columns))
    grid.char[area] = ord("▀")
    grid.fg[area], grid.bg[area] = halves[:, 0], halves[:, 1]


def _paint_letters(
    grid: Grid, box: Box, plan: CellPlan, roles: np.ndarray, busy: np.ndarray, theme: Theme, selected: int | None
) -> None:
    """The role's letter, and beside it a bar as high as the SM is busy."""
    for sm, role in enumerate(roles.tolist()):
        x, y = box.x + sm % plan.columns * plan.cell_width, box.y + sm // plan.columns
        chosen = sm == selected
        x = grid.text(x, y, "◆" if chosen else _LETTERS[role], theme.bright if chosen else theme.role_text(role))
        grid.text(x, y, EIGHTHS[round(8 * busy[sm])] if role else " ", theme.role(role))


def _paint_pairs(
    grid: Grid, box: Box, plan: CellPlan, roles: np.ndarray, busy: np.ndarray, theme: Theme, selected: int | None
) -> None:
    """Two neighbours a cell: the letter of the first one's role, a capital where they are busy half of the time."""
    for sm in range(0, min(len(roles), 2 * box.height * plan.columns), 2):
        row, column = divmod(sm // 2, plan.columns)
        letter = _LETTERS[roles[sm]]
        chosen = selected in (sm, sm + 1)
        text = "◆" if chosen else letter if busy[sm : sm + 2].mean() >= 0.5 else letter.lower()
        grid.text(box.x + column, box.y + row, text, theme.bright if chosen else theme.role_text(int(roles[sm])))


def _paint_row(grid: Grid, x: int, y: int, width: int, model: RunModel, theme: Theme, sm: int, selected: bool) -> None:
    """One SM as a line: number, role, bar, share, task, history."""
    role, busy = int(model.roles[sm]), float(model.busy[sm])
    end = x + width - 1
    hue = theme.role(role) if role else theme.muted
    at = grid.text(x, y, "▸" if selected else " ", theme.bright)
    at = grid.text(at, y, f"{sm:<2d} ", theme.bright if selected else theme.muted, bold=selected)
    at = grid.text(at, y, f"{abi.ROLES[role]:<6s}", theme.role_text(role), bold=True)
    bar_width = max(8, min(28, width // 3, width - 34))
    bar(grid, at, y, bar_width, busy, theme.faded(hue, 0.6 + 0.4 * busy), theme.idle)
    at = grid.text(at + bar_width, y, f" {round(100 * busy):3d}%", theme.text)
    history_width = min(30, width - (at - x) - 24)
    task, running = _task_name(model, sm)
    room = end - at - 2 - (history_width + 1 if history_width >= 8 else 0)
    if room >= 8:
        waits = " · waits" if task and not running and len(task) + 8 <= room else ""
        name = task if len(task) <= room else f"{task[: room - 1]}…"
        after = grid.text(at + 2, y, name, theme.text if running else theme.muted)
        grid.text(after, y, waits, theme.muted)
    if history_width >= 8:
        values = [float(sample[sm]) for sample in list(model.busy_history)[-history_width:]]
        if values:
            # A fixed top of 1 keeps the rows comparable.
            sparkline(grid, end - history_width, y, values, history_width, theme.faded(hue, 0.65), top=1.0)


def _paint_detail(grid: Grid, box: Box, model: RunModel, theme: Theme, sm: int) -> None:
    """The selected SM: task, waiting, history and where its time went."""
    role = int(model.roles[sm]) if sm < len(model.roles) else 0
    grid.text(box.x, box.y, "─" * box.width, theme.border)
    x = grid.text(box.x + 1, box.y + 1, f"SM {sm} ", theme.bright, bold=True)
    x = grid.text(x, box.y + 1, abi.ROLES[role], theme.role_text(role), bold=True)
    x = grid.text(x, box.y + 1, f"  {task_line(model, sm)}", theme.text, limit=box.x + box.width - x)
    status = model.snapshot.sms[sm] if model.snapshot and model.snapshot.sms is not None else None
    if status is not None:
        done, waiting = int(status["tasks_done"]), int(status["wait_ns"]) / 1e9
        text = f"{done:,} tasks done · {waiting:.1f} s waiting"
        if not model.replay:
            text += " · Enter changes its role"
        grid.text(box.x + 1, box.y + 2, text, theme.muted, limit=box.width - 1)
    rows = box.height - 3
    for row, (name, share) in enumerate(top_families(model, sm, rows)):
        y = box.y + 3 + row
        grid.text(box.x + 1, y, f"{name:<14s}", theme.text)
        bar(grid, box.x + 16, y, max(4, min(40, box.width // 2 - 24)), share, theme.role(role), theme.idle)
        grid.text(box.x + 17 + max(4, min(40, box.width // 2 - 24)), y, f"{share:5.1%}", theme.muted)
    width = box.width // 2 - 4
    values = [float(sample[sm]) for sample in list(model.busy_history)[-width:]]
    if width >= 10 and values:
        left = box.x + box.width - width - 1
        sparkline(grid, left, box.y + 3, values, width, theme.role(role), rows=rows - 1, top=1.0)
        grid.text(left, box.y + box.height - 1, f"busy, last {len(values) // 2} s".rjust(width), theme.muted)


def _whole_table(model: RunModel, selected: int | None) -> Table | None:
    """Of all SMs that do what the selected one does, or train; None where no timeline is kept."""
    if model.times is None:
        return None
    role = int(model.roles[selected]) if selected is not None and selected < len(model.roles) else abi.TRAIN
    return model.times.whole(role)


def _paint_tables(grid: Grid, box: Box, model: RunModel, theme: Theme, whole: Table, selected: int | None) -> None:
    """Where the time went: of the selected SM, and of all where there is room or none is selected."""
    assert model.times is not None
    grid.text(box.x, box.y, "─" * box.width, theme.border)
    box = box._replace(y=box.y + 1, height=box.height - 1)
    own = model.times.of_sm(selected, whole.role) if selected is not None else None
    tables = [(f"all {whole.sms} SMs that {VERBS[whole.role]}", whole)]
    if own is not None:
        tables.insert(0, (f"SM {selected} {abi.ROLES[whole.role]}", own))
    limits = model.times.limits
    widths = [_widths(_cells(table, limits, box.height)) for _, table in tables]
    if sum(map(_width, widths)) > box.width:
        del tables[1:]
    x = box.x + 1
    for title, table in tables:
        room = box.x + box.width - x if len(tables) == 1 else box.width // 2
        missing = f", {model.times.lost:,} tasks missing" if model.times.lost else ""
        _paint_table(grid, Box(x, box.y, room - 1, box.height), theme, f"{title}{missing}", table, limits)
        x += room


VERBS = {abi.TRAIN: "train", abi.SERVE: "serve", abi.DOOM: "play Doom"}


def _cells(table: Table, limits: Limits | None, height: int) -> list[tuple[str, ...]]:
    return [HEADER, *table_cells(shortened(table, height - TABLE_EXTRA_ROWS), limits)]


def _widths(cells: list[tuple[str, ...]]) -> list[int]:
    return [max(len(row[column]) for row in cells) for column in range(len(HEADER))]


def _width(widths: list[int]) -> int:
    return sum(width + 2 for width in widths)


def _paint_table(grid: Grid, box: Box, theme: Theme, title: str, table: Table, limits: Limits | None) -> None:
    cells = _cells(table, limits, box.height)
    widths = _widths(cells)
    columns = list(range(len(HEADER)))
    for column in DROPPED:
        if sum(widths[kept] + 2 for kept in columns) > box.width:
            columns.remove(column)
    ms = (table.end_ns - table.begin_ns) / 1e6 / table.iterations
    x = grid.text(box.x, box.y, title, theme.role_text(table.role), bold=True, limit=box.width)
    grid.text(x, box.y, f" · {ms:,.3f} ms a {table.unit}, times of one", theme.muted,
              limit=max(0, box.x + box.width - x))
    for row, texts in enumerate(cells[: box.height - 1]):
        kind = theme.muted if row == 0 else theme.bright if texts[0] == "sum" else theme.text
        x = box.x
        for column in columns:
            aligned = texts[column].rjust(widths[column]) if column else texts[0].ljust(widths[0])
            x = grid.text(x, box.y + 1 + row, aligned + "  ", kind, limit=max(0, box.x + box.width - x))
