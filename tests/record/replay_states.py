"""What the panes of a replay show, as plain values, and the two ways to come to a place: straight, and by jumps."""

from __future__ import annotations

import dataclasses
from typing import Any

from hypothesis import strategies as st

from ofa_tui.engine.replay import ReplayEngine
from ofa_tui.tui.model import RunModel
from tests.record.fake_engine import FrozenClock

JUMPS = st.lists(st.tuples(
    st.sampled_from(["seek", "seek_by", "play", "pause", "go_on", "faster", "slower"]), st.floats(0, 1),
), max_size=8)


def shown(model: RunModel) -> dict[str, Any]:
    """All that panes read of a model, but for the state ("running" or "paused") and what is new."""
    assert model.snapshot is not None
    sms = model.snapshot.sms
    assert sms is not None
    current = {
        name: getattr(model.snapshot, name)
        for name in ("seconds", "steps_done", "version", "tokens_served", "train_tokens_per_s", "step_ms",
                     "served_per_s", "frames_per_s", "device", "message")
    }
    stories = [[dataclasses.replace(story, wrapped=None) for story in told] for told in model.told]
    return current | {
        "losses": (model.losses.steps.tolist(), model.losses.values.tolist()),
        "sweeps": model.sweeps,
        "applied": model.applied,
        "stories": stories,
        "history": {name: list(values) for name, values in model.history.items()},
        "health": list(model.health),
        "busy": model.busy.tolist(),
        "busy_history": [busy.tolist() for busy in model.busy_history],
        "family_share": model.family_share.tolist(),
        "roles": model.roles.tolist(),
        "sms": sms.tobytes(),
        "frames": [
            (frame.number, frame.pixels.tobytes(), frame.palette.tobytes(), frame.status.tobytes()) if frame else None
            for frame in model.frames
        ],
    }


def straight(engine: ReplayEngine, clock: FrozenClock, seconds: float, polls_per_s: float) -> RunModel:
    """Plays from the beginning to exactly that time of the run's clock."""
    model = RunModel(engine.info)
    engine.start()
    absorb(model, engine)
    while engine.seconds + 1 / polls_per_s < seconds:
        clock.sleep(1 / polls_per_s)
        absorb(model, engine)
    # Exact, where the clock begins at 0 and the way is no longer than half of what there was.
    engine.pause(True)
    clock.now = 0.0
    engine.pause(False)
    clock.now = max(0.0, seconds - engine.seconds)
    absorb(model, engine)
    return model


def absorb(model: RunModel, engine: ReplayEngine) -> None:
    for snapshot in engine.passage():
        model.absorb(snapshot)


def jumped(engine: ReplayEngine, clock: FrozenClock, jumps: list[tuple[str, float]]) -> RunModel:
    """Goes back and forth as told (see JUMPS)."""
    model = RunModel(engine.info)
    engine.start()
    absorb(model, engine)
    span = engine.end - engine.begin
    for what, share in jumps:
        if what == "play":
            for _ in range(int(share * 20)):
                clock.sleep(share / 10)
                absorb(model, engine)
        elif what in ("pause", "go_on"):
            engine.pause(what == "pause")
        elif what in ("faster", "slower"):
            getattr(engine, what)()
        else:
            to = engine.begin + share * span * 1.1 if what == "seek" else (share - 0.5) * span
            getattr(engine, what)(to)
            model = RunModel(engine.info)
        absorb(model, engine)
    return model
