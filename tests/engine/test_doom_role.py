"""Doom beside training: pacing, pause, single tics, steering, whole frames."""

import itertools
import time
from dataclasses import replace

import numpy as np
import pytest
from engine_runs import a_game, config, engine, pause, wait_for

from ofa_tui import abi
from ofa_tui.engine.protocol import Event

FOREVER = 100_000


@pytest.fixture(scope="module")
def game():
    return a_game(games=1)


def test_frames_come_at_the_pace_and_in_order(kernel, game):
    running = engine(kernel, config(steps=FOREVER, sms=(1, 1, 1), doom=game))
    running.start()
    wait_for(running, lambda s: bool(s.frames))
    snapshots = [running.poll()]
    started = time.monotonic()
    while time.monotonic() - started < 2.0:
        time.sleep(0.05)
        snapshots.append(running.poll())
    running.stop()
    frames = [frame for s in snapshots for frame in s.frames]
    numbers = [frame.number for frame in frames]
    assert all(after > before for before, after in itertools.pairwise(numbers))
    late = max(after.seconds - before.seconds for before, after in itertools.pairwise(snapshots))
    if 35 * late < abi.FRAME_SLOTS / 2:  # else the reader may have come too late for some
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert all(int(frame.status["tic"]) == frame.number for frame in frames)
    assert all(frame.pixels.shape == (200, 320) and len(np.unique(frame.pixels)) > 20 for frame in frames)
    # Tics that came late are made up for, but for no more than a second of them.
    seconds = (int(frames[-1].status["time_ns"]) - int(frames[0].status["time_ns"])) / 1e9
    assert len(frames) - 1 <= 35 * (seconds + 1)


def test_paused_tics_pass_one_by_one(kernel, game):
    running = engine(kernel, config(steps=FOREVER, sms=(1, 0, 1), doom=game))
    running.start()
    wait_for(running, lambda s: bool(s.frames))
    pause(running)
    held = running.memory["telemetry"][0]["frames"][0]
    running.step_tics(3)
    give_up = time.monotonic() + 60
    while running.memory["telemetry"][0]["frames"][0] < held + 3 and time.monotonic() < give_up:
        time.sleep(0.01)
    time.sleep(0.15)
    assert running.memory["telemetry"][0]["frames"][0] == held + 3
    running.pause(False)
    wait_for(running, lambda s: bool(s.frames) and s.frames[-1].number > held + 5)
    running.stop()


def test_steering_is_applied_at_its_tic_and_repeats(kernel, game):
    """The same events at the same tics give the same game, picture for picture."""
    events = (
        Event("behaviour", "tic", 3, 0, (6,)),
        Event("keys", "tic", 5, 0, (50, 0, 640, 0)),
        Event("keys", "tic", 40, 0, (0, 0, 0, 0)),
        Event("new_game", "tic", 50, 0, (1, 2, 3, 9)),
    )

    def play() -> tuple[list[tuple[int, int]], dict[int, bytes], np.void]:
        running = engine(kernel, config(steps=FOREVER, sms=(1, 0, 1), doom=game, events=events))
        running.start()
        snapshots = wait_for(running, lambda s: bool(s.frames) and s.frames[-1].number >= 60)
        running.stop()
        frames = {frame.number: frame for s in snapshots for frame in s.frames}
        applied = [(a.event.when, a.at) for s in snapshots for a in s.applied]
        return applied, {n: frame.pixels.tobytes() for n, frame in frames.items()}, frames[60].status

    applied, pictures, status = play()
    assert applied == [(3, 3), (5, 5), (40, 40), (50, 50)]
    assert (int(status["map"]), int(status["skill"])) == (2, 3)
    _, again, _ = play()
    assert all(again[number] == pictures[number] for number in range(1, 61))
    assert pictures[30] != pictures[45], "the keys did not turn the view"


def test_games_play_side_by_side_and_do_not_change_training(kernel, game):
    alone = engine(kernel, config())
    alone.start()
    wait_for(alone, lambda s: s.state == "finished")
    alone.stop()
    running = engine(kernel, config(sms=(2, 1, 2), doom=replace(game, games=3), jitter_seed=2))
    running.start()
    wait_for(running, lambda s: s.state == "finished" and s.frames_per_s > 0)
    counts = running.memory["telemetry"][0]["frames"][:3].astype(int)
    running.post(Event("set_role", "step", 0, 4, (abi.TRAIN,)))
    wait_for(running, lambda s: s.roles[4] == abi.TRAIN)
    wait_for(running, lambda s: bool((running.memory["telemetry"][0]["frames"][:3] > counts + 3).all()))
    running.stop()
    assert running.memory["losses"].tobytes() == alone.memory["losses"].tobytes()
    assert np.ptp(running.memory["telemetry"][0]["frames"][:3].astype(int)) <= 2


def test_an_event_is_at_its_tic_although_another_game_looks_for_its_own(kernel, game):
    """Who finds somebody at the events waits, instead of going on to the next tic without a look."""
    event = Event("keys", "tic", 1, 1, (50, 0, 0, 0))
    running = engine(kernel, config(steps=FOREVER, sms=(1, 0, 2), doom=replace(game, games=2), events=(event,)))
    held = running.memory["queues"]["events_held"]
    held[abi.DOOM] = 1
    running.start()
    time.sleep(0.3)
    held[abi.DOOM] = 0
    applied = [a for s in wait_for(running, lambda s: bool(s.applied)) for a in s.applied]
    running.stop()
    assert [a.at for a in applied] == [1]
