"""The state of a run is copied out while it runs on, and another run goes on from it as if nothing had been."""

import time
from dataclasses import replace

import pytest
from engine_runs import TARGETS, config, engine, finish, same, start_slowly, sweeps, text_tokens, wait_for
from fake_cuda import fake_cubin, fake_gpu

from ofa_tui import abi
from ofa_tui.engine import cuda
from ofa_tui.engine.config import RunState, Sampling, TrainState
from ofa_tui.engine.cuda import CudaEngine
from ofa_tui.engine.protocol import Event
from ofa_tui.errors import OfaError
from ofa_tui.program.lowering import compile_programs

FOREVER = 100_000


def on_cuda(kernel, run, target):
    programs = compile_programs(run.model, run.train, games=run.games, streams=run.streams, target=target,
                                storage="f4")
    return CudaEngine(programs, run, fake_cubin(target), fake_gpu(kernel)[0])


PLACES = {"cpu": engine, "gpu": on_cuda}


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    """A GPU's state comes in many pieces that end inside arrays."""
    monkeypatch.setattr(cuda, "BATCH_BYTES", 1001)


def frozen(state: RunState) -> RunState:
    """A copy of what another capture overwrites."""
    train = TrainState(*({name: array.copy() for name, array in getattr(state.train, part).items()}
                         for part in ("weights", "m", "v")))
    streams = tuple(
        replace(stream, **{which: {name: array.copy() for name, array in getattr(stream, which).items()}
                           for which in ("keys", "values")}) for stream in state.serving.streams)
    return replace(state, train=train, serving=replace(state.serving, streams=streams))


def going_on(run, state: RunState, **changes):
    serving = state.serving
    return replace(run, first_step=state.step, initial=state.train, sweep_due=state.sweep_due, serving=serving,
                   first_token=serving.token, first_story=serving.stories, **changes)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("sms", [(1, 0, 0), (2, 1, 0), (4, 3, 0)])
def test_every_state_that_is_copied_out_goes_on_as_the_whole_run(kernel, whole, sms, place):
    """At two steps, one of them right behind a sweep, of a run that is not stopped: the rest bit for bit."""
    one, measured, target = whole
    run = config(steps=9, train_tokens=text_tokens(200), sms=sms, jitter_seed=sum(sms), copies_state=True)
    running = PLACES[place](kernel, run, target)
    running.start()
    states = []
    for step in (3, 6):
        captured = running.capture(step)
        states.append(frozen(captured.state))
        assert captured.held_s > 0
    wait_for(running, lambda s: s.state == "finished")
    states.append(frozen(running.capture(0).state))
    running.stop()
    assert same(running.train_state(), one.train_state()), "copying changed nothing"
    assert [state.step for state in states] == [3, 6, 9]
    assert same(states[2].train, one.train_state())
    for state in states[:2]:
        assert not state.sweep_due
        second = engine(kernel, going_on(run, state, jitter_seed=1), target)
        snapshots = finish(second)
        assert second.memory["losses"].tobytes() == one.memory["losses"][state.step :].tobytes()
        assert same(second.train_state(), one.train_state())
        assert sweeps(snapshots) == {step: sweep for step, sweep in measured.items() if step > state.step}


@pytest.mark.parametrize("target", TARGETS)
def test_nothing_moves_while_it_is_copied(kernel, monkeypatch, target):
    """A copy that takes as long as many steps and tokens: neither goes on inside its own, both do afterwards."""
    running = engine(kernel, config(steps=FOREVER, sms=(2, 1, 0)), target)
    copy, seen = running.read_parts, []

    def slow_copy(parts):
        telemetry = running.memory["telemetry"][0]
        before = int(telemetry["steps_done"]), int(telemetry["tokens_served"])
        time.sleep(0.05)
        after = int(telemetry["steps_done"]), int(telemetry["tokens_served"])
        seen.append((parts[0].array, before, after))
        return copy(parts)

    running.start()
    wait_for(running, lambda s: s.steps_done >= 2 and s.tokens_served >= 2)
    monkeypatch.setattr(running, "read_parts", slow_copy)
    monkeypatch.setattr(running, "serving_sms", lambda: True)
    state = running.capture(4).state
    wait_for(running, lambda s: s.steps_done > state.step and s.tokens_served > state.serving.token)
    running.stop()
    assert {array.rpartition(".")[2] for array, *_ in seen} >= {"serve", "served", "k_cache"}
    for array, before, after in seen:
        assert before[0] == after[0] == state.step, array
        if array in ("serve", "served") or "cache" in array:
            assert before[1] == after[1] == state.serving.token, array
    assert any(after[1] > before[1] for _, before, after in seen), "serving goes on while training is copied"


@pytest.mark.parametrize("streams", [1, 3])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("target", TARGETS)
def test_serving_goes_on_with_its_stories(kernel, target, place, streams):
    """On weights that stand still, from the midst of a prompt and of stories, tokens are those of the unbroken run."""
    prompt = Event("prompt", "token", 28, target=streams - 1, text="what was it that the")
    run = config(steps=FOREVER, learning_rate=0.0, init_std=0.3, sms=(1, 2, 0), sampling=Sampling(0.9, 30, 0.95),
                 events=(prompt,), copies_state=True, tokens_per_s=0, jitter_seed=4, streams=streams)
    unbroken = engine(kernel, run, target)
    unbroken.start()
    snapshots = wait_for(unbroken, lambda s: s.tokens_served >= 150 * streams)
    unbroken.stop()
    expected = [token for s in [*snapshots, unbroken.poll()] for token in s.served]
    for rate in (30.0, 10.0, 3.0):  # slower where the machine is too busy to look in the midst of the prompt
        running = PLACES[place](kernel, replace(run, tokens_per_s=rate), target)
        before = frozen(running.settled_state())
        running.start()
        states = [before]
        while states[-1].serving.token < 80:
            running.poll()
            states.append(frozen(running.capture(0).state))
        running.stop()
        if reads := [state for state in states if len(state.serving.streams[-1].prompt)]:
            break
    reading = reads[0]
    states = [before, states[len(states) // 3], reading, states[-1], frozen(running.settled_state())]
    for state in states:
        serving = state.serving
        again = engine(kernel, going_on(replace(run, events=(prompt,) * (serving.token <= prompt.when)), state), target)
        again.start()
        snapshots = wait_for(again, lambda s, end=serving.token + 60: s.tokens_served >= end)
        again.stop()
        served = [token for s in [*snapshots, again.poll()] for token in s.served][:60]
        known = expected[serving.token : serving.token + 60]
        assert [(t.index, t.token, t.stream, t.story, t.position, t.text) for t in served][: len(known)] == [
            (t.index, t.token, t.stream, t.story, t.position, t.text) for t in known][: len(served)]
        assert len(known) > 20
        for stream in serving.streams:
            assert len(stream.tokens) == len(stream.versions) == len(stream.keys["layers.0"])
            story = [t.token for t in expected[: serving.token] if t.story == stream.story]
            assert story[len(story) - len(stream.tokens) :] == stream.tokens.tolist()
            assert (stream.versions <= state.step).all()


def test_copies_are_taken_while_paused_and_where_nobody_serves(kernel):
    running = engine(kernel, config(steps=FOREVER, sms=(2, 1, 0)))
    running.start()
    wait_for(running, lambda s: s.steps_done >= 2 and s.tokens_served > 2)
    running.pause(True)  # before a step or a batch of a sweep
    first = running.capture(0).state
    assert running.capture(first.step).state.step == first.step
    running.pause(False)
    running.post(Event("set_role", "step", 0, 0, (abi.SERVE,)))
    snapshots = wait_for(running, lambda s: s.roles.tolist() == [abi.SERVE, abi.TRAIN, abi.SERVE])
    later = running.capture(snapshots[-1].steps_done + 1).state
    assert later.step > first.step and later.serving.token > first.serving.token
    running.stop()
    assert running.capture(0) is None, "the run is over"
    alone = engine(kernel, config(steps=FOREVER, sms=(2, 0, 0)))
    alone.start()
    assert alone.capture(2).state.serving.token == 0
    assert alone.capture(FOREVER, wanted=lambda: False) is None
    alone.stop()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("sms", "moves"), [((2, 0, 0), ((1, abi.SERVE),)), ((2, 1, 0), ((1, abi.SERVE), (2, abi.TRAIN)))]
)
def test_a_copy_is_taken_at_the_step_at_which_sms_move(kernel, sms, moves, target, place):
    """An SM that is to serve waits in a step behind the hold, and will not be there before the copy is taken."""
    events = tuple(Event("set_role", "step", 4, sm, (role,)) for sm, role in moves)
    running = PLACES[place](kernel, config(steps=12, sms=sms, events=events, copies_state=True), target)
    start_slowly(running)
    give_up = time.monotonic() + 60
    captured = running.capture(4, lambda: time.monotonic() < give_up)
    snapshots = wait_for(running, lambda s: s.state == "finished")
    running.stop()
    assert captured is not None and captured.state.step == 4
    assert sum(len(snapshot.applied) for snapshot in snapshots) == len(moves)


def test_a_sweep_that_a_stop_cut_off_is_made_by_the_next_run(kernel):
    """One between two steps, and the one after the last step."""
    run = config(steps=4, sweep_every=2, sweep_batches=60, valid_tokens=text_tokens(5000, 1))
    one = engine(kernel, run)
    measured = sweeps(finish(one))
    due = 0
    for batches in (1, 20, 62):
        running = engine(kernel, run)
        running.start()
        telemetry = running.memory["telemetry"]
        while int(telemetry["sweep_batches_done"][0]) < batches:
            pass
        running.stop()
        state = running.settled_state()
        due += state.sweep_due
        first = sweeps([running.poll()])
        second = sweeps(finish(engine(kernel, going_on(run, state))))
        assert first | second == measured
        assert state.sweep_due == (state.step in measured and state.step not in first)
    assert due >= 2


def test_an_ended_run_that_was_cut_off_has_no_state(kernel):
    running = engine(kernel, config(steps=FOREVER))
    running.start()
    running.memory["control"]["abort"] = 1
    running.stop()
    with pytest.raises(OfaError, match="ended inside a step"):
        running.settled_state()


def test_without_pinned_memory_a_gpus_state_is_read_at_the_end_only(kernel):
    run = config(steps=4, sms=(2, 1, 0))
    running = on_cuda(kernel, run, "sm90")
    running.start()
    with pytest.raises(OfaError, match="--checkpoint-every"):
        running.capture(1)
    wait_for(running, lambda s: s.state == "finished")
    running.stop()
    one = engine(kernel, run, "sm90")
    finish(one)
    assert same(running.settled_state().train, one.train_state())
