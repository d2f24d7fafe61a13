"""Each control of a replay in the app, over a recorded run whose clock the test holds."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from app_session import Session, steady  # noqa: F401
from hypothesis import given
from hypothesis import strategies as st
from replay_session import replaying
from test_layout import cover

from ofa_tui.engine.replay import ReplayEngine
from ofa_tui.tui.layout import PANES, arrange, with_footer_of
from ofa_tui.tui.screenshot import screen_grid

pytestmark = pytest.mark.usefixtures("steady")


def panes(run: Session[ReplayEngine]) -> dict[str, str]:
    run.app.repaint_all()
    return {name: run.text(name) for name in (*PANES, "tiles")}


async def test_pause_holds_and_goes_on(folder: Path) -> None:
    async with replaying(folder) as screen:
        await screen.advance(1.0)
        await screen.press("space")
        at, before = screen.engine.seconds, panes(screen)
        await screen.advance(1.0)
        assert screen.engine.seconds == at and panes(screen) == before, "panes stay as they were then"
        assert "paused" in screen.text("replay") and "paused" in screen.text("header")
        await screen.press("space")
        await screen.advance(0.5)
        assert screen.engine.seconds == pytest.approx(at + 0.5) and "replay" in screen.text("replay")


@pytest.mark.parametrize(
    ("keys", "moved"),
    [("j", -5), ("l", 5), ("J", -60), ("L", 60), ("jl", 0), ("LJ", 0), ("jjj", -15)],
)
async def test_keys_move_by_seconds(long_folder: Path, keys: str, moved: float) -> None:
    async with replaying(long_folder) as screen:
        await screen.advance(80.0)
        at = screen.engine.seconds
        await screen.press(*keys)
        assert screen.engine.seconds == pytest.approx(at + moved)
        assert screen.app.model.losses.count == sum(
            entry.seconds <= at + moved for entry in screen.engine.playback.run.losses
        )


async def test_begin_and_end(folder: Path) -> None:
    async with replaying(folder) as screen:
        await screen.advance(2.0)
        middle = panes(screen)
        await screen.press("end")
        assert screen.engine.at_end and screen.app.model.state == "finished" and "40" in screen.text("header")
        await screen.press("space", "space")
        assert "home goes to the beginning" in screen.text("footer")
        await screen.press("home")
        assert screen.engine.seconds == screen.engine.begin and screen.app.model.losses.count == 0
        await screen.advance(2.0)
        assert panes(screen) == middle, "where it was before, the panes are as they were"


async def test_speed(folder: Path) -> None:
    async with replaying(folder) as screen:
        await screen.press(">", ">")
        assert "4x" in screen.text("replay") and "4 times" in screen.text("footer")
        at = screen.engine.seconds
        await screen.advance(0.25)
        assert screen.engine.seconds == pytest.approx(at + 1.0)
        await screen.press("<", "<", "<", "<", "<", "<")
        await screen.advance(0.4)
        assert "0.25x" in screen.text("replay") and screen.engine.seconds == pytest.approx(at + 1.1)


async def test_a_step_is_asked_for_in_a_prompt_line(folder: Path) -> None:
    async with replaying(folder) as screen:
        await screen.press("o")
        assert "step: Enter goes there" in "\n".join(screen_grid(screen.app).lines())
        await screen.press("2", "x", "3", "enter")
        assert screen.app.model.snapshot is not None and screen.app.model.snapshot.steps_done == 23
        assert "step 23" in screen.text("header") and len(screen.app.screen_stack) == 1
        await screen.press("o", "9", "9", "enter")
        assert "step 99 is not in this record; it has 0 to 40" in screen.text("footer")
        assert screen.app.model.snapshot.steps_done == 23
        await screen.press("o", "5", "escape")
        assert screen.app.model.snapshot.steps_done == 23 and len(screen.app.screen_stack) == 1


@pytest.mark.parametrize("size", [(200, 60), (120, 40), (80, 24), (60, 18), (30, 8)])
async def test_the_bar_has_its_row_at_every_size(folder: Path, size: tuple[int, int]) -> None:
    async with replaying(folder, *size) as screen:
        screen.app.clear_message()
        await screen.pilot.pause()
        await screen.advance(0.0)
        lines = screen_grid(screen.app).lines()
        assert "► replay  1x  00:00:00" in lines[-2] and "pause" in lines[-1]
        assert len(screen.app.panes["replay"].strips) == 1
        expected = arrange(*size, single=screen.app.active)
        assert set(screen.app.boxes(*size)) == {*expected, "replay"}, "the panes are those of a live run"


@given(st.integers(24, 260), st.integers(7, 90), st.integers(1, 4), st.sampled_from([None, "loss"]))
def test_with_the_bar_a_cell_belongs_to_one_pane(width: int, height: int, rows: int, zoom: str | None) -> None:
    boxes = arrange(width, height, zoom=zoom, bar=True)
    assert all(count == 1 for row in cover(boxes, width, height) for count in row)
    after = with_footer_of(boxes, rows)
    assert all(count <= 1 for row in cover(after, width, height) for count in row)
    assert after["replay"].y == height - rows - 1 and after["footer"].height == rows


async def test_a_long_message_moves_the_bar_up(folder: Path) -> None:
    async with replaying(folder, 80, 24) as screen:
        screen.app.say("a sentence that needs more than one row " * 4)
        await screen.pilot.pause()
        boxes = screen.app.boxes(80, 24)
        assert boxes["replay"].y + 1 == boxes["footer"].y and boxes["footer"].height > 1


async def test_a_followed_run_says_that_it_ended(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "run")
    (tmp_path / "run" / "summary.json").unlink()
    async with replaying(tmp_path / "run", follow=True) as screen:
        await screen.advance(0.1)
        assert "following" in screen.text("replay") and "…" in screen.text("replay")
        await screen.advance(10.0)
        assert screen.app.model.state == "running" and "nothing new for 10 s" in screen.text("replay")
        await screen.press("q")
        assert "The run itself goes on" in "\n".join(screen_grid(screen.app).lines())
        await screen.press("n")
        (tmp_path / "run" / "summary.json").write_text(json.dumps({"exit_reason": "SIGINT", "seconds": 4.0}))
        await screen.advance(1.0)
        await screen.advance(1.0)
        assert "where SIGINT ended the run" in screen.text("footer") and "the run is over" in screen.text("replay")
        await screen.press("home")
        assert screen.app.model.losses.count == 0 and "replay" in screen.text("replay")


async def test_damage_is_said(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "run")
    path = tmp_path / "run" / "loss.csv"
    path.write_bytes(path.read_bytes().replace(b"\n9,", b"\nnine,"))
    async with replaying(tmp_path / "run", 200, 60) as screen:
        assert "damaged and left out: a line of loss.csv; the rest is shown" in screen.text("footer")
