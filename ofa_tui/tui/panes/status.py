"""Header line, telemetry tiles and footer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ofa_tui.tui.actions import Action
from ofa_tui.tui.draw import duration, short, sparkline
from ofa_tui.tui.grid import Grid, text_cells
from ofa_tui.tui.layout import SizeClass
from ofa_tui.tui.model import HELD_OUT_TILE, RunModel
from ofa_tui.tui.theme import Theme

_SHOW = {
    "tab": "Tab", "escape": "Esc", "enter": "Enter", "left": "←", "right": "→", "up": "↑", "down": "↓",
}  # fmt: skip


def show_key(key: str) -> str:
    """A key as footer and help write it."""
    return _SHOW.get(key, key)


def short_device(device: str) -> str:
    """The telling part of a device name: "EPYC 9B14 (2 cores)", "H200"."""
    for noise in ("NVIDIA ", "AMD ", "Intel(R) ", "(R)", "(TM)", " Processor", " CPU"):
        device = device.replace(noise, " " if noise.endswith(")") else "")
    return " ".join(device.split())


@dataclass(frozen=True)
class HeaderState:
    """What the header shows beside the model."""

    link_fps: float | None
    """Frames a second that the terminal takes; None where it was not measured yet."""
    open_loop: bool
    recording: bool
    playing: bool
    origin: tuple[str, ...] | None = None
    """Of a replay: what is said of its record after the device, most important first."""


def paint_header(grid: Grid, model: RunModel, theme: Theme, kind: SizeClass, state: HeaderState) -> None:
    grid.fill(0, 0, grid.width, 1, theme.panel)
    x = grid.text(0, 0, " ofa-tui ", theme.background, theme.bright, bold=True)
    right: list[tuple[str, int, bool]] = []
    if state.playing:
        right += [("MANUAL ", theme.doom_text, True)]
    if state.recording:
        right += [("● REC", theme.doom_text, True), ("  ", theme.muted, False)]
    unit = "fps link" if kind is not SizeClass.NARROW and kind is not SizeClass.SINGLE else "fps"
    pace = "~" if state.open_loop else ""
    rate = "–" if state.link_fps is None else f"{pace}{state.link_fps:.0f}"
    right += [(f"{rate} {unit} ", theme.muted, False)]
    start = grid.width - sum(len(text) for text, _, _ in right)
    if start > x:
        at = start
        for text, colour, bold in right:
            at = grid.text(at, 0, text, colour, bold=bold)
    else:
        start = grid.width
    x = grid.text(x + 1, 0, f" {model.info.preset}", theme.bright, bold=True, limit=max(0, start - x - 1))
    between, dot = "", "  ·  " if kind in (SizeClass.WIDE, SizeClass.MEDIUM) else " · "
    for forms, colour in _header_parts(model, theme, kind, state.origin):
        fitting = [form for form in forms if x + len(between) + len(form) + 2 <= start]
        if not fitting:
            break
        x = grid.text(x, 0, between, theme.muted)
        x = grid.text(x, 0, fitting[0], colour)
        between = dot


def _header_parts(
    model: RunModel, theme: Theme, kind: SizeClass, origin: tuple[str, ...] | None
) -> list[tuple[list[str], int]]:
    """What it says, each part in one form or several, the longest first."""
    info, snapshot = model.info, model.snapshot
    done = snapshot.steps_done if snapshot else 0
    share = f" {100 * done // info.steps}%" if info.steps else ""
    roomy = kind in (SizeClass.WIDE, SizeClass.MEDIUM)
    total = f"/{info.steps:,}" if roomy else ""
    elapsed = duration(snapshot.seconds if snapshot else 0)
    parts = [([f"  step {done:,}{total}{share}"], theme.muted)]
    # A replay does not know whether its SMs were virtual.
    sms = {"cuda": f" {info.n_sms} SM", "replay": f" · {info.n_sms} SMs"}.get(
        info.backend, f" · {info.n_sms} virtual SMs"
    )
    device = short_device(info.device) + (sms if kind is SizeClass.WIDE else "")
    if origin is not None:
        facts = [device, *origin]
        shorter = [f"recording: {', '.join(facts[:count])}" for count in range(len(facts), 0, -1)]
        parts.append(([*shorter, "recording"], theme.text))
    parts.append(([elapsed], theme.muted))
    if model.state != "running":
        parts.append(([model.state], theme.error if model.state == "aborted" else theme.warning))
    elif model.games_held:
        parts.append((["games held"], theme.warning))
    if roomy:
        parts.append((["1 launch, resident" if kind is SizeClass.WIDE else "1 launch"], theme.muted))
        if origin is None:
            parts.append(([device], theme.muted))
    return parts


@dataclass(frozen=True)
class Tile:
    key: str
    label: str
    value: str
    unit: str
    colour: int
    text: int


def tiles(model: RunModel, theme: Theme) -> list[Tile]:
    """All tiles that have something to show, most important first."""
    snapshot = model.snapshot
    device = snapshot.device if snapshot else {}
    latest = model.figures().get
    out: list[Tile] = []

    def add(key: str, label: str, unit: str, colour: int, text: int, form: str = "") -> None:
        value = latest(key)
        if value is not None:
            out.append(Tile(key, label, format(value, form) if form else short(value), unit, colour, text))

    add("train", "train", "tok/s", theme.train, theme.train_text)
    if latest("step"):
        add("step", "step", "ms", theme.train, theme.train_text)
    else:  # no step was made in the last second
        out.append(Tile("step", "step", "–", "", theme.train, theme.train_text))
    add("loss", "loss", "", theme.train, theme.train_text, ".3f")
    add(HELD_OUT_TILE, "val", "", theme.train, theme.train_text, ".3f")
    add("serve", "serve", "tok/s", theme.serve, theme.serve_text)
    if snapshot:
        model_version = f"v{snapshot.version}"
        out.append(Tile("serve", "weights", model_version, "", theme.serve, theme.serve_text))
    if model.info.games:
        add("doom", "doom", "fps", theme.doom, theme.doom_text, ".1f" if latest("doom") else ".0f")
        add("frame", "frame", "ms", theme.doom, theme.doom_text, ".2f")
    if "power_w" in device:
        add("power_w", "power", "W", theme.machine, theme.bright, ".0f")
    if "cpu_percent" in device:
        add("cpu_percent", "cpu", "%", theme.machine, theme.bright, ".0f")
    if "rss_bytes" in device:
        value = device["rss_bytes"] / 2**30
        out.append(Tile("rss_bytes", "memory", f"{value:.2f}", "GB", theme.machine, theme.bright))
    if "temperature_c" in device:
        add("temperature_c", "temp", "°C", theme.machine, theme.bright, ".0f")
    return out


NARROW_TILES = (
    "train", "loss", HELD_OUT_TILE, "serve", "doom", "frame", "power_w", "step", "cpu_percent", "temperature_c",
)  # fmt: skip
"""Keys of the tiles of a one-line strip, most important first."""


def paint_tiles(grid: Grid, model: RunModel, theme: Theme, kind: SizeClass) -> None:
    grid.fill(0, 0, grid.width, min(grid.height, 2), theme.panel)
    shown = tiles(model, theme)
    if grid.height == 1:
        _paint_tile_line(grid, shown, theme)
        return
    wide = kind is SizeClass.WIDE
    if not wide:
        shown = [tile for tile in shown if tile.key not in ("step", "frame")]
    shown = shown[: 10 if wide else 8]
    places = tile_places(shown, grid.width)
    for tile, (left, room, with_unit) in zip(shown, places, strict=True):
        x = grid.text(left, 0, tile.label, theme.muted, limit=room)
        x = grid.text(x + 1, 0, tile.value, tile.text, bold=True, limit=left + room - x - 1)
        if with_unit:
            grid.text(x + 1, 0, tile.unit, theme.muted, limit=max(0, left + room - x - 1))
        _paint_tile_history(grid, left, room, tile, model, theme)


def tile_places(shown: Sequence[Tile], width: int) -> list[tuple[int, int, bool]]:
    """(left, cells, whether the unit fits) of each tile in a strip of `width` cells.

    Each gets what its text needs and an equal part of the rest; where that is too much, the longest units go first.
    """
    bare = [len(tile.label) + 1 + max(4, len(tile.value)) for tile in shown]
    units = [len(tile.unit) + 1 if tile.unit else 0 for tile in shown]
    spare = width - 2 * len(shown)
    while sum(bare) + sum(units) > spare and any(units):
        units[max(range(len(units)), key=units.__getitem__)] = 0
    rest = max(0, spare - sum(bare) - sum(units))
    places = []
    for index, (text, unit) in enumerate(zip(bare, units, strict=True)):
        before = sum(bare[:index]) + sum(units[:index]) + 2 * index + rest * index // len(shown)
        room = text + unit + rest * (index + 1) // len(shown) - rest * index // len(shown)
        places.append((before + 1, max(0, min(room, width - before - 1)), unit > 0))
    return places


def _paint_tile_line(grid: Grid, shown: Sequence[Tile], theme: Theme) -> None:
    """One line without curves. Values whose unit says what they are go without their label."""
    x = 1
    for key in NARROW_TILES:
        tile = next((tile for tile in shown if tile.key == key and tile.label != "weights"), None)
        if tile is None:
            continue
        label = "" if key in ("train", "doom", "power_w", "temperature_c") else f"{tile.label} "
        unit = "/s" if key == "serve" else f" {tile.unit}" if tile.unit else ""
        if x + len(label) + len(tile.value) + len(unit) > grid.width:
            continue
        x = grid.text(x, 0, label, theme.muted)
        x = grid.text(x, 0, tile.value, tile.text, bold=True)
        x = grid.text(x, 0, unit, theme.muted) + 2


def _paint_tile_history(grid: Grid, left: int, room: int, tile: Tile, model: RunModel, theme: Theme) -> None:
    colour = theme.faded(tile.colour, 0.8)
    if tile.label != "weights":
        values = list(model.history.get(tile.key, ()))[-room:] if room else []
        falling = tile.key in ("loss", HELD_OUT_TILE)
        top = None if falling or not values else max(1e-9, 1.3 * max(values))
        sparkline(grid, left, 1, values, room, colour, zero=not falling, top=top)
    else:
        share = model.snapshot.steps_done / model.info.steps if model.snapshot and model.info.steps else 0
        grid.text(left, 1, "▁" * room, theme.idle)
        grid.text(left, 1, "▂" * round(min(1.0, share) * room), colour)


PLAY_KEYS = (
    ("WASD", "move"), ("← →", "turn"), ("f", "fire"), ("Enter", "use"), ("1-7", "weapon"), ("l", "latch"),
    ("Tab", "map"),
)  # fmt: skip
"""What the keys do while a person plays, most important first."""
WAY_BACK = ("Esc", "gives back")
MOST_FOOTER_ROWS = 8


def paint_footer(
    grid: Grid,
    theme: Theme,
    actions: Iterable[Action],
    message: Sequence[tuple[str, int]] = (),
    *,
    playing: bool = False,
) -> None:
    """Keys, as many as fit; a message, over as many rows as it takes, has their place while there is one.

    While a person plays they are the keys of the game, and the way back stands first, before any message.
    """
    grid.fill(0, 0, grid.width, grid.height, theme.panel)
    x = 1
    keys = [(action.footer_keys or show_key(action.keys[0]), action.label) for action in actions]
    if playing:
        x = _footer_key(grid, x, *WAY_BACK, theme)
        keys = list(PLAY_KEYS)
    if message:
        for y, line in enumerate(footer_lines(message, grid.width, playing=playing)):
            x = x if y == 0 else 1
            for text, colour in line:
                x = grid.text(x, y, text, colour, limit=max(0, grid.width - 1 - x))
        return
    for key, label in keys:
        if x + len(key) + len(label) + 1 >= grid.width:
            break
        x = _footer_key(grid, x, key, label, theme)


def footer_lines(
    message: Sequence[tuple[str, int]], width: int, *, playing: bool = False
) -> list[list[tuple[str, int]]]:
    """The coloured pieces of a message, broken between words into rows of a footer that is `width` cells wide."""
    lines: list[list[tuple[str, int]]] = [[]]
    x, end = 1 + (sum(map(len, WAY_BACK)) + 3 if playing else 0), width - 1
    for text, colour in message:
        for word in re.findall(rf"\S{{1,{max(1, end - 1)}}}\s*|\s+", text):
            if x + text_cells(word.rstrip()) > end and lines[-1]:
                lines.append([])
                x = 1
            lines[-1].append((word, colour))
            x += text_cells(word)
    return lines[:MOST_FOOTER_ROWS]


def _footer_key(grid: Grid, x: int, key: str, label: str, theme: Theme) -> int:
    x = grid.text(x, 0, key, theme.key, bold=True)
    return grid.text(x + 1, 0, label, theme.muted) + 2
