"""Screens as text files: what a person sees in every theme and at every colour depth, cell by cell, in little room.

Themes and depths change the colours of a screen and little else. So a file holds its characters (once for the depths
that show the same), and a sign for each cell's style. The legend says what a style is: ink on ground, by the names of
the colours in `colours.txt`, which holds what each is in every theme and at every depth. Cells share a style only if
they look alike in all of them. Of the game's picture, which no theme changes, the file holds what a terminal without
colours shows, and a digest of each row at the other depths.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import product
from pathlib import Path
from string import ascii_letters, digits, punctuation

import numpy as np
from app_session import Session
from seen import UNSEEN, Seen, as_arrays, picture_box, picture_looks, read_screen, show

from ofa_tui import locations
from ofa_tui.tui.colour import Depth, quantise
from ofa_tui.tui.layout import Box
from ofa_tui.tui.theme import Theme, for_depth, load_themes

GOLDEN = Path(__file__).parent / "golden"
COLOURED = (Depth.TRUECOLOR, Depth.EIGHT_BIT, Depth.FOUR_BIT)
NO_INK = "-"
"""The name of what is not seen: a blank's ink."""
PICTURE = "·"
"""The sign of the picture's cells, which the legend does not have."""
SIGNS = ascii_letters + digits + "".join(c for c in punctuation if c != "|")

Combination = tuple[str, Depth]
"""Theme and depth."""

_SHIPPED = {path.stem for path in locations.themes().glob("*.toml")}
THEMES = ("dark", *sorted(_SHIPPED - {"dark"}))
"""The default one first."""
COMBINATIONS: tuple[Combination, ...] = tuple(product(THEMES, (*COLOURED, Depth.NONE)))


@dataclass(frozen=True)
class Capture:
    """A screen as it was seen in every combination."""

    boxes: dict[str, Box]
    picture: Box
    seen: dict[Combination, Seen]
    digests: dict[Combination, list[str]]
    """Of the picture's rows."""


def capture(run: Session) -> Capture:
    seen, digests = {}, {}
    picture = picture_box(run.app)
    for theme, depth in COMBINATIONS:
        show(run.app, theme, depth)
        rows = read_screen(run.app)
        seen[theme, depth] = as_arrays(rows)
        digests[theme, depth] = [
            hashlib.blake2s(repr(look).encode(), digest_size=3).hexdigest() for look in picture_looks(rows, picture)
        ]
    return Capture(run.app.boxes(*run.app.size), picture, seen, digests)


# --- colours by name ----------------------------------------------------------------------------------------------


class Names:
    """Colours by name: the theme's own, else named after what they are in the default theme.

    A colour is what it is in each combination in which it is seen; one that is elsewhere the same is the same colour.
    """

    def __init__(self) -> None:
        self._known: dict[str, dict[Combination, int]] = _theme_colours()
        self._used: set[str] = set()

    def name(self, values: Mapping[Combination, int]) -> str:
        if set(values.values()) <= {UNSEEN}:
            return NO_INK
        name = next((name for name, known in self._known.items() if _agree(known, values)), "")
        if not name:
            first = next(iter(c for c in values if c[0] == "dark"))
            plain = written(values[first], first[1])
            name = next(n for n in (plain, *(f"{plain}-{k}" for k in range(2, 999))) if n not in self._known)
        self._known.setdefault(name, {}).update(values)
        self._used.add(name)
        return name

    def table(self) -> str:
        """The text of colours.txt: a paragraph for each theme, a line for each colour that some screen has."""
        parts = ["name " + " ".join(depth.value for depth in COLOURED)]
        for theme in THEMES:
            parts.append(f"\n[{theme}]")
            for name in sorted(self._used):
                known = self._known[name]
                values = (written(known.get((theme, depth), UNSEEN), depth) for depth in COLOURED)
                parts.append(f"{name} {' '.join(values)}")
        return "\n".join(parts) + "\n"


def _theme_colours() -> dict[str, dict[Combination, int]]:
    """The themes' own colours as the depths show them."""
    themes = load_themes()
    names = [f.name for f in fields(Theme) if f.name not in ("name", "summary", "dark", "faintest")]
    return {
        name: {
            (theme, depth): _shown(getattr(for_depth(themes[theme], depth), name), depth)
            for theme, depth in COMBINATIONS if depth is not Depth.NONE
        }
        for name in names
    }  # fmt: skip


def _shown(colour: int, depth: Depth) -> int:
    return colour if depth is Depth.TRUECOLOR else int(quantise(np.array(colour), depth))


def _agree(known: Mapping[Combination, int], values: Mapping[Combination, int]) -> bool:
    return any(c in known for c in values) and all(known.get(c, value) == value for c, value in values.items())


def written(colour: int, depth: Depth) -> str:
    return "-" if colour == UNSEEN else f"{colour:06x}" if depth is Depth.TRUECOLOR else str(colour)


def read_colours(text: str) -> dict[str, dict[Combination, int]]:
    colours: dict[str, dict[Combination, int]] = {}
    theme = ""
    for line in text.splitlines()[1:]:
        if line.startswith("["):
            theme = line.strip("[]")
        elif line:
            name, *values = line.split()
            for depth, value in zip(COLOURED, values, strict=True):
                number = UNSEEN if value == "-" else int(value, 16 if depth is Depth.TRUECOLOR else 10)
                colours.setdefault(name, {})[theme, depth] = number
    return colours


# --- the file of a screen -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Style:
    """`looks`: names of the colours of ink and ground, by depth; `bold`, `reverse`: where it is so."""

    looks: Mapping[Depth, tuple[str, str]]
    bold: frozenset[Combination]
    reverse: frozenset[Combination]

    def __str__(self) -> str:
        depths: dict[tuple[str, str], list[str]] = {}
        for depth, look in self.looks.items():
            depths.setdefault(look, []).append(depth.value)
        parts = [f"{' '.join(where)}: " * (len(depths) > 1) + " on ".join(look) for look, where in depths.items()]
        parts += [f"{what} {_list(where)}" for what, where in (("bold", self.bold), ("reverse", self.reverse)) if where]
        return ", ".join(parts)

    @classmethod
    def parse(cls, text: str) -> Style:
        looks: dict[Depth, tuple[str, str]] = {}
        flags: dict[str, frozenset[Combination]] = {"bold": frozenset(), "reverse": frozenset()}
        for part in text.split(", "):
            if " on " in part:
                where, _, look = part.rpartition(": ")
                ink, ground = look.split(" on ")
                looks |= dict.fromkeys(map(Depth, where.split()) if where else COLOURED, (ink, ground))
            else:
                what, where = part.split(" ", 1)
                flags[what] = _parse_list(where)
        return cls(looks, **flags)


def _list(where: frozenset[Combination]) -> str:
    """Combinations in words: `always`, or depths, each with its themes where it is not all of them."""
    if len(where) == len(COMBINATIONS):
        return "always"
    words = []
    for depth in Depth:
        themes = [theme for theme in THEMES if (theme, depth) in where]
        words += [depth.value] if len(themes) == len(THEMES) else [f"{depth.value}/{theme}" for theme in themes]
    return " ".join(words)


def _parse_list(text: str) -> frozenset[Combination]:
    if text == "always":
        return frozenset(COMBINATIONS)
    words = [word.partition("/") for word in text.split()]
    return frozenset((theme, Depth(d)) for d, _, only in words for theme in ([only] if only else THEMES))


@dataclass(frozen=True)
class Screen:
    """What a file holds. `characters` by depth, `signs` of the styles in `legend`, which has them by pane and sign."""

    boxes: dict[str, Box]
    picture: Box
    characters: dict[Depth, list[str]]
    signs: list[str]
    legend: dict[tuple[str, str], Style]
    digests: dict[Depth, list[str]]


def describe(captured: Capture, names: Names) -> Screen:
    """Raises AssertionError where a theme changes characters or the picture, which no file could hold."""
    characters = {}
    for depth in Depth:
        of_themes = {theme: _characters(captured, theme, depth) for theme in THEMES}
        assert len({tuple(rows) for rows in of_themes.values()}) == 1, f"themes differ in characters at {depth.value}"
        characters[depth] = of_themes[THEMES[0]]
    digests = {}
    for depth in COLOURED:
        assert len({tuple(captured.digests[theme, depth]) for theme in THEMES}) == 1, "themes change the picture"
        digests[depth] = captured.digests[THEMES[0], depth]
    signs = np.full(captured.seen[COMBINATIONS[0]].char.shape, PICTURE)
    legend: dict[tuple[str, str], Style] = {}
    alike = [depths for depths in _alike(characters, captured.picture) if depths != [Depth.NONE]]
    for pane, box in captured.boxes.items():
        _sign_styles(captured, pane, box, names, alike, signs, legend)
    return Screen(
        captured.boxes, captured.picture, characters, ["".join(row) for row in signs.tolist()], legend, digests
    )


def _characters(captured: Capture, theme: str, depth: Depth) -> list[str]:
    """Rows of text; the picture shows in them without colours only."""
    rows = ["".join(map(chr, row)) for row in captured.seen[theme, depth].char.tolist()]
    return rows if depth is Depth.NONE else _blanked(rows, captured.picture)


def _blanked(rows: list[str], box: Box) -> list[str]:
    """The rows of a screen (no character is wide) without what is in the box."""
    within = range(box.y, box.y + box.height)
    return [
        row[: box.x] + " " * box.width + row[box.x + box.width :] if y in within else row for y, row in enumerate(rows)
    ]


def inside(box: Box) -> tuple[slice, slice]:
    """Rows and columns of a box."""
    return slice(box.y, box.y + box.height), slice(box.x, box.x + box.width)


def _alike(characters: Mapping[Depth, list[str]], picture: Box) -> list[list[Depth]]:
    """The depths that show the same characters, but for the picture, together; without colours first."""
    groups: dict[tuple[str, ...], list[Depth]] = {}
    for depth in (Depth.NONE, *COLOURED):
        groups.setdefault(tuple(_blanked(characters[depth], picture)), []).append(depth)
    return list(groups.values())


def _sign_styles(
    captured: Capture, pane: str, box: Box, names: Names, alike: list[list[Depth]], signs: np.ndarray,
    legend: dict[tuple[str, str], Style],
) -> None:
    """Gives each cell of the pane the sign of its style, in the order in which they come."""
    parts = [getattr(captured.seen[c], part)[inside(box)] for part in ("ink", "ground", "bold", "reverse")
             for c in COMBINATIONS]  # fmt: skip
    keys = np.stack(parts, axis=-1).reshape(box.height * box.width, 4, len(COMBINATIONS))
    outside = np.ones(signs.shape, bool)
    outside[inside(captured.picture)] = False
    known: dict[bytes, str] = {}
    for index in np.flatnonzero(outside[inside(box)]).tolist():
        key = keys[index].tobytes()
        if key not in known:
            assert len(known) < len(SIGNS), f"{pane} has too many styles"
            known[key] = SIGNS[len(known)]
            ink, ground, bold, reverse = (dict(zip(COMBINATIONS, row, strict=True)) for row in keys[index].tolist())
            looks = {}
            for depths in alike:
                within = [c for c in COMBINATIONS if c[1] in depths and c[1] is not Depth.NONE]
                look = tuple(names.name({c: values[c] for c in within}) for values in (ink, ground))
                looks |= {depth: look for depth in depths if depth is not Depth.NONE}
            bold_in, reverse_in = (frozenset(c for c in COMBINATIONS if flags[c]) for flags in (bold, reverse))
            legend[pane, known[key]] = Style({depth: looks[depth] for depth in COLOURED}, bold_in, reverse_in)
        y, x = divmod(index, box.width)
        signs[box.y + y, box.x + x] = known[key]


def write_screen(screen: Screen) -> str:
    """The text of a file; rows stand between bars."""
    parts: list[str] = []
    for depths in _alike(screen.characters, screen.picture):
        parts.append(f"[characters {' '.join(depth.value for depth in depths)}]")
        parts += [*(f"|{row}|" for row in screen.characters[depths[0]]), ""]
    parts += ["[styles]", *(f"|{row}|" for row in screen.signs)]
    parts += ["", "[legend]", *(f"{pane} {sign} {style}" for (pane, sign), style in screen.legend.items())]
    places = {**screen.boxes, "picture": screen.picture}
    parts += ["", "[places]", *(f"{name} {box.x},{box.y} {box.width}x{box.height}" for name, box in places.items())]
    parts += ["", f"[digests {' '.join(depth.value for depth in COLOURED)}]"]
    parts += [" ".join(row) for row in zip(*(screen.digests[depth] for depth in COLOURED), strict=True)]
    return "\n".join(parts) + "\n"


def parse_screen(text: str) -> Screen:
    sections: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.startswith("["):
            rows = sections.setdefault(line.strip("[]"), [])
        elif line:
            rows.append(line[1:-1] if line.startswith("|") else line)
    places = {}
    for line in sections["places"]:
        name, corner, size = line.split()
        places[name] = Box(*map(int, corner.split(",")), *map(int, size.split("x")))
    picture = places.pop("picture")
    legend = {}
    for line in sections["legend"]:
        pane, sign, style = line.split(" ", 2)
        legend[pane, sign] = Style.parse(style)
    characters, digests = {}, {depth: [] for depth in COLOURED}
    for title, rows in sections.items():
        kind, *depths = title.split()
        if kind == "characters":
            for depth in map(Depth, depths):
                characters[depth] = rows if depth is Depth.NONE else _blanked(rows, picture)
        elif kind == "digests":
            digests = {depth: [row.split()[k] for row in rows] for k, depth in enumerate(COLOURED)}
    return Screen(places, picture, characters, sections["styles"], legend, digests)
