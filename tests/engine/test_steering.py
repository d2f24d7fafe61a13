"""Events: what is refused, and a model of the kernel's side that takes what is posted."""

import numpy as np
import pytest
from engine_runs import config
from hypothesis import given, settings
from hypothesis import strategies as st

from ofa_tui import abi
from ofa_tui.engine.config import DoomConfig
from ofa_tui.engine.protocol import Event
from ofa_tui.engine.steering import Steering, sampling_event
from ofa_tui.errors import OfaError

DOOM = DoomConfig(b"", np.zeros((14, 256, 3), np.uint8), "test.wad", levels=((1, 1), (1, 2)))
ROLES = [abi.TRAIN, abi.TRAIN, abi.SERVE, abi.DOOM]


def steering(**changes) -> Steering:
    return Steering(config(sms=(2, 1, 1), doom=DOOM, **changes), ROLES)


@pytest.mark.parametrize(
    ("event", "sentence"),
    [
        (Event("jump", "step"), "unknown action"),
        (Event("set_role", "token", 0, 0, (1,)), "counts steps"),
        (Event("set_role", "step", 0, 0), "takes 1 argument"),
        (Event("set_role", "step", 0, 4, (1,)), "no SM 4"),
        (Event("set_role", "step", 0, 0, (9,)), "no role 9"),
        (Event("set_role", "step", 0, 2, (abi.TRAIN,)), "serve would be left"),
        (Event("set_role", "step", 0, 3, (abi.IDLE,)), "doom would be left"),
        (Event("set_role", "step", -1, 0, (abi.SERVE,)), "cannot happen"),
        (Event("prompt", "token", text="x" * 24), "24 tokens; the model can read 23"),
        (sampling_event(float("nan"), 1.0, 0, 1), "temperature"),
        (sampling_event(1.0, 0.0, 0, 1), "top-p"),
        (sampling_event(1.0, 1.0, -1, 1), "top-k"),
        (Event("keys", "tic", 0, 1, (0, 0, 0, 0)), "no game 1"),
        (Event("keys", "tic", 0, 0, (200, 0, 0, 0)), "forward 200"),
        (Event("new_game", "tic", 0, 0, (1, 9, 2, 1)), "no episode 1, map 9"),
        (Event("rewind", "tic", 0, 0, (3601,)), "3601 seconds"),
        (Event("rewind", "tic", 0, 0, ()), "takes 1 argument"),
        (Event("automap", "tic", 0, 0, (3, 0, 0, 0)), "mode 3"),
        (Event("automap", "tic", 0, 0, (1, 19, 0, 0)), "zoom 19"),
        (Event("automap", "tic", 0, 0, (2, 0, 0, 40000)), "y 40000"),
        (Event("new_game", "tic", 0, 0, (1, 1, 7, 1)), "skill 8"),
    ],
)
def test_what_cannot_be_is_refused(event, sentence):
    with pytest.raises(OfaError, match=sentence):
        steering().add(event)


def test_roles_are_checked_in_the_order_they_will_be_applied():
    """A later move may rely on an earlier one, and a live one must not spoil what is planned."""
    plan = (Event("set_role", "step", 10, 0, (abi.SERVE,)), Event("set_role", "step", 20, 2, (abi.TRAIN,)))
    run = steering(events=plan)
    with pytest.raises(OfaError, match="train would be left"):
        run.add(Event("set_role", "step", 5, 1, (abi.DOOM,)))
    with pytest.raises(OfaError, match="serve would be left"):
        steering(events=plan[1:])


def test_without_a_game_nobody_plays():
    run = Steering(config(sms=(2, 0, 0), doom_missing="No WAD was found."), [abi.TRAIN, abi.TRAIN])
    with pytest.raises(OfaError, match="No WAD was found"):
        run.add(Event("set_role", "step", 0, 0, (abi.DOOM,)))
    with pytest.raises(OfaError, match="no SM serves"):
        run.add(Event("prompt", "token", text="hi"))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 400), min_size=1, max_size=700), st.integers(1, 40))
def test_every_event_is_applied_once_at_its_time(whens, stride):
    """Far more events than the ring holds, against a plain model of the kernel's ring."""
    events = tuple(Event("keys", "tic", when, 0, (i % 50, 0, 0, 0)) for i, when in enumerate(whens))
    run = steering(events=events)
    control, telemetry = np.zeros(1, abi.CONTROL)[0], np.zeros(1, abi.TELEMETRY)[0]
    ring: dict[int, np.void] = {}

    def post(clock: int, row: np.ndarray) -> None:
        n = int(control["posted"][clock])
        control["events"][clock][n % abi.EVENT_RING] = row[0]
        ring[n] = row[0]
        control["posted"][clock] = n + 1

    applied = []
    tic = abi.CLOCKS.index("tic")
    for now in range(0, 460 + 40 * 4, stride):
        run.feed(control, np.zeros((abi.PROMPT_SLOTS, 24), np.int32), post)
        for n in sorted(ring):
            slot = n % abi.EVENT_RING
            if n >= telemetry["events_taken"][tic]:
                telemetry["applied"][tic][slot] = abi.NONE_U64
            assert control["events"][tic][slot]["when"] == ring[n]["when"], "an open event was overwritten"
            if ring[n]["when"] <= now:
                telemetry["applied"][tic][slot] = now
                del ring[n]
        telemetry["events_taken"][tic] = control["posted"][tic]
        applied += run.collect(telemetry["events_taken"], telemetry["applied"])
    assert sorted(id(a.event) for a in applied) == sorted(id(event) for event in events)
    assert all(a.at >= a.event.when for a in applied)
    if len(events) <= abi.EVENT_RING:
        assert all(a.at - a.event.when < stride for a in applied)
