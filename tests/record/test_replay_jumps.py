"""A replay that is moved in time, over a record longer than any pane remembers."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys

import numpy as np
import pytest
from fake_engine import FakeEngine, FrozenClock, frame_of, record_fake
from hypothesis import given, settings
from hypothesis import strategies as st
from replay_states import JUMPS, absorb, jumped, shown, straight

from ofa_tui.engine.protocol import Event
from ofa_tui.engine.replay import SPEEDS, ReplayEngine
from ofa_tui.errors import OfaError
from ofa_tui.record.frame_log import FrameEncoder
from ofa_tui.record.writer import RunWriter
from ofa_tui.tui.model import RunModel

SECONDS = 300


@pytest.fixture(scope="module", params=[1, 3])
def folder(request, tmp_path_factory):
    """Five minutes, a frame every two seconds, steering on every clock; one stream of text, and three."""
    folder, clock = tmp_path_factory.mktemp("runs") / "run", FrozenClock()
    engine = FakeEngine(steps=SECONDS * 10, clock=clock, streams=request.param)
    writer = RunWriter(folder, {}, engine.info)
    for event in (Event("set_role", "step", 70, 1, (2,)), Event("prompt", "token", 90, text="so"),
                  Event("behaviour", "tic", 7000, args=(1,)), Event("end_story", "token", 300, request.param - 1)):
        engine.post(event)
    engine.start()
    for poll in range(SECONDS * 4 + 1):
        snapshot = engine.poll()
        frames = snapshot.frames[-1:] if poll % 8 == 0 else []
        writer.write(dataclasses.replace(snapshot, frames=frames, frames_per_s=30 + clock.now % 7))
        clock.sleep(1 / 4)
    writer.finish("finished")
    return folder


@settings(max_examples=12, deadline=None)
@given(jumps=JUMPS, polls_per_s=st.sampled_from([1.0, 10.0]))
def test_after_any_jumps_it_shows_what_a_straight_replay_shows(folder, jumps, polls_per_s):
    clock = FrozenClock()
    moved = ReplayEngine(folder, clock=clock)
    model = jumped(moved, clock, jumps)
    clock = FrozenClock()
    assert shown(model) == shown(straight(ReplayEngine(folder, clock=clock), clock, moved.seconds, polls_per_s))


@settings(max_examples=25, deadline=None)
@given(step=st.integers(0, SECONDS * 10))
def test_a_step_is_where_so_many_steps_are_done(folder, step):
    engine = ReplayEngine(folder, clock=FrozenClock())
    engine.seek_step(step)
    assert engine.poll().steps_done == step


def test_a_step_that_is_not_there_is_refused_with_those_that_are(folder):
    engine = ReplayEngine(folder, clock=FrozenClock())
    with pytest.raises(OfaError, match=r"step 3,001 is not in this record; it has 0 to 3,000"):
        engine.seek_step(SECONDS * 10 + 1)


def test_speeds_take_effect_from_where_it_is(folder):
    clock = FrozenClock()
    engine = ReplayEngine(folder, clock=clock)
    engine.start()
    for _ in range(len(SPEEDS)):
        engine.faster()
    assert engine.speed == SPEEDS[-1] == 32
    before = engine.seconds
    clock.sleep(2.0)
    for _ in range(2 * len(SPEEDS)):
        engine.slower()
    assert engine.speed == SPEEDS[0] == 0.25 and engine.seconds == pytest.approx(before + 64)
    clock.sleep(4.0)
    engine.poll()
    assert engine.seconds == pytest.approx(before + 65)


def test_it_goes_no_further_than_the_record(folder):
    engine = ReplayEngine(folder, clock=FrozenClock())
    engine.seek(1e9)
    last = engine.poll()
    assert engine.at_end and last.state == "finished" and last.steps_done == SECONDS * 10
    engine.seek_by(-1e9)
    model = RunModel(engine.info)
    absorb(model, engine)
    assert engine.seconds == engine.begin and model.losses.count == 0 and model.state == "paused"


def test_a_record_whose_palettes_were_written_once_shows_them_all_the_same(tmp_path, monkeypatch):
    """As records were until blocks stood alone."""
    flush = FrameEncoder.flush

    def flush_once(encoder: FrameEncoder) -> bytes:
        palettes = encoder._palettes
        block = flush(encoder)
        encoder._palettes = palettes
        return block

    monkeypatch.setattr(FrameEncoder, "flush", flush_once)
    record_fake(tmp_path / "run")
    engine = ReplayEngine(tmp_path / "run", clock=FrozenClock())
    for seconds in (3.5, 0.5, 2.0):
        engine.seek(seconds)
        (frame,) = engine.poll().frames
        assert np.array_equal(frame.palette, frame_of(frame.number).palette)
        assert np.array_equal(frame.pixels, frame_of(frame.number).pixels)


def test_a_replay_needs_no_compiler_and_no_wad(folder, tmp_path):
    """A process that finds no program and has an empty cache: it shows the run, and builds nothing."""
    code = f"""
import asyncio
from pathlib import Path
from ofa_tui.engine.replay import ReplayEngine
from ofa_tui.tui.app import OfaApp

async def show():
    app = OfaApp(ReplayEngine(Path({str(folder)!r})))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("end")
        await pilot.pause()
        print(app.model.state, app.model.snapshot.steps_done, app.model.frame is not None)

asyncio.run(show())
"""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("DOOMWAD", "CUDA"))}
    environment |= {"PATH": str(tmp_path), "CXX": "", "OFA_TUI_CACHE": str(tmp_path / "cache"), "HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["finished", str(SECONDS * 10), "True"], done.stderr
    assert not (tmp_path / "cache").exists()
