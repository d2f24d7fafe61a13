"""Every golden demo, played and drawn from its first tic to its last, against its trace.

The reference demos were recorded from another engine: every column of every row is equal, rows flagged by the
reference included. Our own make sure that who lacks the reference notices a change.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image

from ofa_tui.cli import main
from ofa_tui.doom import library, trace
from tests.doom import compact
from tests.doom.golden_demos import (
    OWN,
    OWN_NAMES,
    REFERENCE,
    REFERENCE_NAMES,
    blob_of,
    demo,
    file,
    golden_trace,
    sha256_of,
)
from tests.wads import with_sha256

FLAG_OF_THE_REFERENCE = "fb_memdep"
"""Says of a row what only who recorded it can know; docs/doom.md."""


def _differences(name: str) -> list[trace.Difference]:
    expected = golden_trace(REFERENCE, name)
    recorded = demo(REFERENCE, name)
    played = trace.play_demo(recorded, blob_of(REFERENCE, name))
    got = trace.trace_of(recorded, played, str(expected["wad_sha256"]))
    assert set(expected) - set(got) == {FLAG_OF_THE_REFERENCE} and set(got) <= set(expected)
    assert all(got[column].dtype == expected[column].dtype for column in got)
    return trace.compare(expected, got)


@pytest.fixture(scope="module")
def differences(request: pytest.FixtureRequest) -> Iterator[dict[str, Future[list[trace.Difference]]]]:
    """Plays the demos that tests ask for on all cores: the library lets go of the interpreter while it plays."""
    wanted = dict.fromkeys(
        item.callspec.params["reference"] for item in request.session.items
        if isinstance(item, pytest.Function) and hasattr(item, "callspec") and "reference" in item.callspec.params)
    library.load()
    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
        yield {name: pool.submit(_differences, name) for name in wanted}


@pytest.mark.parametrize("reference", REFERENCE_NAMES)
def test_every_column_of_a_reference_demo(differences, reference: str) -> None:
    found = differences[reference].result()
    assert not found, "; ".join(map(str, found[:5]))


@pytest.mark.parametrize("name", OWN_NAMES)
def test_our_own_demos(name: str) -> None:
    expected = compact.load(OWN / f"{name}.npz")
    played = trace.play_demo(demo(OWN, name), blob_of(OWN, name))
    assert compact.first_difference(expected, compact.summarise(played)) is None


def test_the_own_set_covers_both_versions_and_games() -> None:
    assert len({sha256_of(OWN, name) for name in OWN_NAMES}) == 4
    assert sorted(path.stem for path in OWN.glob("*.lmp")) == sorted(OWN_NAMES)


@pytest.mark.parametrize("name", ["fd1-demo2", "fd2-map07-s4-a"])
def test_objects_and_sectors_at_the_dumped_tics(name: str) -> None:
    recorded = demo(REFERENCE, name)
    with np.load(file(REFERENCE, f"{name}-frames.npz")) as tables, \
            library.TracedGame(blob_of(REFERENCE, name), traced=False, **recorded.settings()) as game:
        done = 0
        for tic in tables["tics"].tolist():
            game.play(recorded.commands[done:tic + 1])
            done = tic + 1
            assert np.array_equal(game.mobjs(), tables[f"mobjs_tic{tic}"])
            assert np.array_equal(game.sectors(), tables[f"sectors_tic{tic}"])


def test_the_command_writes_trace_and_frames(tmp_path, capsys) -> None:
    """`ofa-tui doom demo` on a reference demo: the file it writes is the reference, its frames are the golden ones."""
    name = "fd2-map30-s3-b"
    recorded, wad = str(file(REFERENCE, f"{name}.lmp")), with_sha256(sha256_of(REFERENCE, name)).path
    with np.load(file(REFERENCE, f"{name}-frames.npz")) as golden:
        tics = golden["tics"].tolist()
        assert main(["doom", "demo", recorded, "--wad", wad, "--trace", str(tmp_path / "t.npz"), "--frames",
                     ",".join(map(str, tics)), "-o", str(tmp_path / "frames")]) == 0
        assert "2,000 tics" in capsys.readouterr().out
        assert not trace.compare(golden_trace(REFERENCE, name), trace.load_trace(tmp_path / "t.npz"))
        for tic, picture, bar in zip(tics, golden["frames"], golden["sbar_ns"], strict=True):
            pixels = np.asarray(Image.open(tmp_path / "frames" / f"tic-{tic:06}.png"))
            assert np.array_equal(pixels[:library.VIEW_HEIGHT], picture[:library.VIEW_HEIGHT])
            assert np.array_equal(pixels[library.VIEW_HEIGHT:], bar)
