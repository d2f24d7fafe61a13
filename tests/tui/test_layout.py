"""Where panes go: the guide's table exactly, and no overlap, gap or overflow at any size."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from app_session import steady  # noqa: F401
from hypothesis import given
from hypothesis import strategies as st
from replay_session import record, replaying

from ofa_tui.tui.layout import PANES, Box, SizeClass, arrange, size_class, with_footer_of

TABLE = {
    (200, 60): {
        "header": (200, 1), "tiles": (200, 3), "doom": (122, 47), "sms": (122, 8), "loss": (78, 24), "serve": (78, 25),
        "player": (78, 6), "footer": (200, 1),
    },
    (120, 40): {
        "header": (120, 1), "tiles": (120, 2), "doom": (74, 25), "sms": (74, 6), "loss": (46, 16), "serve": (46, 20),
        "player": (74, 5), "footer": (120, 1),
    },
    (80, 24): {
        "header": (80, 1), "tiles": (80, 1), "doom": (48, 16), "sms": (80, 1), "loss": (32, 10), "serve": (32, 10),
        "player": (48, 4), "footer": (80, 1),
    },
}  # fmt: skip


@pytest.mark.parametrize("size", TABLE)
def test_the_three_sizes(size: tuple[int, int]) -> None:
    boxes = arrange(*size)
    assert {name: (box.width, box.height) for name, box in boxes.items()} == TABLE[size]


def cover(boxes: dict[str, Box], width: int, height: int) -> list[list[int]]:
    counts = [[0] * width for _ in range(height)]
    for box in boxes.values():
        assert box.x >= 0 and box.y >= 0 and box.width > 0 and box.height > 0
        assert box.x + box.width <= width and box.y + box.height <= height
        for y in range(box.y, box.y + box.height):
            for x in range(box.x, box.x + box.width):
                counts[y][x] += 1
    return counts


@pytest.mark.parametrize("zoom", [None, "loss"])
@pytest.mark.parametrize(("bar", "games"), [*itertools.product((False, True), repeat=2)])
def test_every_cell_belongs_to_one_pane(zoom: str | None, bar: bool, games: bool) -> None:
    widths, heights = (1, 20, 79, 80, 99, 100, 120, 159, 160, 200, 321), (1, 5, 6, 23, 24, 33, 34, 48, 60, 95)
    for width, height in itertools.product(widths, heights):
        boxes = arrange(width, height, zoom=zoom, bar=bar, games=games)
        assert all(count == 1 for row in cover(boxes, width, height) for count in row), (width, height)
        if size_class(width, height) is SizeClass.SINGLE or zoom:
            assert sum(name in PANES for name in boxes) == 1
        else:
            assert set(PANES) & boxes.keys() == (set(PANES) if games else set(PANES) - {"player"})
            usual = arrange(width, height, zoom=zoom, bar=bar)
            assert games or (boxes["loss"] == usual["doom"] and boxes["serve"].height > usual["serve"].height)


def test_small_terminals_show_the_chosen_pane() -> None:
    assert arrange(20, 5, single="serve") == {"serve": Box(0, 0, 20, 5)}
    assert set(arrange(60, 20, single="loss")) == {"header", "footer", "loss"}


@given(st.integers(24, 260), st.integers(6, 90), st.integers(1, 5))
def test_a_footer_of_more_rows_takes_them_from_what_stands_above_it(width: int, height: int, rows: int) -> None:
    before = arrange(width, height)
    after = with_footer_of(before, rows)
    assert after["footer"] == Box(0, height - rows, width, rows)
    for name, box in after.items():
        assert box.height > 0
        if name != "footer":
            assert box[:3] == before[name][:3] and box.y + box.height <= height - rows
            assert box == before[name] or box.y + box.height == height - rows


@pytest.mark.usefixtures("steady")
async def test_a_replay_without_games_gives_their_place_away_and_says_why(tmp_path: Path) -> None:
    facts = record(tmp_path / "run") / "run.json"
    told = json.loads(facts.read_text())
    told["run"] |= {"games": 0, "doom_missing": "No SM plays Doom in this run; give it one with --sms doom=1."}
    facts.write_text(json.dumps(told))
    async with replaying(tmp_path / "run", 120, 40) as run:
        boxes = run.app.boxes(120, 40)
        assert boxes["loss"].width * boxes["loss"].height > boxes["doom"].width * boxes["doom"].height
        assert "No game was played in this recorded run." in run.text("doom") and "--sms" not in run.text()
        await run.press("g")
        assert "--sms" not in run.text()
        await run.press("5")
        assert "no game was played" in run.text("player")
