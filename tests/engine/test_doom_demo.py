"""What the kernel's player does is written down as demos, and they play to the kernel's own pictures."""

import numpy as np
from engine_runs import a_game, config, engine, wait_for

from ofa_tui import abi
from ofa_tui.doom import library
from ofa_tui.doom.lmp import read_demo
from ofa_tui.doom.players import BEHAVIOURS
from ofa_tui.engine.protocol import Event
from ofa_tui.record.demo_log import DemoRecorder

FOREVER = 100_000
SECOND_GAME = 500


def test_recorded_demos_play_to_the_kernels_frames(kernel, tmp_path):
    """At full speed, with keys in between and a second game: a reader sees few frames then, but every command."""
    game = a_game(games=1)
    events = (
        Event("behaviour", "tic", 100, 0, (BEHAVIOURS.index("manual"),)),
        Event("keys", "tic", 105, 0, (50, -24, 640, 1)),
        Event("behaviour", "tic", 160, 0, (BEHAVIOURS.index("explore"),)),
        Event("new_game", "tic", SECOND_GAME, 0, (1, 3, 4, 9)),
    )
    running = engine(kernel, config(steps=FOREVER, sms=(1, 0, 1), doom=game, events=events, tics_per_s=0))
    recorder = DemoRecorder(tmp_path / "out.lmp")
    running.start()
    snapshots = wait_for(running, lambda s: bool(s.frames) and s.frames[-1].number >= 2 * SECOND_GAME)
    running.stop()
    snapshots.append(running.poll())
    for snapshot in snapshots:
        recorder.write(snapshot.commands[0])
    recorder.close()
    assert recorder.files == [tmp_path / "out.lmp", tmp_path / "out-2.lmp"] and recorder.missed == 0
    demos = [read_demo(path) for path in recorder.files]
    assert len(demos[0].commands) == SECOND_GAME
    assert len(demos[0].commands) + len(demos[1].commands) == int(running.memory["doom_seats"][0]["tics"])
    assert demos[0].commands[110, 0].tolist()[:4] == (50, -24, 512, 1)
    assert (demos[1].map, demos[1].skill) == (3, 4)
    frames = {frame.number: frame.pixels for s in snapshots for frame in s.frames}
    blob = np.frombuffer(game.blob, np.uint8)
    compared = 0
    for first, demo in zip((0, SECOND_GAME), demos, strict=True):
        replay = library.TracedGame(blob, traced=False, **demo.settings())
        done = 0
        for number in sorted(n for n in frames if first < n <= first + len(demo.commands)):
            replay.play(demo.commands[done:number - first])
            done = number - first
            assert np.array_equal(replay.frame(), frames[number]), number
            compared += 1
    assert compared > abi.FRAME_SLOTS
