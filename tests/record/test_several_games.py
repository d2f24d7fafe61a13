"""A record of several games: all frames of the first, one a second of each other, and a replay that shows them."""

import dataclasses

import numpy as np
import pytest
from fake_engine import FakeEngine, FrozenClock, frame_of

from ofa_tui.engine.protocol import Frame, Snapshot
from ofa_tui.engine.replay import ReplayEngine
from ofa_tui.record.reader import RecordedRun
from ofa_tui.record.writer import RunWriter

SECONDS = 5


def frame_of_game(game: int, number: int) -> Frame:
    return dataclasses.replace(frame_of(1000 * game + number), number=number, game=game)


class SeveralGames(FakeEngine):
    """Game n draws its frames with those of game 0, but for game 2, which stops after the first."""

    def __init__(self, clock: FrozenClock) -> None:
        super().__init__(clock=clock)
        self.info = dataclasses.replace(self.info, games=3)

    def poll(self) -> Snapshot:
        snapshot = super().poll()
        numbers = [frame.number for frame in snapshot.frames]
        others = [frame_of_game(game, numbers[-1]) for game in (1, 2) if numbers and (game == 1 or numbers[-1] == 1)]
        return dataclasses.replace(snapshot, others=others)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder, clock = tmp_path_factory.mktemp("runs") / "run", FrozenClock()
    engine = SeveralGames(clock)
    writer = RunWriter(folder, {}, engine.info)
    engine.start()
    while clock.now < 100 + SECONDS:
        clock.sleep(1 / 70)
        writer.write(engine.poll())
    writer.finish("finished")
    return folder


def test_frames_come_back_game_by_game(folder):
    frames = [timed.frame for timed in RecordedRun(folder).frames()]
    first = [frame for frame in frames if frame.game == 0]
    assert [frame.number for frame in first] == list(range(1, len(first) + 1)) and len(first) >= 35 * SECONDS - 1
    counts = [sum(frame.game == game for frame in frames) for game in range(3)]
    assert SECONDS - 1 <= counts[1] <= SECONDS + 2 and counts[2] == 1
    for frame in frames:
        expected = frame_of_game(frame.game, frame.number) if frame.game else frame_of(frame.number)
        assert np.array_equal(frame.pixels, expected.pixels) and frame.status == expected.status
        assert np.array_equal(frame.palette, expected.palette)
    assert RecordedRun(folder).summary["frames_kept"] == len(first)


def test_a_replay_shows_all_games(folder):
    clock = FrozenClock()
    engine = ReplayEngine(folder, clock=clock)
    engine.start()
    shown: dict[int, list[Frame]] = {0: [], 1: [], 2: []}
    for _ in range(SECONDS * 20 + 20):
        clock.sleep(1 / 20)
        snapshot = engine.poll()
        for frame in [*snapshot.frames, *snapshot.others]:
            shown[frame.game].append(frame)
    assert engine.info.games == 3
    recorded = [timed.frame for timed in RecordedRun(folder).frames()]
    for game, frames in shown.items():
        assert [frame.number for frame in frames] == [frame.number for frame in recorded if frame.game == game]
