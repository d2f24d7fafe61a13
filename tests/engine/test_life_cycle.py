"""Start, pause, stop, abort, and what is seen of them."""

import os
import signal
import subprocess
import time

import numpy as np
import pytest
from engine_runs import TARGETS, config, engine, finish, pause, wait_for

from ofa_tui import abi
from ofa_tui.engine.host import HostEngine
from ofa_tui.engine.protocol import Event
from ofa_tui.errors import OfaError
from ofa_tui.program.lowering import compile_programs

FOREVER = 100_000


@pytest.mark.parametrize(
    ("steps", "every", "batches", "expected"),
    [
        (1, 5, 2, [(1, True)]),
        (6, 2, 1, [(2, False), (4, False), (6, True)]),
        (7, 3, 2, [(3, False), (6, False), (7, True)]),
        (4, 1, 99, [(1, False), (2, False), (3, False), (4, True)]),
        (3, 0, 4, [(3, True)]),
    ],
)
def test_sweeps_come_where_the_schedule_says(kernel, steps, every, batches, expected):
    running = engine(kernel, config(steps=steps, sweep_every=every, sweep_batches=batches, sms=(2, 0, 0)))
    snapshots = finish(running)
    losses = [loss for s in snapshots for loss in s.losses]
    sweeps = [sweep for s in snapshots for sweep in s.sweeps]
    assert [loss.step for loss in losses] == list(range(steps))
    assert all(np.isfinite(loss.loss) for loss in losses)
    assert [(sweep.step, sweep.complete) for sweep in sweeps] == expected
    ends = [loss.seconds for loss in losses]
    assert ends == sorted(ends) and ends[0] > 0


@pytest.mark.parametrize("target", TARGETS)
def test_pause_holds_training_and_serving_until_it_ends(kernel, target):
    """No deadline passes while paused, however short it is."""
    running = engine(kernel, config(steps=FOREVER, sms=(2, 1, 0), deadline_s=0.15), target)
    running.start()
    wait_for(running, lambda s: s.steps_done >= 2 and s.tokens_served >= 2)
    pause(running)
    held = running.poll()
    time.sleep(0.4)
    later = running.poll()
    assert (held.steps_done, held.tokens_served) == (later.steps_done, later.tokens_served)
    assert later.state == "paused"
    running.pause(False)
    wait_for(running, lambda s: s.steps_done > later.steps_done and s.tokens_served > later.tokens_served)
    running.stop()
    running.stop()
    assert running.poll().state == "stopped"


@pytest.mark.parametrize("paused", [True, False])
@pytest.mark.parametrize("target", TARGETS)
def test_no_deadline_passes_while_the_process_is_stopped(kernel, target, paused):
    """Ctrl-Z holds the run and then stops the process; SIGSTOP stops it as it is."""
    running = engine(kernel, config(steps=FOREVER, sms=(2, 1, 0), deadline_s=1.0), target)
    running.start()
    wait_for(running, lambda s: s.steps_done >= 2 and s.tokens_served >= 2)
    if paused:
        pause(running)
    waker = subprocess.Popen(["sh", "-c", f"sleep 1.7; kill -CONT {os.getpid()}"])
    os.kill(os.getpid(), signal.SIGSTOP)
    waker.wait()
    before = running.poll()
    time.sleep(0.2)  # for those who wait to look at the time
    assert running.poll().state == ("paused" if paused else "running"), running.poll().message
    running.pause(False)
    wait_for(running, lambda s: s.steps_done > before.steps_done + 2 and s.tokens_served > before.tokens_served)
    running.stop()


@pytest.mark.parametrize("target", TARGETS)
def test_stop_leaves_one_complete_version(kernel, target):
    """All blocks agree on the last step: the weights are those of a run that was to end there."""
    running = engine(kernel, config(steps=FOREVER, sms=(3, 2, 0), jitter_seed=9, sweep_every=0), target)
    running.start()
    wait_for(running, lambda s: s.steps_done >= 3)
    running.stop()
    last = running.poll()
    assert last.state == "stopped" and last.version == last.steps_done
    assert int(running.memory["serve"]["pin"][0]) == abi.NONE_U64
    assert last.steps_done == sum(running.memory["losses"] != 0)
    short = engine(kernel, config(steps=FOREVER, sms=(1, 0, 0), sweep_every=0), target)
    short.memory["launch"]["schedule"]["steps"] = last.steps_done
    finish_steps = last.steps_done
    short.start()
    wait_for(short, lambda s: s.steps_done == finish_steps)
    short.stop()
    for name, expected in running.weights().items():
        assert np.array_equal(short.weights()[name], expected), name


@pytest.mark.parametrize("target", TARGETS)
def test_serving_and_role_moves_go_on_after_training(kernel, target):
    running = engine(kernel, config(steps=2, sms=(2, 1, 0)), target)
    running.start()
    end = wait_for(running, lambda s: s.state == "finished")[-1]
    running.post(Event("set_role", "step", 0, 0, (abi.SERVE,)))
    snapshots = wait_for(running, lambda s: s.roles[0] == abi.SERVE and s.tokens_served > end.tokens_served + 20)
    running.stop()
    snapshots.append(running.poll())
    assert [a.at for s in snapshots for a in s.applied] == [2]
    served = [token for s in snapshots for token in s.served]
    assert all(token.version == 2 for token in served[-10:])


@pytest.mark.parametrize("target", TARGETS)
def test_a_task_that_never_signals_is_reported(kernel, target):
    """The deadline ends the run by itself and the report names the waiting task, the counter and every SM."""
    run = config(sms=(2, 1, 0), deadline_s=0.3)
    programs = compile_programs(run.model, run.train, games=0, target=target, storage="f4")
    train = programs.programs["train"]
    broken = next(i for i, label in enumerate(train.labels) if "layers.1.qkv" in label)
    counter = programs.counters[train.tasks[broken]["signal"]]
    train.tasks["signal"][broken] = abi.NONE_U32
    running = HostEngine(programs, run, library=kernel)
    running.start()
    last = wait_for(running, lambda s: s.state == "aborted")[-1]
    assert counter in last.message and "deadline" in last.message
    assert sum(line.startswith("SM ") for line in last.message.splitlines()) == 3
    running.stop()
    assert not running.running and last.steps_done == 0


def test_an_unknown_opcode_is_reported(kernel):
    run = config(sms=(1, 0, 0))
    programs = compile_programs(run.model, run.train, games=0)
    programs.programs["train"].tasks["opcode"][3] = 999
    running = HostEngine(programs, run, library=kernel)
    running.start()
    assert "opcode 999" in wait_for(running, lambda s: s.state == "aborted")[-1].message


@pytest.mark.parametrize("target", TARGETS)
def test_blocks_that_wait_sleep(kernel, target):
    """A paused run leaves the processor to others."""
    running = engine(kernel, config(steps=FOREVER, sms=(2, 2, 0)), target)
    running.start()
    wait_for(running, lambda s: s.steps_done >= 1)
    pause(running)
    before = time.process_time()
    time.sleep(0.5)
    used = time.process_time() - before
    running.stop()
    assert used < 0.15


def test_what_cannot_be_is_refused(kernel):
    with pytest.raises(OfaError, match="at least one SM"):
        engine(kernel, config(sms=(0, 1, 0)))
    with pytest.raises(OfaError, match="one sequence of 24"):
        engine(kernel, config(train_tokens=np.zeros(24, np.int32)))
    with pytest.raises(OfaError, match="outside"):
        engine(kernel, config(train_tokens=np.full(500, 320, np.int32)))
    running = engine(kernel, config())
    running.start()
    with pytest.raises(OfaError, match="started before"):
        running.start()
    running.stop()
