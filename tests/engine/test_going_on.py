"""Runs that do not begin at 0: they go on as one whole run would, also where their counters pass 2^32."""

from dataclasses import replace

import pytest
from engine_runs import TARGETS, a_game, config, engine, finish, same, sweeps, text_tokens, wait_for

from ofa_tui import abi
from ofa_tui.engine.config import Sampling
from ofa_tui.engine.protocol import Event
from ofa_tui.errors import OfaError

FOREVER = 100_000
PAST = 2**32


@pytest.mark.parametrize("stopped", [1, 4, 5, 8])
def test_a_run_in_two_parts_is_the_whole_run_bit_for_bit(kernel, whole, stopped):
    """Losses, sweeps, weights and moments, wherever the first part ends: before, at or after a sweep."""
    one, measured, target = whole
    run = config(steps=9, train_tokens=text_tokens(200), sms=(2, 1, 0), jitter_seed=stopped)
    first = engine(kernel, run, target)
    first.memory["launch"]["schedule"]["steps"] = stopped
    first.start()
    wait_for(first, lambda s: s.steps_done == stopped)
    first.stop()
    second = engine(kernel, replace(run, first_step=stopped, initial=first.train_state()), target)
    snapshots = finish(second)
    losses = [loss for s in snapshots for loss in s.losses]
    assert [loss.step for loss in losses] == list(range(stopped, 9))
    assert second.memory["losses"].tobytes() == one.memory["losses"][stopped:].tobytes()
    assert first.memory["losses"][:stopped].tobytes() == one.memory["losses"][:stopped].tobytes()
    assert same(second.train_state(), one.train_state())
    assert sweeps(snapshots) == {step: sweep for step, sweep in measured.items() if step > stopped}
    assert snapshots[-1].version == snapshots[-1].steps_done == 9


def tasks_of(running) -> dict[str, int]:
    return {name: len(program.tasks) for name, program in running.memory.programs.programs.items()}


def run_to(steps: int, **changes):
    """A rate that is always the same and moments that forget at once: then steps differ in nothing but their number."""
    constant = {"learning_rate": 1e-3, "warmup_steps": 0, "final_lr_fraction": 1.0, "beta1": 0.0, "beta2": 0.0}
    return config(steps=steps, **{**constant, **changes})


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("what", ["step", "ticket", "far beyond"])
def test_training_passes_2_to_the_32(kernel, what, target):
    """Six steps across it, beside serving that crosses too, are six steps from 0 on the same windows, bit for bit."""
    first = {"step": PAST - 3, "far beyond": 5 * PAST + 1}.get(what)
    if first is None:
        tasks = tasks_of(engine(kernel, run_to(6), target))
        first = 2 * (PAST // (2 * tasks["train"] + tasks["sweep"])) - 3
    events = tuple(Event("set_role", "step", first + at, 1, (role,)) for at, role in ((2, abi.SERVE), (4, abi.TRAIN)))
    running = engine(kernel, run_to(first + 6, first_step=first, first_token=PAST - 5, sms=(3, 1, 0), jitter_seed=3,
                                    events=events), target)  # fmt: skip
    tickets = running.memory["queues"]["next"][abi.TRAIN : abi.TRAIN + 1]
    first_ticket = int(tickets[0])
    running.start()
    snapshots = wait_for(running, lambda s: s.state == "finished" and s.tokens_served > PAST + 20)
    running.stop()
    snapshots.append(running.poll())
    low, high = {"step": (first, first + 6), "ticket": (first_ticket, int(tickets[0]))}.get(what, (0, first))
    assert low < PAST < high

    plain = engine(kernel, run_to(6, sweep_every=1), target)
    plain.memory["train_windows"][:] = running.memory["train_windows"]
    from_0 = sweeps(finish(plain))
    assert [loss.step for s in snapshots for loss in s.losses] == list(range(first, first + 6))
    assert running.memory["losses"].tobytes() == plain.memory["losses"].tobytes()
    assert same(running.train_state(), plain.train_state())
    assert [a.at for s in snapshots for a in s.applied] == [first + 2, first + 4]
    measured = sweeps(snapshots)
    assert list(measured) == [step for step in range(first + 1, first + 6) if step % 2 == 0] + [first + 6]
    assert measured == {step: (*from_0[step - first][:2], step == first + 6) for step in measured}

    served = [token for s in snapshots for token in s.served]
    assert [token.index for token in served] == list(range(PAST - 5, PAST - 5 + len(served)))
    assert first <= served[0].version <= served[-1].version == first + 6


@pytest.mark.parametrize(("target", "counter"), [("host", "token"), ("host", "ticket"), ("sm90", "token")])
def test_serving_passes_2_to_the_32(kernel, target, counter):
    """On weights that stand still the likeliest tokens are the same from any token on, and so are stories."""

    def served(first: int, story: int, count: int = 90) -> list[tuple[int, int, int, str]]:
        run = config(steps=FOREVER, learning_rate=0.0, init_std=0.3, sms=(1, 2, 0), sampling=Sampling(0.0, 0, 1.0),
                     prompt="ab", first_token=first, first_story=story, jitter_seed=5)
        running = engine(kernel, run, target)
        tasks = tasks_of(running)["decode"]
        running.start()
        snapshots = wait_for(running, lambda s: s.tokens_served >= first + count)
        running.stop()
        snapshots.append(running.poll())
        if counter == "ticket" and first:
            assert first * tasks < PAST < int(running.memory["queues"]["next"][abi.SERVE])
        tokens = [token for s in snapshots for token in s.served][:count]
        return [(t.index - first, t.token, t.story - story, t.text) for t in tokens]

    first = PAST - 40 if counter == "token" else PAST // tasks_of(engine(kernel, config()))["decode"] - 20
    from_0 = served(0, 0)
    assert served(first, PAST - 2) == from_0
    assert from_0[-1][2] >= 3, "the story number passed 2^32 as well"
    assert len({token for _, token, _, _ in from_0}) > 5


def test_tics_pass_2_to_the_32(kernel):
    """Picture for picture the game of tic 0, with steering at tics on both sides."""
    game = a_game(games=2)

    def play(first: int) -> tuple[dict[int, bytes], list[int]]:
        keys = {5: (50, 0, 640, 0), 24: (0, 0, 0, 0)}
        events = tuple(Event("keys", "tic", first + at, 0, pressed) for at, pressed in keys.items())
        running = engine(kernel, config(steps=FOREVER, sms=(1, 0, 1), doom=game, events=events, first_tic=first,
                                        tics_per_s=100))
        running.start()
        snapshots = wait_for(running, lambda s: bool(s.frames) and s.frames[-1].number >= first + 40)
        running.stop()
        frames = {frame.number - first: frame.pixels.tobytes() for s in snapshots for frame in s.frames}
        assert all(int(frame.status["tic"]) == frame.number for s in snapshots for frame in s.frames)
        return frames, [a.at - first for s in snapshots for a in s.applied]

    pictures, applied = play(0)
    again, applied_again = play(PAST - 20)
    assert applied == applied_again == [5, 24]
    both = pictures.keys() & again.keys()
    assert len(both) > 20 and max(both) >= 40
    assert all(pictures[number] == again[number] for number in both)


@pytest.mark.parametrize("target", TARGETS)
def test_a_stop_beyond_2_to_the_32_ends_every_queue_between_two_iterations(kernel, target):
    first_step, first_token = 3 * PAST - 2, 2 * PAST - 20
    running = engine(kernel, config(steps=first_step + FOREVER, first_step=first_step, first_token=first_token,
                                    sms=(3, 2, 0), jitter_seed=9, sweep_every=0), target)
    running.start()
    wait_for(running, lambda s: s.steps_done >= first_step + 4 and s.tokens_served > 2 * PAST)
    running.stop()
    last = running.poll()
    assert last.state == "stopped"
    assert last.version == last.steps_done == first_step + sum(running.memory["losses"] != 0)
    assert int(running.memory["serve"]["pin"][0]) == abi.NONE_U64
    ends, tasks = running.memory["queues"]["end"], tasks_of(running)
    assert int(ends[abi.TRAIN]) - 1 == last.steps_done * tasks["train"]
    assert int(ends[abi.SERVE]) - 1 == last.tokens_served * tasks["decode"]


def test_what_does_not_fit_the_model_is_refused(kernel):
    running = engine(kernel, config())
    finish(running)
    state = running.train_state()
    other = engine(kernel, config(width=64, heads=2))
    with pytest.raises(OfaError, match=r"another model's: embed should be 320 x 64 and is 320 x 32"):
        engine(kernel, replace(other._config, first_step=3, initial=state))
    lacking = replace(state, v={name: array for name, array in state.v.items() if name != "head"})
    with pytest.raises(OfaError, match=r"head should be 320 x 32 and is none"):
        engine(kernel, config(first_step=3, initial=lacking))


def test_the_moments_of_a_run_that_was_cut_off_are_not_given_out(kernel):
    running = engine(kernel, config(steps=FOREVER))
    running.start()
    running.memory["control"]["abort"] = 1
    running.stop()
    with pytest.raises(OfaError, match="ended inside a step"):
        running.train_state()
