"""Training is bitwise the same however many SMs there are, whatever they do beside it and however they are delayed."""

import numpy as np
import pytest
from engine_runs import config, engine, finish, wait_for

from ofa_tui import abi
from ofa_tui.engine.protocol import Event


def moves(*triples: tuple[int, int, int]) -> tuple[Event, ...]:
    return tuple(Event("set_role", "step", when, sm, (role,)) for when, sm, role in triples)


@pytest.fixture(scope="module")
def alone(kernel):
    """Losses and weights of one SM that only trains."""
    running = engine(kernel, config())
    finish(running)
    return running.memory["losses"].tobytes(), running.weights()


@pytest.mark.parametrize(
    "changes",
    [
        {"sms": (1, 1, 0)},
        {"sms": (3, 2, 0)},
        {"sms": (2, 1, 0), "jitter_seed": 7},
        {"sms": (5, 1, 0), "jitter_seed": 11},
        {"sms": (3, 1, 0), "jitter_seed": 3,
         "events": moves((1, 0, abi.SERVE), (2, 3, abi.TRAIN), (3, 1, abi.IDLE), (4, 1, abi.SERVE), (4, 2, abi.SERVE))},
    ],
    ids=["1/1", "3/2", "jitter", "many with jitter", "moving"],
)  # fmt: skip
def test_losses_and_weights_do_not_depend_on_the_schedule(kernel, alone, changes):
    running = engine(kernel, config(**changes))
    snapshots = finish(running)
    assert running.memory["losses"].tobytes() == alone[0]
    for name, expected in alone[1].items():
        assert np.array_equal(running.weights()[name], expected), name
    applied = [event for snapshot in snapshots for event in snapshot.applied]
    assert [(a.event, a.at) for a in applied] == [(event, event.when) for event in changes.get("events", ())]


def test_roles_moved_live_replay_with_the_same_losses(kernel, alone):
    """What a person did is reported with the step at which it took effect; played back it takes effect there."""
    running = engine(kernel, config(sms=(2, 1, 0), jitter_seed=5))
    running.start()
    snapshots = wait_for(running, lambda s: s.steps_done >= 1)
    running.post(Event("set_role", "step", 0, 1, (abi.SERVE,)))
    snapshots += wait_for(running, lambda s: s.state == "finished")
    running.stop()
    applied = [a for s in snapshots for a in s.applied]
    assert len(applied) == 1 and 1 <= applied[0].at <= 6
    assert snapshots[-1].roles.tolist() == [abi.TRAIN, abi.SERVE, abi.SERVE]
    again = engine(kernel, config(sms=(2, 1, 0), events=moves((applied[0].at, 1, abi.SERVE))))
    replayed = [a for s in finish(again) for a in s.applied]
    assert [(a.event.target, a.at) for a in replayed] == [(1, applied[0].at)]
    assert running.memory["losses"].tobytes() == again.memory["losses"].tobytes() == alone[0]


def test_seeds_differ_and_repeat(kernel, alone):
    other = engine(kernel, config(seed=2))
    finish(other)
    assert other.memory["losses"].tobytes() != alone[0]
