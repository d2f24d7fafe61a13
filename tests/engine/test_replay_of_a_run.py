"""The oracle of a replay is the run itself: a real one, recorded while its snapshots were kept."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from engine_runs import a_game, config, engine
from hypothesis import given, settings
from hypothesis import strategies as st

from ofa_tui import abi
from ofa_tui.engine.protocol import Event, Snapshot
from ofa_tui.engine.replay import ReplayEngine
from ofa_tui.record.writer import RunWriter
from ofa_tui.tui.model import RunModel
from tests.record.fake_engine import FrozenClock
from tests.record.replay_states import JUMPS, absorb, jumped, shown, straight

SECONDS = 5.0


class Recorded:
    """A record, and the snapshots it was made of."""

    def __init__(self, folder: Path, snapshots: list[Snapshot]) -> None:
        self.folder, self.snapshots = folder, snapshots


@pytest.fixture(scope="session")
def recorded(kernel, tmp_path_factory):
    """A run of SECONDS with Doom, served text and an SM that changes its role."""
    folder = tmp_path_factory.mktemp("replayed") / "run"
    running = engine(kernel, config(
        sms=(2, 1, 1), doom=a_game(1), steps=100_000, sweep_every=50, tokens_per_s=40))
    writer = RunWriter(folder, {}, running.info)
    snapshots = []
    running.start()
    try:
        while not snapshots or snapshots[-1].seconds < SECONDS:
            snapshots.append(running.poll())
            writer.write(snapshots[-1])
            if len(snapshots) == 100:
                running.post(Event("set_role", "step", target=1, args=(abi.SERVE,)))
            time.sleep(1 / 70)
    finally:
        running.stop()
    writer.finish("stopped")
    return Recorded(folder, snapshots)


@settings(max_examples=20, deadline=None)
@given(where=st.floats(0, 1))
def test_a_replay_shows_what_the_run_showed_then(recorded, where):
    folder, snapshots = recorded.folder, recorded.snapshots
    index = 1 + round(where * (len(snapshots) - 3))
    replay = ReplayEngine(folder, clock=FrozenClock())
    replay.seek(snapshots[index].seconds)
    model = RunModel(replay.info)
    absorb(model, replay)
    lives = []
    for end in (index, index + 1, index + 2):  # a step or token may show in the poll after its time
        live = RunModel(replay.info)
        for snapshot in snapshots[:end]:
            live.absorb(snapshot)
        lives.append(live)
    before, then, after = lives
    assert before.losses.count <= model.losses.count <= after.losses.count
    assert model.losses.values.tolist() == after.losses.values[: model.losses.count].tolist()
    assert before.snapshot.tokens_served <= model.snapshot.tokens_served <= after.snapshot.tokens_served
    text, latest = (["".join(piece for piece, _, _ in story.pieces) for story in m.stories] for m in (model, after))
    assert all(b.startswith(a) for a, b in zip(text, latest, strict=False)) and len(text) <= len(latest)
    assert len(before.sweeps) <= len(model.sweeps) <= len(after.sweeps)
    assert model.sweeps == after.sweeps[: len(model.sweeps)]
    spent, live_spent = (float(m.snapshot.sms["op_ns"].sum()) / 1e9 for m in (model, then))
    assert spent == pytest.approx(live_spent, abs=1.5), "within what the SMs can do between two samples"
    assert model.roles.tolist() in [live.roles.tolist() for live in lives]
    assert (model.frame is None) == (then.frame is None)
    if model.frame is None:
        return
    assert model.frame.number == then.frame.number and np.array_equal(model.frame.pixels, then.frame.pixels)
    assert model.frame.status == then.frame.status and np.array_equal(model.frame.palette, then.frame.palette)


@settings(max_examples=20, deadline=None)
@given(jumps=JUMPS, polls_per_s=st.sampled_from([3.0, 35.0]))
def test_after_any_jumps_it_shows_what_a_straight_replay_shows(recorded, jumps, polls_per_s):
    clock = FrozenClock()
    moved = ReplayEngine(recorded.folder, clock=clock)
    model = jumped(moved, clock, jumps)
    clock = FrozenClock()
    reference = ReplayEngine(recorded.folder, clock=clock)
    assert shown(model) == shown(straight(reference, clock, moved.seconds, polls_per_s))
