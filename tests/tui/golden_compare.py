"""A screen against its golden file: what differs, by pane, row and column, and which colours are others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
from golden_screens import COMBINATIONS, NO_INK, Capture, Combination, Screen, inside, written
from seen import UNSEEN, Seen

from ofa_tui.tui.colour import Depth
from ofa_tui.tui.layout import Box

MOST_COLOURS, MOST_CELLS = 12, 4
"""How many changes a report has, and how many cells of a pane."""
Colours = Mapping[str, Mapping[Combination, int]]
PARTS = tuple(f.name for f in fields(Seen))


def expected(screen: Screen, colours: Colours, combination: Combination) -> Seen:
    """What the files say is seen; of the picture only without colours."""
    depth = combination[1]
    char = np.array([[ord(c) for c in row] for row in screen.characters[depth]], np.uint32)
    signs = np.array([list(row) for row in screen.signs])
    ink, ground = np.full(char.shape, UNSEEN, np.int32), np.full(char.shape, UNSEEN, np.int32)
    bold, reverse = np.zeros(char.shape, bool), np.zeros(char.shape, bool)
    for (pane, sign), style in screen.legend.items():
        within = inside(screen.boxes[pane])
        where = signs[within] == sign
        if depth is not Depth.NONE:
            ink[within][where], ground[within][where] = (
                UNSEEN if name == NO_INK else colours[name][combination] for name in style.looks[depth]
            )
        bold[within][where], reverse[within][where] = combination in style.bold, combination in style.reverse
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
    for combination, seen in golden.items():
        if combination[1] is not Depth.NONE:
            _show_picture_of(captured.seen[combination], seen, captured.picture)
    differs = {c: _differing(golden[c], captured.seen[c]) for c in COMBINATIONS}
    report = _colour_changes(screen, golden, captured, differs) + _cells(screen, golden, captured, differs)
    for theme, depth in COMBINATIONS:
        if depth is not Depth.NONE and captured.digests[theme, depth] != screen.digests[depth]:
            pairs = zip(captured.digests[theme, depth], screen.digests[depth], strict=True)
            rows = [k for k, (new, old) in enumerate(pairs) if new != old]
            report.append(f"doom: {len(rows)} rows of the picture at {depth.value} in {theme}, first row {rows[0] + 1}")
    at = next((c for c in COMBINATIONS if differs[c].any()), first)
    return Comparison(report, at, golden[at], captured.seen[at])


def _show_picture_of(source: Seen, target: Seen, box: Box) -> None:
    for part in PARTS:
        getattr(target, part)[inside(box)] = getattr(source, part)[inside(box)]


def _differing(one: Seen, other: Seen, parts: Sequence[str] = PARTS) -> np.ndarray:
    return np.any([getattr(one, part) != getattr(other, part) for part in parts], axis=0)


def _cells(
    screen: Screen, golden: dict[Combination, Seen], captured: Capture, differs: dict[Combination, np.ndarray]
) -> list[str]:
    """By pane, how many cells differ in how many combinations, and the first of them."""
    report = []
    for pane, box in screen.boxes.items():
        masks = {c: mask[inside(box)] for c, mask in differs.items() if mask[inside(box)].any()}
        if not masks:
            continue
        cells = np.argwhere(np.any(list(masks.values()), axis=0)).tolist()
        report.append(f"{pane}: {len(cells)} cells, in {len(masks)} of {len(COMBINATIONS)} themes and depths")
        for y, x in cells[:MOST_CELLS]:
            c = next(c for c, mask in masks.items() if mask[y, x])
            was, now = (_look(seen[c], box.y + y, box.x + x, c[1]) for seen in (golden, captured.seen))
            report.append(f"  row {y + 1}, column {x + 1}: {now}, was {was} ({c[0]} at {c[1].value})")
    return report


def _look(seen: Seen, y: int, x: int, depth: Depth) -> str:
    words = [repr(chr(int(seen.char[y, x])))]
    words += [written(int(seen.ink[y, x]), depth), "on", written(int(seen.ground[y, x]), depth)]
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
            within = inside(screen.boxes[pane])
            where = same[within] & (signs[within] == sign)
            for part, name in zip(("ink", "ground"), style.looks.get(c[1], ()), strict=False):
                old, new = (getattr(seen[c], part)[within][where] for seen in (golden, captured.seen))
                for was, now in zip(old[old != new].tolist(), new[old != new].tolist(), strict=True):
                    changes[f"{name} in {c[0]}: {written(now, c[1])}, was {written(was, c[1])} at {c[1].value}"] += 1
    return [f"colour {change}: {count} cells" for change, count in changes.most_common(MOST_COLOURS)]
