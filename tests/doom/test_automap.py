"""The automap against lines drawn here, from the level's lumps, in floating point."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ofa_tui import abi
from ofa_tui.doom import layout
from ofa_tui.doom.library import VIEW_HEIGHT, WIDTH
from tests.doom.render_harness import PLAYER_TYPE, Scene
from tests.wads import freedoom

OFF, FOLLOW, STAY = range(3)
WALL, TELEPORTER, FLOOR, CEILING, UNSEEN, PLAYER = 176, 184, 64, 231, 99, 209
"""Palette indices of the original's automap."""
SECRET, DONT_DRAW, MAPPED, TELEPORT = 32, 128, 256, 39
TITLE = slice(VIEW_HEIGHT - 10, VIEW_HEIGHT), slice(0, 60)
ANGLE = 0x20000000


class Map:
    """A level with things seen at random, and its lines as they should be drawn."""

    def __init__(self, scene: Scene, seed: int, map_power: int = 0) -> None:
        head = layout.header(scene.blob)
        self.level = layout.view(scene.blob, head["levels"], layout.LEVEL)[0]
        self.lines = layout.view(scene.blob, self.level["lines"], layout.MAP_LINE)
        self.vertices = layout.view(scene.blob, self.level["vertices"], layout.MAP_VERTEX)
        sectors = layout.view(scene.blob, self.level["sectors"], layout.MAP_SECTOR)
        rng = np.random.default_rng(seed)
        scene.load(0, 1, 0)
        self.heights = np.stack([sectors["floor_height"], sectors["ceiling_height"]], axis=1)
        self.heights += rng.integers(0, 2, self.heights.shape) << 16
        rows = np.zeros((len(sectors), 5), np.int32)
        rows[:, :2] = self.heights
        middle = (self.vertices["x"].mean(), self.vertices["y"].mean())
        self.player = np.array(middle).astype(np.int64) >> 16
        thing = np.zeros((1, 22), np.int32)
        thing[0, :3] = PLAYER_TYPE, *(self.player << 16)
        scene.place(rows, thing)
        scene.look(0, 41 << 16, ANGLE)
        self.flags = self.lines["flags"].astype(np.int32)
        self.flags |= rng.choice([0, MAPPED, MAPPED, MAPPED | SECRET, MAPPED | DONT_DRAW, DONT_DRAW], len(self.lines))
        self.specials = rng.choice([0, 0, 0, 1, TELEPORT], len(self.lines))
        self.map_power = map_power
        scene.lines(self.flags, self.specials, map_power)

    def color(self, index: int) -> int:
        flags, (front, back) = int(self.flags[index]), self.lines["sector"][index]
        if flags & DONT_DRAW:
            return 0
        if not flags & MAPPED:
            return UNSEEN if self.map_power else 0
        if back < 0:
            return WALL
        if self.specials[index] == TELEPORT:
            return TELEPORTER
        if flags & SECRET:
            return WALL
        floor, ceiling = self.heights[front] != self.heights[back]
        return FLOOR if floor else CEILING if ceiling else 0

    def scale(self, zoom: int) -> float:
        """Pixels a map unit."""
        extent = [np.ptp(self.vertices[axis].astype(np.int64)) / 65536 + 1 for axis in ("x", "y")]
        return min(WIDTH / extent[0], VIEW_HEIGHT / extent[1]) * 10 / 7 * 1.25**zoom

    def samples(self, zoom: int, moved: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        """f8 [n, 2], u1 [n]: points on all lines in pixels, at most half a pixel apart, and their colours."""
        scale, center = self.scale(zoom), self.player + np.array(moved)
        points, colors = [], []
        for index, line in enumerate(self.lines):
            color = self.color(index)
            if not color:
                continue
            ends = np.array([[self.vertices[end]["x"], self.vertices[end]["y"]] for end in (line["v1"], line["v2"])])
            ends = (ends / 65536 - center) * scale * (1, -1) + (WIDTH / 2, VIEW_HEIGHT / 2)
            count = int(np.hypot(*(ends[1] - ends[0])) * 2) + 2
            points.append(ends[0] + np.linspace(0, 1, count)[:, None] * (ends[1] - ends[0]))
            colors.append(np.full(count, color))
        found, of = np.concatenate(points), np.concatenate(colors)
        inside = ((found >= 0) & (found < (WIDTH, VIEW_HEIGHT))).all(axis=1)
        return found[inside], of[inside]


@pytest.fixture(scope="module")
def scene() -> Scene:
    return Scene(freedoom("freedoom1").blob)


def near(points: np.ndarray, reach: int) -> np.ndarray:
    """bool [168, 320]: pixels within `reach` of a point."""
    grid = np.zeros((VIEW_HEIGHT + 2 * reach + 1, WIDTH + 2 * reach + 1), bool)
    x, y = points.astype(int).T
    for down in range(2 * reach + 1):
        for right in range(2 * reach + 1):
            grid[y + down, x + right] = True
    return grid[reach:reach + VIEW_HEIGHT, reach:reach + WIDTH]


@pytest.mark.parametrize(("zoom", "moved"), [(0, (0, 0)), (-4, (0, 0)), (5, (0, 0)), (9, (300, -200)), (18, (40, 900))])
@pytest.mark.parametrize("map_power", [0, 1])
def test_lines_are_where_they_should_be(scene: Scene, zoom: int, moved: tuple[int, int], map_power: int) -> None:
    level = Map(scene, zoom + 100, map_power)
    scene.frame[:] = 77
    scene.map(FOLLOW)
    view = scene.map(STAY if any(moved) else FOLLOW, zoom, *moved)[:VIEW_HEIGHT].copy()
    assert np.all(scene.frame[VIEW_HEIGHT:] == 77), "the status bar stays"
    arrow = near(level_arrow(level, zoom, moved), 2)
    view[TITLE] = 0
    points, colors = level.samples(zoom, moved)
    free = near(points, 1) | arrow
    free[TITLE] = True
    assert not view[~free].any(), "nothing is drawn but the lines"
    for color in (WALL, TELEPORTER, FLOOR, CEILING, UNSEEN):
        drawn = (view == color) & ~arrow
        assert not (drawn & ~near(points[colors == color], 1)).any(), f"color {color} is only where it should be"
    outside_title = ~((points[:, 0] < 62) & (points[:, 1] > VIEW_HEIGHT - 12))
    painted = near(np.argwhere(view)[:, ::-1].astype(float), 1)
    assert painted[tuple(points[outside_title].astype(int)[:, ::-1].T)].all(), "every line is drawn in full"


def level_arrow(level: Map, zoom: int, moved: tuple[int, int]) -> np.ndarray:
    """f8 [n, 2]: points of a line through the player, in the direction of ANGLE, as long as its arrow; in pixels."""
    along = np.linspace(-20, 19, 400)[:, None] * (np.cos(np.pi / 4), np.sin(np.pi / 4))
    feathers = 5 * level.scale(zoom)
    points = (along - moved) * level.scale(zoom) * (1, -1) + (WIDTH / 2, VIEW_HEIGHT / 2)
    wide = np.concatenate([points + np.array([dx, dy]) for dx in np.linspace(-feathers, feathers, 25)
                           for dy in np.linspace(-feathers, feathers, 25)])
    return wide[((wide >= 0) & (wide < (WIDTH, VIEW_HEIGHT))).all(axis=1)]


def test_the_player_is_an_arrow_that_points_where_it_looks(scene: Scene) -> None:
    Map(scene, 1)
    view = scene.map(FOLLOW, 14)[:VIEW_HEIGHT]
    y, x = np.nonzero(view == PLAYER)
    right, up = x - WIDTH // 2, VIEW_HEIGHT // 2 - y
    tip = np.argmax(right + up)
    assert abs(right[tip] - up[tip]) <= 1 and right[tip] > 10 and (right.max(), up.max()) == (right[tip], up[tip])
    for n in range(-5, 6):
        assert ((abs(right - n) <= 1) & (abs(up - n) <= 1)).any(), "the shaft goes through the middle"


@pytest.mark.parametrize("threads", [2, 37, 384])
def test_order_of_threads_does_not_show(scene: Scene, threads: int) -> None:
    Map(scene, 5)
    scene.frame[:] = 0
    alone = scene.map(FOLLOW, 3).copy()
    scene.frame[:] = 0
    assert np.array_equal(scene.map(FOLLOW, 3, threads=threads), alone)


def test_off_is_off_and_what_is_out_of_range_is_brought_into_it(scene: Scene) -> None:
    Map(scene, 5)
    scene.frame[:] = 77
    assert np.all(scene.map(OFF) == 77) and np.all(scene.map(9) == 77)
    low, high = abi.AUTOMAP_ZOOMS
    for zoom, limit in ((1 << 30, high), (-1 << 30, low)):
        assert np.array_equal(scene.map(FOLLOW, zoom).copy(), scene.map(FOLLOW, limit))
    scene.map(FOLLOW)
    for x, y in ((2**31 - 1, -2**31), (-40000, 40000)):
        scene.map(STAY, high, x, y)


def test_the_modes_are_those_of_the_engine() -> None:
    header = (Path(__file__).parents[2] / "cuda/doom/automap/automap.h").read_text()
    assert f"LOWEST_ZOOM = {abi.AUTOMAP_ZOOMS[0]}, HIGHEST_ZOOM = {abi.AUTOMAP_ZOOMS[1]};" in header
    assert "MODE_OFF, MODE_FOLLOW, MODE_STAY" in header and abi.AUTOMAP_MODES == ("off", "follow", "stay")
