"""What a run may not be is one sentence before it starts, never an overflow in it."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from engine_runs import config, engine
from hypothesis import given
from hypothesis import strategies as st

from ofa_tui import abi
from ofa_tui.engine.config import Sampling
from ofa_tui.engine.host import HostEngine
from ofa_tui.engine.limits import ENDLESS, TICKETS, check_steps, check_tickets
from ofa_tui.engine.schedule import Schedule, make_schedule
from ofa_tui.errors import OfaError
from ofa_tui.program.lowering import compile_programs
from ofa_tui.program.types import TaskProgram


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"steps": 2**53 + 1}, "training with steps 9007199254740993 cannot be"),
        ({"steps": 0}, "0 training steps"),
        ({"steps": 2**45}, r"figures of 35184372088832 steps need .* GB of memory and .* GB are free; use fewer steps"),
        ({"warmup_steps": -1}, "warmup_steps -1 cannot be"),
        ({"sweep_every": -2}, "sweep_every -2 cannot be"),
        ({"sweep_batches": 2**60}, "sweep_batches 1152921504606846976 cannot be"),
        ({"first_step": -1}, "first_step -1 cannot be; use 0 to 9007199254740992"),
        ({"first_step": 6}, "ends with step 5, so that it cannot go on from step 6"),
        ({"first_token": -1}, "first_token -1 cannot be"),
        ({"first_token": 2**64}, "first_token 18446744073709551616 cannot be"),
        ({"first_tic": 2**63}, "first_tic 9223372036854775808 cannot be"),
        ({"first_story": -1}, "first_story -1 cannot be"),
        ({"seed": -1}, "seed -1 cannot be"),
        ({"seed": 2**32}, "seed 4294967296 cannot be"),
        ({"jitter_seed": 2**64}, "jitter seed 18446744073709551616 cannot be"),
        ({"tokens_per_s": -1.0}, "-1 tokens a second cannot be"),
        ({"tokens_per_s": 1e-12}, "1e-12 tokens a second cannot be"),
        ({"tics_per_s": float("nan")}, "nan tics a second cannot be"),
        ({"deadline_s": float("inf")}, "deadline in seconds of inf cannot be"),
        ({"sampling": Sampling(float("nan"))}, "temperature nan cannot be"),
        ({"sampling": Sampling(1.0, 2**31)}, "top-k 2147483648 cannot be"),
    ],
)
def test_a_run_that_cannot_be_is_refused_in_a_sentence(kernel, changes, sentence):
    with pytest.raises(OfaError, match=sentence) as refused:
        engine(kernel, config(**changes))
    assert "\n" not in str(refused.value)


def programs(train: int = 1, sweep: int = 1, decode: int = 1, doom: int = 1) -> SimpleNamespace:
    """Programs with so many tasks each."""
    counts = {"train": train, "sweep": sweep, "decode": decode, "doom": doom}
    return SimpleNamespace(programs={name: TaskProgram(name, np.zeros(n, abi.TASK)) for name, n in counts.items()})


def test_tickets_that_would_not_fit_are_refused_and_the_last_that_fit_are_not():
    run, most = config(), TICKETS // 4096
    check_tickets(programs(train=4096), run, Schedule(0, most - 1, 0, 0, 0))
    with pytest.raises(OfaError, match=r"takes 9.22e\+18 tasks, more than can be counted; use fewer steps"):
        check_tickets(programs(train=4096), run, Schedule(0, most, 0, 0, 0))
    with pytest.raises(OfaError, match="fewer sweeps"):
        check_tickets(programs(sweep=4096), run, Schedule(0, 2**50, 1, 100, 100))
    last = TICKETS // 4096 - ENDLESS - 1
    for name, program in (("token", "decode"), ("tic", "doom")):
        check_tickets(programs(**{program: 4096}), replace(run, **{f"first_{name}": last}), Schedule(0, 1, 0, 0, 0))
        with pytest.raises(OfaError, match=f"begins at {name} {last + 1} .* begin at most at {name} {last}$"):
            check_tickets(
                programs(**{program: 4096}), replace(run, **{f"first_{name}": last + 1}), Schedule(0, 1, 0, 0, 0)
            )


@given(steps=st.integers(1, 200), every=st.integers(0, 30), batches=st.integers(0, 5), held_out=st.integers(0, 7),
       share=st.floats(0, 0.999))  # fmt: skip
def test_the_schedule_counts_as_the_order_of_the_train_role_does(steps, every, batches, held_out, share):
    """Against a walk through the steps: a sweep after every `every`-th of them, none there after the last."""
    first = int(share * steps)
    run = config(steps=steps, sweep_every=every, sweep_batches=batches, first_step=first)
    schedule = make_schedule(run, held_out)
    swept = [step for step in range(1, steps) if every and min(batches, held_out) and step % every == 0]
    before = [step for step in swept if step <= first]
    assert (schedule.intermediate_sweeps, schedule.sweeps_before) == (len(swept), len(before))
    assert schedule.first_batch == len(before) * min(batches, held_out)
    assert schedule.all_batches == len(swept) * min(batches, held_out) + held_out
    assert schedule.own_steps == len(range(first, steps))
    row = schedule.row()[0]
    assert {name: int(row[name]) for name in row.dtype.names} == {
        "first_step": first, "steps": steps, "sweep_every": schedule.sweep_every,
        "sweep_batches": min(batches, held_out), "final_batches": held_out,
        "first_batch": schedule.first_batch,
    }  # fmt: skip


def test_programs_of_another_run_are_refused(kernel):
    run = config()
    for programs, why in (
        (compile_programs(replace(run.model, layers=1), run.train, games=0), "model"),
        (compile_programs(run.model, replace(run.train, batch=2), games=0), "batch"),
        (compile_programs(run.model, run.train, games=1), "games"),
        (compile_programs(run.model, run.train, games=0, streams=2), "streams"),
        (compile_programs(run.model, run.train, games=0, target="sm90"), "bf16"),
    ):
        with pytest.raises(OfaError, match=why):
            HostEngine(programs, run, library=kernel)


def test_steps_are_refused_before_the_run_is_built_only_where_its_memory_would_not_hold_them(kernel):
    """The early check counts no array that the arena has not."""
    runs = [engine(kernel, config(steps=steps)).memory.arena for steps in (2_000, 3_000)]
    grows = sum(runs[1].bytes_of(name) - runs[0].bytes_of(name) for name in ("losses", "step_end_ns", "train_windows"))
    batch = config().train.batch
    check_steps(1_000, batch, grows)
    with pytest.raises(OfaError, match="the figures of 1000 steps need"):
        check_steps(1_000, batch, grows - 1)
