"""The renderer against golden pictures drawn from tables, without the simulation (test_golden.py has whole demos)."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import pytest

from ofa_tui.doom import layout
from ofa_tui.doom.library import HEIGHT, VIEW_HEIGHT, WIDTH
from tests.doom.golden_demos import REFERENCE, REFERENCE_NAMES, blob_of, file, golden_trace
from tests.doom.render_harness import PLAYER_TYPE, SHADOW, Scene

FUZZ_ENTRIES = 50
MOST_UNDRAWN = 8     # pixels of a sample frame that show the frame before


@dataclass(frozen=True)
class Sample:
    """A golden frame with the tables to draw it from."""

    demo: str
    tic: int
    picture: np.ndarray     # u1 [200, 320]
    level: int
    sky: int
    level_tics: int
    sectors: np.ndarray
    objects: np.ndarray
    mobj: int
    row: dict[str, np.ndarray]

    def build(self, scene: Scene) -> None:
        scene.load(self.level, self.sky, self.level_tics)
        scene.place(self.sectors, self.objects)
        invisible = 1000 if self.objects[self.mobj, 11] & SHADOW else 0
        scene.look(self.mobj, self.row["viewz"], self.row["angle"], self.row["extralight"], self.row["fixedcolormap"],
                   invisible, self.row["psp"])


@functools.cache
def levels(demo: str) -> tuple[np.ndarray, list[int]]:
    """Levels of the demo's WAD and its sky textures."""
    blob = blob_of(REFERENCE, demo)
    head = layout.header(blob)
    offset, count = int(head["levels"]["offset"]), int(head["levels"]["count"])
    return blob[offset:offset + count * layout.LEVEL.itemsize].view(layout.LEVEL), head["sky_texture"].tolist()


def samples(demo: str) -> list[Sample]:
    trace, (table, skies) = golden_trace(REFERENCE, demo), levels(demo)
    found = []

    def level_at(tic: int) -> int:
        here = (table["episode"] == trace["episode"][tic]) & (table["map"] == trace["map"][tic])
        return int(np.flatnonzero(here)[0])

    with np.load(file(REFERENCE, f"{demo}-frames.npz")) as data:
        for tic, picture in zip(data["tics"].tolist(), data["frames"], strict=True):
            if trace["gamestate"][tic] != 0:
                continue
            objects = data[f"mobjs_tic{tic}"]
            eye = (objects[:, :3] == (PLAYER_TYPE, trace["x"][tic], trace["y"][tic])).all(axis=1)
            # Doom II chooses its sky when the game begins, Doom with every episode.
            sky_level = level_at(0 if demo.startswith("fd2") else tic)
            found.append(Sample(
                demo, tic, picture, level_at(tic), skies.index(table["sky"][sky_level]) + 1,
                int(trace["leveltime"][tic]), data[f"sectors_tic{tic}"], objects, int(np.flatnonzero(eye)[0]),
                {key: trace[key][tic] for key in ("viewz", "angle", "extralight", "fixedcolormap", "psp")}))
    return found


def view_drawn_over(scene: Scene, color: int, fuzz: int = 0, threads: int = 0) -> np.ndarray:
    scene.frame[:] = color
    return scene.draw(fuzz, threads)[:VIEW_HEIGHT].copy()


@pytest.mark.parametrize("demo", REFERENCE_NAMES)
def test_sample_frames_from_tables(demo: str) -> None:
    """Needs no simulation. Pixels that nothing covers show the frame before and are not compared."""
    scene = Scene(blob_of(REFERENCE, demo))
    for sample in samples(demo):
        sample.build(scene)
        golden = sample.picture[:VIEW_HEIGHT]
        view = view_drawn_over(scene, 0)
        drawn = view == view_drawn_over(scene, 255)
        assert np.count_nonzero(~drawn) <= MOST_UNDRAWN
        # where the fuzz starts in its table depends on every frame before
        fuzz = range(FUZZ_ENTRIES if scene.counts()["fuzzy"] else 1)
        wrong = min(np.count_nonzero((view_drawn_over(scene, 0, f) != golden) & drawn) for f in fuzz)
        assert wrong == 0, f"{demo} tic {sample.tic}: {wrong} pixels differ"


@pytest.mark.parametrize("demo", [d for d in REFERENCE_NAMES if "demo2" in d or "map30" in d])
def test_order_of_threads_does_not_show(demo: str) -> None:
    scene = Scene(blob_of(REFERENCE, demo))
    for sample in samples(demo):
        sample.build(scene)
        alone = view_drawn_over(scene, 0, 7)
        for threads in (2, 37, 384):
            assert np.array_equal(alone, view_drawn_over(scene, 0, 7, threads)), (sample.tic, threads)


@pytest.mark.parametrize("place", [(32000, -32000), (0, 0), (-1, 32767), (-32768, -32768), (1500, 200)])
def test_an_eye_anywhere(place: tuple[int, int]) -> None:
    """Outside every room there is nothing to draw, and nothing beyond the frame is written."""
    scene = Scene(blob_of(REFERENCE, "fd1-demo1"))
    sample = samples("fd1-demo1")[0]
    sample.build(scene)
    guard = np.full((3 * HEIGHT, WIDTH), 77, np.uint8)
    scene.frame = guard[HEIGHT:2 * HEIGHT]
    objects = sample.objects.copy()
    objects[sample.mobj, 1:3] = np.array(place) << 16
    scene.place(sample.sectors, objects)
    for angle in range(0, 1 << 32, 1 << 28):
        scene.look(sample.mobj, 41 << 16, angle)
        scene.draw()
    assert np.all(guard[:HEIGHT] == 77) and np.all(guard[2 * HEIGHT:] == 77)
