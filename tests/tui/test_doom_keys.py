"""Keys of the games: which is shown, back and forth, the automap, demos."""

from __future__ import annotations

from pathlib import Path

import pytest
from app_session import session, steady  # noqa: F401

from ofa_tui.doom.lmp import read_demo
from ofa_tui.doom.players import BEHAVIOURS
from ofa_tui.engine.protocol import Event
from ofa_tui.tui.colour import Depth
from ofa_tui.tui.layout import Box
from ofa_tui.tui.options import UiOptions
from ofa_tui.tui.panes.wall import columns_for
from ofa_tui.tui.session import closing_line

pytestmark = pytest.mark.usefixtures("steady")


def tic(action: str, *args: int, game: int = 0) -> Event:
    return Event(action, "tic", target=game, args=args)


async def test_who_plays() -> None:
    async with session() as run:
        await run.press("h", "s", "p", "b", "c", "e")
        names = ("hunt", "speedrun", "pacifist", "berserk", "camp", "explore")
        assert run.engine.posted == [tic("behaviour", BEHAVIOURS.index(name)) for name in names]
        assert "explore: visits what it has not seen" in run.text("footer")


async def test_the_first_step_holds_the_games_and_nothing_else() -> None:
    async with session() as run:
        await run.press("comma")
        assert run.engine.held and not run.engine.paused and run.engine.posted == [tic("rewind", 1)]
        await run.advance(0.1)
        assert "games held" in run.text("header") and "35 fps link" in run.text("header")
        await run.press("full_stop")
        assert run.engine.stepped == 35, "nothing is ahead: a second is played"
        await run.press("space")
        assert not run.engine.held and not run.engine.paused and "going on" in run.text("footer")


async def test_a_step_forward_goes_where_the_game_was() -> None:
    async with session(moving=True) as run:
        await run.press("full_stop")
        assert run.engine.held and not run.engine.posted and not run.engine.stepped
        run.engine.ahead = 3
        await run.advance(1.0)
        assert "held  ◀ 33 s  3 s ▶" in run.text("doom")
        await run.press("full_stop")
        assert run.engine.posted == [tic("rewind", -1)] and not run.engine.stepped


async def test_a_paused_run_is_stepped_without_more_being_held() -> None:
    async with session() as run:
        await run.press("space")
        await run.advance(0.1)
        await run.press("comma", "comma")
        assert not run.engine.held and run.engine.posted == [tic("rewind", 1)] * 2


async def test_the_map() -> None:
    async with session() as run:
        await run.press("plus", "f")
        assert not run.engine.posted and "Tab shows it" in run.text("footer")
        await run.press("tab", "plus", "plus", "minus", "f", "left", "up", "f", "tab")
        assert run.engine.posted == [
            tic("automap", *args) for args in (
                (1, 0, 0, 0), (1, 1, 0, 0), (1, 2, 0, 0), (1, 1, 0, 0),
                (2, 1, 0, 0), (2, 1, -205, 0), (2, 1, -205, 205), (1, 1, 0, 0), (0, 1, 0, 0),
            )
        ]


async def test_a_map_that_was_played_back_is_known() -> None:
    async with session() as run:
        run.engine.post(tic("automap", 1, 4, 0, 0))
        await run.advance(0.1)
        await run.press("plus", "tab")
        assert run.engine.posted[1:] == [tic("automap", 1, 5, 0, 0), tic("automap", 0, 5, 0, 0)]


async def test_a_person_who_plays_can_look_at_the_map() -> None:
    async with session() as run:
        await run.press("m", "tab", "plus", "d", "comma", "n")
        assert [e.action for e in run.engine.posted if e.action != "keys"] == ["behaviour", "automap", "automap"]
        assert run.app.playing and not run.engine.held


async def test_a_demo_is_saved_and_named(tmp_path: Path) -> None:
    options = UiOptions(depth=Depth.TRUECOLOR, screenshots=tmp_path / "new")
    async with session(moving=True, options=options) as run:
        await run.press("d")
        (path,) = (tmp_path / "new").glob("doom-E1M1-*.lmp")
        assert "saved" in run.text("footer")
        assert len(read_demo(path).commands) == 32 * 35 and read_demo(path).commands["forward"][5, 0] == 50
        assert str(path) in closing_line(run.app.model, run.app.saved)
        await run.advance(1.0)
        (tmp_path / "file").write_text("")
        run.app.options = UiOptions(screenshots=tmp_path / "file")
        await run.press("d")
        assert "cannot write" in run.text("footer")


async def test_another_game_is_shown_and_steered() -> None:
    async with session(games=3) as run:
        assert "#0 · E1M1" in run.text("doom") and "seed 7 " in run.text("player")
        await run.press("n", "e", "tab", "m", "w")
        assert "#1 · E1M2" in run.text("doom") and "seed 8 " in run.text("player")
        assert [event.action for event in run.engine.posted[:4]] == ["behaviour", "automap", "behaviour", "keys"]
        assert {event.target for event in run.engine.posted} == {1}
        await run.press("escape", "n", "n")
        assert "#0 · E1M1" in run.text("doom")


@pytest.mark.parametrize("size", ["200x60", "120x40", "80x24"])
async def test_the_wall_shows_every_game(size: str) -> None:
    columns, rows = map(int, size.split("x"))
    async with session(columns, rows, games=5) as run:
        one = run.text("doom")
        await run.press("w")
        text = run.text("doom")
        assert all(f" {game} E1M{game + 1} " in " ".join(text.split()) for game in range(5))
        await run.press("n", "w")
        assert "#1 · E1M2" in run.text("doom") and "#0 · E1M1" in one
        await run.press("n", "n", "n", "n")
        assert run.text("doom") == one


@pytest.mark.parametrize(("games", "words"), [(1, "--dooms N"), (0, "No WAD was found")])
async def test_one_game_has_no_wall_and_says_so(games: int, words: str) -> None:
    async with session(games=games) as run:
        for key in ("n", "w"):
            run.app.clear_message()
            await run.press(key)
            assert words in run.text("footer")
        assert not run.app.games.wall


@pytest.mark.parametrize(("games", "box", "columns"), [(4, Box(0, 0, 120, 45), 2), (4, Box(0, 0, 120, 12), 4),
                                                       (16, Box(0, 0, 120, 45), 4), (1, Box(0, 0, 3, 1), 1)])
def test_the_walls_pictures_are_as_large_as_can_be(games: int, box: Box, columns: int) -> None:
    assert columns_for(games, box.width, box.height) == columns
