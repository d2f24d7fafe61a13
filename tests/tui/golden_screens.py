"""Screens as text files: what a person sees in every theme and at every colour depth, cell by cell, in little room.

Themes and depths change the colours of a screen and little else. So a file holds its characters (once for the depths
that show the same), and a sign for each cell's style. The legend says what a style is: ink on ground, by the names of
the colours in `colours.txt`, which holds what each is in every theme and at every depth. Cells share a style only if
they look alike in all of them. Of the game's picture, which no theme changes, the file holds what a terminal without
colours shows, and a digest of each row at the other depths.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import product
from pathlib import Path
from string import ascii_letters, digits, punctuation

import numpy as np
from app_session import Session
from seen import UNSEEN, Seen, as_arrays, picture_box, picture_looks, read_screen, show

from ofa_tui.tui.colour import Depth, quantise
from ofa_tui.tui.layout import Box
from ofa_tui.tui.theme import Theme, for_depth, load_themes

GOLDEN = Path(__file__).parent / "golden"
COLOURED = (Depth.TRUECOLOR, Depth.EIGHT_BIT, Depth.FOUR_BIT)
PICTURE = "·"
"""The sign of the picture's cells, which the legend does not have."""
SIGNS = ascii_letters + digits + "".join(c for c in punctuation if c != "|")
MOST_LINES = 12
"""Of each kind that a report has."""

Combination = tuple[str, Depth]
"""Theme and depth."""
Values = tuple[int, ...]
"""A colour at each combination of COMBINATIONS, the true one first."""

THEMES = tuple(sorted(path.stem for path in Path(__file__).parents[2].joinpath("themes").glob("*.toml")))
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


def theme_colours() -> dict[Values, str]:
    """The themes' own colours, as the depths show them, and their names; the first name of those that never differ."""
    themes = load_themes()
    named: dict[Values, str] = {}
    for name in (f.name for f in fields(Theme) if f.name not in ("name", "summary", "dark", "faintest")):
        values = (getattr(for_depth(themes[theme], depth), name) for theme, depth in COMBINATIONS)
        named.setdefault(
            tuple(_shown(value, depth) for value, (_, depth) in zip(values, COMBINATIONS, strict=True)), name
        )
    return named


def _shown(colour: int, depth: Depth) -> int:
    if depth is Depth.NONE:
        return UNSEEN
    return colour if depth is Depth.TRUECOLOR else int(quantise(np.array(colour), depth))


class Names:
    """Names of colours: the theme's, else the colour in true colour in the default theme."""

    def __init__(self) -> None:
        self.of: dict[Values, str] = theme_colours()
        self._unused = set(self.of)

    def name(self, values: Values) -> str:
        if values not in self.of:
            first = values[COMBINATIONS.index(("dark", Depth.TRUECOLOR))]
            plain = "unseen" if first == UNSEEN else f"{first:06x}"
            taken = set(self.of.values())
            self.of[values] = next(n for n in (plain, *(f"{plain}-{k}" for k in range(2, 999))) if n not in taken)
        self._unused.discard(values)
        return self.of[values]

    def table(self) -> str:
        """The text of colours.txt: a paragraph for each theme, a line for each colour that some screen has."""
        used = sorted((name, values) for values, name in self.of.items() if values not in self._unused)
        parts = ["name " + " ".join(depth.value for depth in COLOURED)]
        for theme in THEMES:
            at = [COMBINATIONS.index((theme, depth)) for depth in COLOURED]
            parts.append(f"\n[{theme}]")
            parts += [f"{name} " + " ".join(_written(v[k], COMBINATIONS[k][1]) for k in at) for name, v in used]
        return "\n".join(parts) + "\n"


def _written(colour: int, depth: Depth) -> str:
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
    """`ink` and `ground` name colours; `bold`, `reverse`: the combinations in which it is so."""

    ink: str
    ground: str
    bold: frozenset[Combination]
    reverse: frozenset[Combination]

    def __str__(self) -> str:
        parts = [f"{self.ink} on {self.ground}"]
        parts += [f"{what} {_list(where)}" for what, where in (("bold", self.bold), ("reverse", self.reverse)) if where]
        return ", ".join(parts)

    @classmethod
    def parse(cls, text: str) -> Style:
        colours, *flags = text.split(", ")
        ink, ground = colours.split(" on ")
        where = dict(flag.split(" ", 1) for flag in flags)
        return cls(ink, ground, _parse_list(where.get("bold", "")), _parse_list(where.get("reverse", "")))


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
    for pane, box in captured.boxes.items():
        _sign_styles(captured, pane, box, names, signs, legend)
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


def _inside(box: Box) -> tuple[slice, slice]:
    return slice(box.y, box.y + box.height), slice(box.x, box.x + box.width)


def _sign_styles(
    captured: Capture, pane: str, box: Box, names: Names, signs: np.ndarray, legend: dict[tuple[str, str], Style]
) -> None:
    """Gives each cell of the pane the sign of its style, in the order in which they come."""
    parts = [getattr(captured.seen[c], part)[_inside(box)] for part in ("ink", "ground", "bold", "reverse")
             for c in COMBINATIONS]  # fmt: skip
    keys = np.stack(parts, axis=-1).reshape(box.height * box.width, 4, len(COMBINATIONS))
    outside = np.ones(signs.shape, bool)
    outside[_inside(captured.picture)] = False
    known: dict[bytes, str] = {}
    for index in np.flatnonzero(outside[_inside(box)]).tolist():
        key = keys[index].tobytes()
        if key not in known:
            assert len(known) < len(SIGNS), f"{pane} has too many styles"
            known[key] = SIGNS[len(known)]
            ink, ground, bold, reverse = keys[index].tolist()
            legend[pane, known[key]] = Style(
                names.name(tuple(ink)), names.name(tuple(ground)), _where(bold), _where(reverse)
            )
        y, x = divmod(index, box.width)
        signs[box.y + y, box.x + x] = known[key]


def _where(flags: Sequence[int]) -> frozenset[Combination]:
    return frozenset(c for c, flag in zip(COMBINATIONS, flags, strict=True) if flag)


def write_screen(screen: Screen) -> str:
    """The text of a file; rows stand between bars."""
    groups: dict[tuple[str, ...], list[Depth]] = {}
    for depth in (Depth.NONE, *COLOURED):
        groups.setdefault(tuple(_blanked(screen.characters[depth], screen.picture)), []).append(depth)
    parts: list[str] = []
    for depths in groups.values():
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


# --- comparing ----------------------------------------------------------------------------------------------------

Colours = Mapping[str, Mapping[Combination, int]]
PARTS = tuple(f.name for f in fields(Seen))


def expected(screen: Screen, colours: Colours, combination: Combination) -> Seen:
    """What the files say is seen; of the picture only without colours."""
    theme, depth = combination
    char = np.array([[ord(c) for c in row] for row in screen.characters[depth]], np.uint32)
    signs = np.array([list(row) for row in screen.signs])
    ink, ground = np.full(char.shape, UNSEEN, np.int32), np.full(char.shape, UNSEEN, np.int32)
    bold, reverse = np.zeros(char.shape, bool), np.zeros(char.shape, bool)
    for (pane, sign), style in screen.legend.items():
        inside = _inside(screen.boxes[pane])
        where = signs[inside] == sign
        if depth is not Depth.NONE:
            ink[inside][where] = colours[style.ink][combination]
            ground[inside][where] = colours[style.ground][combination]
        bold[inside][where], reverse[inside][where] = combination in style.bold, combination in style.reverse
    return Seen(char, ink, ground, bold, reverse)


@dataclass(frozen=True)
class Comparison:
    report: list[str]
    """What differs, in sentences; empty where nothing does."""
    at: Combination
    """The first in which something does."""
    golden: Seen
    now: Seen


def compare(screen: Screen, colours: Colours, captured: Capture) -> Comparison:
    """What is seen against what the files say."""
    first = COMBINATIONS[0]
    if (screen.boxes, screen.picture) != (captured.boxes, captured.picture):
        old, new = ({**s.boxes, "picture": s.picture} for s in (screen, captured))
        moved = [f"{name} is at {new.get(name)}, was at {old.get(name)}" for name in {**old, **new}
                 if old.get(name) != new.get(name)]  # fmt: skip
        return Comparison(moved, first, expected(screen, colours, first), captured.seen[first])
    golden = {c: expected(screen, colours, c) for c in COMBINATIONS}
    for (_, depth), seen in golden.items():
        if depth is not Depth.NONE:
            _show_picture_of(captured.seen[_, depth], seen, captured.picture)
    differs = {c: _differing(golden[c], captured.seen[c]) for c in COMBINATIONS}
    report = _cells(screen, golden, captured, differs) + _colour_changes(screen, golden, captured, differs)
    for theme, depth in COMBINATIONS:
        if depth is not Depth.NONE and captured.digests[theme, depth] != screen.digests[depth]:
            pairs = zip(captured.digests[theme, depth], screen.digests[depth], strict=True)
            rows = [k for k, (new, old) in enumerate(pairs) if new != old]
            report.append(f"doom: {len(rows)} rows of the picture at {depth.value} in {theme}, first row {rows[0] + 1}")
    at = next((c for c in COMBINATIONS if differs[c].any()), first)
    return Comparison(report, at, golden[at], captured.seen[at])


def _show_picture_of(source: Seen, target: Seen, box: Box) -> None:
    for part in PARTS:
        getattr(target, part)[_inside(box)] = getattr(source, part)[_inside(box)]


def _differing(one: Seen, other: Seen, parts: Sequence[str] = PARTS) -> np.ndarray:
    return np.any([getattr(one, part) != getattr(other, part) for part in parts], axis=0)


def _cells(
    screen: Screen, golden: dict[Combination, Seen], captured: Capture, differs: dict[Combination, np.ndarray]
) -> list[str]:
    """By pane, how many cells differ in how many combinations, and the first of them."""
    report = []
    for pane, box in screen.boxes.items():
        masks = {c: mask[_inside(box)] for c, mask in differs.items() if mask[_inside(box)].any()}
        if not masks:
            continue
        cells = np.argwhere(np.any(list(masks.values()), axis=0)).tolist()
        report.append(f"{pane}: {len(cells)} cells, in {len(masks)} of {len(COMBINATIONS)} themes and depths")
        for y, x in cells[:MOST_LINES]:
            c = next(c for c, mask in masks.items() if mask[y, x])
            was, now = (_look(seen[c], box.y + y, box.x + x, c[1]) for seen in (golden, captured.seen))
            report.append(f"  row {y + 1}, column {x + 1}: {now}, was {was} ({c[0]} at {c[1].value})")
    return report


def _look(seen: Seen, y: int, x: int, depth: Depth) -> str:
    words = [repr(chr(int(seen.char[y, x])))]
    words += [_written(int(seen.ink[y, x]), depth), "on", _written(int(seen.ground[y, x]), depth)]
    return " ".join(words + [flag for flag in ("bold", "reverse") if getattr(seen, flag)[y, x]])


def _colour_changes(
    screen: Screen, golden: dict[Combination, Seen], captured: Capture, differs: dict[Combination, np.ndarray]
) -> list[str]:
    """Which colours of the table are others now, where nothing but colours changed."""
    signs = np.array([list(row) for row in screen.signs])
    changes: Counter[str] = Counter()
    for c in COMBINATIONS:
        same = differs[c] & ~_differing(golden[c], captured.seen[c], ("char", "bold", "reverse"))
        for (pane, sign), style in screen.legend.items() if same.any() else ():
            inside = _inside(screen.boxes[pane])
            where = same[inside] & (signs[inside] == sign)
            for part in ("ink", "ground"):
                old, new = (getattr(seen[c], part)[inside][where] for seen in (golden, captured.seen))
                for was, now in zip(old[old != new].tolist(), new[old != new].tolist(), strict=True):
                    name = getattr(style, part)
                    changes[f"{name} in {c[0]}: {_written(now, c[1])}, was {_written(was, c[1])} at {c[1].value}"] += 1
    return [f"colour {change}: {count} cells" for change, count in changes.most_common(MOST_LINES)]
