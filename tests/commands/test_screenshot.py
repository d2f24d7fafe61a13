"""Screenshots without a terminal: the cells of the app at that step, in three formats that agree."""

from __future__ import annotations

import asyncio
import math
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from ofa_tui.cli import main
from ofa_tui.engine.replay import ReplayEngine
from ofa_tui.record.reader import RecordedRun
from ofa_tui.tui.app import OfaApp
from ofa_tui.tui.colour import Depth
from ofa_tui.tui.grid import Grid
from ofa_tui.tui.options import UiOptions
from ofa_tui.tui.screenshot import CELL_HEIGHT, CELL_WIDTH, rasterise, screen_grid, shape_mask
from ofa_tui.tui.svg import encode_svg

AT, COLUMNS, ROWS = 20, 120, 40
SVG = "{http://www.w3.org/2000/svg}"
OUTLINE = re.compile(r"M(\d+) (\d+)h(\d+)v(\d+)h-(\d+)z")


async def _replayed_in_the_app(folder: Path) -> Grid:
    """The app as `ofa-tui replay` runs it, ticking until step AT was done."""
    (moment,) = [entry.seconds for entry in RecordedRun(folder).losses if entry.step == AT - 1]
    now = [0.0]
    engine = ReplayEngine(folder, clock=lambda: now[0])
    engine.start()
    app = OfaApp(engine, options=UiOptions(depth=Depth.TRUECOLOR, theme="contrast"))
    app.link_counts_from = math.inf
    async with app.run_test(size=(COLUMNS, ROWS)) as pilot:
        app._tick()
        while (left := moment - engine.seconds) > 0:
            now[0] += min(left + 1e-9, 0.21)
            app._tick()
        app.clear_message()
        await pilot.pause()
        app.repaint_all()
        await pilot.pause()
        assert app.model.snapshot is not None and app.model.snapshot.steps_done == AT
        return screen_grid(app)


@pytest.fixture(scope="module")
def screen(record: Path) -> Grid:
    return asyncio.run(_replayed_in_the_app(record))


def _take(record: Path, output: Path, *options: str) -> Path:
    arguments = ["--at", str(AT), "--size", f"{COLUMNS}x{ROWS}", "--theme", "contrast", "-o", str(output), *options]
    assert main(["screenshot", str(record), *arguments]) == 0
    return output


def test_the_text_is_the_screen_of_the_app_at_that_step(record: Path, screen: Grid, tmp_path: Path) -> None:
    text = _take(record, tmp_path / "screen.txt").read_text()
    assert text.splitlines() == [line.rstrip() for line in screen.lines()]
    assert f"step {AT}/40" in text and "1 doom" in text and "4 serve" in text


def test_the_png_is_the_screen_of_the_app_at_that_step(record: Path, screen: Grid, tmp_path: Path) -> None:
    with Image.open(_take(record, tmp_path / "screen.png")) as picture:
        assert np.array_equal(np.array(picture), np.array(rasterise(screen)))


def _svg_pixels(root: ElementTree.Element, width: int, height: int) -> np.ndarray:
    """u1 [height, width, 3]: everything but the text, painted in order."""
    pixels = np.zeros((height, width, 3), np.uint8)
    for path in root.iter(f"{SVG}path"):
        outline, colour = path.get("d", ""), bytes.fromhex(path.get("fill", "")[1:])
        rectangles = OUTLINE.findall(outline)
        assert "".join(f"M{x} {y}h{w}v{h}h-{back}z" for x, y, w, h, back in rectangles) == outline
        for x, y, w, h, back in (map(int, found) for found in rectangles):
            assert w == back
            pixels[y : y + h, x : x + w] = list(colour)
    return pixels


def _check_svg(data: bytes, grid: Grid) -> None:
    """Outlines as the rasteriser paints them, but for the soft corners; the words of the grid at their cells."""
    root = ElementTree.fromstring(data)
    bare = Grid(grid.width, grid.height, 0, 0)
    bare.paste(grid, 0, 0)
    drawn = np.array([[code > 32 and shape_mask(code) is not None for code in row] for row in grid.char.tolist()])
    bare.char[~drawn] = 32
    wanted = np.array(rasterise(bare)).astype(int)
    found = _svg_pixels(root, grid.width * CELL_WIDTH, grid.height * CELL_HEIGHT)
    soft = np.isin(grid.char, [ord(c) for c in "╭╮╰╯"]).repeat(CELL_HEIGHT, 0).repeat(CELL_WIDTH, 1)
    assert np.array_equal(found[~soft], wanted[~soft])
    written = np.full((grid.height, grid.width), 32, np.uint32)
    for element in root.iter(f"{SVG}text"):
        x, y = int(element.get("x", "")) // CELL_WIDTH, int(element.get("y", "")) // CELL_HEIGHT
        cells = Grid(int(element.get("textLength", "")) // CELL_WIDTH, 1, 0, 0)
        assert cells.text(0, 0, element.text or "", 0) == cells.width
        written[y, x : x + cells.width] = cells.char[0]
        assert element.get("fill") == f"#{int(grid.fg[y, x]):06x}"
        assert (element.get("font-weight") == "bold") == bool(grid.attr[y, x])
    assert np.array_equal(written, np.where(drawn, 32, grid.char))


def test_the_svg_has_the_same_cells_and_refers_to_nothing(record: Path, screen: Grid, tmp_path: Path) -> None:
    data = _take(record, tmp_path / "screen.svg").read_bytes()
    _check_svg(data, screen)
    for element in ElementTree.fromstring(data).iter():
        assert element.tag.removeprefix(SVG) in ("svg", "g", "path", "text")
        assert not any("href" in name or ":" in value or "url" in value for name, value in element.items())


@settings(deadline=None)
@given(st.lists(st.tuples(st.text("a<&>\"' é日█▄╭⣿", max_size=9), st.booleans(), st.integers(0, 2)), max_size=4))
def test_any_cells_as_svg(words: list[tuple[str, bool, int]]) -> None:
    grid = Grid(14, 2, 0x808080, 0x101010)
    for row, (text, bold, colour) in enumerate(words):
        grid.text(3 * row, row % 2, text, 0x102030 * colour, 0x0A0B0C * colour, bold=bold)
    _check_svg(encode_svg(grid), grid)


def test_a_pane_alone(record: Path, tmp_path: Path) -> None:
    text = _take(record, tmp_path / "loss.txt", "--pane", "loss").read_text()
    assert "3 loss" in text and "1 doom" not in text and "4 serve" not in text


def test_a_new_run(tmp_path: Path) -> None:
    story = tmp_path / "story.txt"
    story.write_text("Once there was a fox who lived under a hill and liked the rain.\n" * 400)
    output = tmp_path / "live.txt"
    assert main(["screenshot", "--live", "--at", "3", "--steps", "5", "--sms", "train=1,serve=1,doom=0",
                 "--data", str(story), "--tokenizer", "bytes", "-o", str(output)]) == 0
    found = re.search(r"step (\d)/5 ", output.read_text())
    assert found and 3 <= int(found[1]) <= 5


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--at", "41"], ["step 41", "0 to 40"]),
        (["--size", "0x10"], ["--size '0x10'", "120x40"]),
        (["-o", "screen.jpg"], ["screen.jpg", ".png, .svg, .txt"]),
        (["-o", "nowhere/screen.png"], ["nowhere/screen.png", "folder that exists"]),
        (["-o", "/dev/null.png/screen.png"], ["/dev/null.png"]),
        (["--theme", "plaid"], ["plaid", "dark"]),
        (["--live"], ["--live"]),
        (["--steps", "9"], ["--steps", "--live"]),
    ],
)
def test_bad_input(record: Path, arguments: list[str], words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["screenshot", str(record), *arguments]) == 2
    said = capsys.readouterr().err
    assert said.startswith("ofa-tui: ") and said.count("\n") == 1 and all(word in said for word in words)
