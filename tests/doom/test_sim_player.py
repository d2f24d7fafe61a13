"""The scripted player: it explores, its run is a legal demo, and it is a function of the seed."""

from __future__ import annotations

import numpy as np
import pytest

from ofa_tui.doom import library, players
from tests.wads import freedoom

MINUTE = 60 * 35
FIRE = 1
HAND_WEAPONS = (0, 7)


def new_game(wad: str, **settings: int) -> library.Game:
    game = library.Game(freedoom(wad).blob)
    game.start(**settings)
    return game


# Sectors seen in three minutes of skill 3, seed 0, are 61, 84 and 125; there are decorations nobody can stand in.
@pytest.mark.parametrize(("wad", "map_", "least"), [("freedoom1", 1, 50), ("freedoom1", 2, 60), ("freedoom2", 1, 90)])
def test_explores(wad: str, map_: int, least: int) -> None:
    """It sees much, and a stall ends within 4 s: the figure is of the present one, not a sum."""
    game = new_game(wad, map=map_)
    rows = []
    for _ in range(3 * MINUTE // 7):
        game.play(7)
        rows.append(game.status())
    stuck = np.array([int(row["stuck_tics"]) for row in rows])
    assert max(int(row["sectors_seen"]) for row in rows) >= least
    assert stuck.max() < 4 * 35
    assert np.mean(stuck > 0) < 0.1


def test_leaves_the_level() -> None:
    game = new_game("freedoom1", seed=1)
    game.play(6 * MINUTE)
    assert int(game.status()["map"]) > 1


def test_setting_the_active_behaviour_changes_nothing() -> None:
    game = new_game("freedoom1")
    game.play(MINUTE)
    state, seen = game.state.copy(), int(game.status()["sectors_seen"])
    explore, manual = (players.BEHAVIOURS.index(name) for name in ("explore", "manual"))
    game.set_behaviour(explore)
    assert np.array_equal(game.state, state)
    for behaviour in (manual, explore):
        game.set_behaviour(behaviour)
        game.play(1)
    assert int(game.status()["sectors_seen"]) >= seen > 1


def test_same_seed_same_game() -> None:
    runs = []
    for seed in (1, 1, 2):
        game = new_game("freedoom1", seed=seed)
        runs.append((game.play(MINUTE).tobytes(), game.state.tobytes()))
    assert runs[0] == runs[1]
    assert runs[0][0] != runs[2][0]


def test_its_run_is_a_demo() -> None:
    """Replaying the recorded commands without the player gives the same simulation, from 4-byte commands."""
    game = new_game("freedoom2", seed=3)
    commands = game.play(2 * MINUTE)
    assert not np.any(commands["turn"] & 255)
    assert not np.any(commands["buttons"] & 128)
    replay = new_game("freedoom2", seed=99)
    for command in commands:
        every = np.zeros(4, library.COMMAND)
        every[0] = command
        replay.tic(every)
    assert replay.row().tobytes() == game.row().tobytes()


def test_the_game_goes_on_after_a_death() -> None:
    """On the hardest skill the player dies within minutes, and is born again each time."""
    game = new_game("freedoom2", map=7, skill=3)
    deaths, before = 0, 0
    for _ in range(6 * 60):
        game.play(35)
        now = int(game.status()["playerstate"])
        deaths += now == 1 and before == 0
        before = now
    assert deaths >= 1
    assert int(game.status()["tic"]) == 6 * MINUTE
    for _ in range(4):
        game.play(35)
    assert int(game.row()["leveltime"]) < 6 * MINUTE


def test_behaviours_can_be_switched_while_playing() -> None:
    """Each takes over from the one before in a running game, and gets somewhere with legal commands."""
    game = new_game("freedoom1")
    for behaviour in (*range(len(players.BEHAVIOURS) - 1), 0):
        game.set_behaviour(behaviour)
        before = game.status()
        commands = game.play(10 * 35)
        now = game.status()
        assert now["behaviour"] == behaviour
        assert (now["x"], now["y"]) != (before["x"], before["y"])
        assert not np.any(commands["turn"] & 255) and not np.any(commands["buttons"] & 128)


def test_the_pacifist_never_fires() -> None:
    game = new_game("freedoom2", behaviour=players.BEHAVIOURS.index("pacifist"))
    assert not np.any(game.play(2 * MINUTE)["buttons"] & FIRE)
    assert int(game.status()["sectors_seen"]) > 10


def test_the_berserk_fights_by_hand() -> None:
    game = new_game("freedoom2", behaviour=players.BEHAVIOURS.index("berserk"))
    punches = 0
    for _ in range(2 * MINUTE):
        weapon = int(game.row()["readyweapon"])
        alive = int(game.row()["playerstate"]) == 0
        if game.play(1)["buttons"][0] & FIRE and alive:
            punches += 1
            assert weapon in HAND_WEAPONS
    assert punches > 100


def test_turns_like_a_hand() -> None:
    """The view gathers speed over some tics: it neither jerks nor spins."""
    turns = new_game("freedoom1", no_monsters=1).play(2 * MINUTE)["turn"].astype(int) // 256
    assert np.mean(np.abs(np.diff(turns)) > 8) < 0.02
    ten_seconds = np.convolve(turns, np.ones(350), "valid")
    assert np.abs(ten_seconds).max() < 6 * 256


def test_manual_is_the_persons_command() -> None:
    game = new_game("freedoom1", behaviour=players.BEHAVIOURS.index("manual"))
    assert not game.play(35)["forward"].any()
    game.set_keys(50, -24, 1 << 8, 1)
    command = game.play(1)[0]
    assert (command["forward"], command["side"], command["turn"], command["buttons"]) == (50, -24, 256, 1)
    game.set_behaviour(players.BEHAVIOURS.index("explore"))
    assert game.play(70)["forward"].any()
