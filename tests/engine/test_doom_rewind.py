"""Rewinding: back to what was, on from there as if nothing had been, and the same again from the events."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from engine_runs import a_game, config, engine, wait_for

from ofa_tui import abi
from ofa_tui.doom import library
from ofa_tui.doom.lmp import read_demo
from ofa_tui.doom.players import BEHAVIOURS
from ofa_tui.engine.config import DoomConfig
from ofa_tui.engine.host import HostEngine
from ofa_tui.engine.protocol import Event, Snapshot
from ofa_tui.record.demo_log import DemoRecorder

FOREVER = 100_000
MANUAL = BEHAVIOURS.index("manual")


@pytest.fixture(scope="module")
def game() -> DoomConfig:
    return a_game(games=1)


def play(kernel, game: DoomConfig, tics: int, events: tuple[Event, ...] = (), **changes) -> tuple[HostEngine, dict]:
    """A run of game 0 up to clock `tics`: the engine, stopped, and its frames by number."""
    run = config(steps=FOREVER, sms=(1, 0, 1), doom=game, events=events, tics_per_s=700, **changes)
    running = engine(kernel, run)
    running.start()
    snapshots = wait_for(running, lambda s: bool(s.frames) and s.frames[-1].number >= tics)
    running.stop()
    return running, frames_of([*snapshots, running.poll()])


def frames_of(snapshots: list[Snapshot]) -> dict[int, object]:
    return {frame.number: frame for s in snapshots for frame in s.frames}


def same(a, b) -> bool:
    """Whether two frames show the same moment: picture, palette and figures, times and clocks aside."""
    kept = [name for name in abi.DOOM_STATUS.names
            if name not in ("tic", "time_ns", "render_ns", "think_ns", "behind", "ahead")]
    return np.array_equal(a.pixels, b.pixels) and all(np.array_equal(a.status[n], b.status[n]) for n in kept)


def test_a_rewound_game_goes_on_as_the_straight_one(kernel, game):
    """Frame by frame, through menus of fuzz, random numbers and the scripted player's memory."""
    _, straight = play(kernel, game, 300)
    # Clock 200 shows the game after tic 200 - 25 (back to 175), 201 after 140, 202 after 175 again.
    events = (Event("rewind", "tic", 200, 0, (1,)), Event("rewind", "tic", 201, 0, (1,)),
              Event("rewind", "tic", 202, 0, (-1,)), Event("rewind", "tic", 203, 0, (3,)))
    _, rewound = play(kernel, game, 340, events)
    expected = {number: number for number in range(1, 201)}
    expected |= {201: 175, 202: 140, 203: 175, 204: 70}
    expected |= {204 + n: 70 + n for n in range(1, 130)}
    wrong = [number for number, tic in expected.items()
             if number in rewound and tic in straight and not same(rewound[number], straight[tic])]
    assert not wrong, wrong
    assert len(set(expected) & set(rewound)) > 300
    assert [int(rewound[n].status["ahead"]) for n in (201, 202, 203, 204, 205)] == [1, 2, 1, 4, 0]
    assert [int(rewound[n].status["behind"]) for n in (201, 202, 203, 204, 205)] == [5, 4, 5, 2, 3]


def until(running: HostEngine, condition, into: list[Snapshot]) -> None:
    """Polls into the list until condition(the newest) holds, with the newest in the list."""
    def look(snapshot: Snapshot) -> bool:
        into.append(snapshot)
        return condition(snapshot)

    wait_for(running, look)


def newest(into: list[Snapshot], game: int = 0) -> int:
    """Number of the newest frame of a game."""
    return max((f.number for s in into for f in (s.others if game else s.frames) if f.game == game), default=0)


@pytest.mark.parametrize("blocks", [1, 2])
def test_held_games_are_rewound_one_by_one_and_the_events_repeat_it(kernel, game, blocks, tmp_path):
    """Training goes on meanwhile; the other games stay where they are; the run repeats frame for frame."""
    several = replace(game, games=3)
    run = config(steps=FOREVER, sms=(1, 0, blocks), doom=several, tics_per_s=350)
    running, seen = engine(kernel, run), []
    running.start()
    until(running, lambda s: bool(s.frames) and s.frames[-1].number > 150, seen)
    running.hold_games(True)
    time.sleep(0.3)  # for tics that had begun
    until(running, lambda s: s.games_held, seen)
    held, steps = [newest(seen, n) for n in range(3)], seen[-1].steps_done
    for press in range(1, 4):
        running.post(Event("rewind", "tic", 0, 0, (1,)))
        until(running, lambda _, wanted=held[0] + press: newest(seen) == wanted, seen)
    running.post(Event("behaviour", "tic", 0, 0, (MANUAL,)))
    running.post(Event("keys", "tic", 0, 0, (50, 0, 0, 0)))
    running.post(Event("automap", "tic", 0, 2, (1, 0, 0, 0)))
    until(running, lambda s: s.steps_done > steps + 2 and newest(seen, 2) == held[2] + 1, seen)
    assert [newest(seen, n) for n in range(3)] == [held[0] + 3, held[1], held[2] + 1]
    assert seen[-1].state == "running"
    running.step_tics(5)
    until(running, lambda _: newest(seen) == held[0] + 8, seen)
    running.hold_games(False)
    last = held[0] + 100
    until(running, lambda _: min(newest(seen, n) for n in range(3)) > last, seen)
    running.stop()
    seen.append(running.poll())
    events = tuple(replace(a.event, when=a.at) for s in seen for a in s.applied)
    assert [e.action for e in events] == ["rewind"] * 3 + ["behaviour", "keys", "automap"]

    again, repeated = engine(kernel, replace(run, events=events, jitter_seed=3)), []
    again.start()
    until(again, lambda _: min(newest(repeated, n) for n in range(3)) > last, repeated)
    again.stop()
    repeated.append(again.poll())
    compared = 0
    for n in range(3):
        first, second = ({f.number: f for s in run_ for f in (s.others if n else s.frames) if f.game == n}
                         for run_ in (seen, repeated))
        for number in set(first) & set(second):
            assert same(first[number], second[number]), (n, number)
            compared += 1
    assert compared > last
    check_demo(seen, game, several.games, tmp_path)


def check_demo(seen: list[Snapshot], game: DoomConfig, games: int, folder: Path) -> None:
    """Each game's demo, rewound with it, plays to its last frame."""
    for n in range(games):
        recorder = DemoRecorder(folder / f"game-{n}.lmp")
        for snapshot in seen:
            recorder.write(snapshot.commands[n])
        recorder.close()
        demo = read_demo(folder / f"game-{n}.lmp")
        replay = library.TracedGame(np.frombuffer(game.blob, np.uint8), traced=False, **demo.settings())
        replay.play(demo.commands)
        frames = {f.number: f for s in seen for f in (s.others if n else s.frames) if f.game == n}
        last = max(frames)
        done = sum(len(s.commands[n].rows) for s in seen)
        assert done == last or n, "the last poll saw the last frame of game 0"
        if n == 0:
            assert np.array_equal(replay.frame(), frames[last].pixels)
