"""What a run may not exceed because the kernel's structs or this machine's memory do not hold it."""

from __future__ import annotations

from ofa_tui.engine.config import RunConfig
from ofa_tui.engine.schedule import Schedule
from ofa_tui.errors import OfaError
from ofa_tui.program.types import ProgramSet

BYTES_PER_STEP, BYTES_PER_WINDOW = 4 + 8, 8
"""Of `losses` and `step_end_ns`, and of `train_windows`, in ofa_tui.engine.memory."""
TICKETS = 1 << 63
"""A queue's tickets and all counters stay below; the words have one bit more."""
ENDLESS = 1 << 40
"""Tokens, and tics, that serving and Doom can go on for: a million a second for twelve days."""


def check_programs(programs: ProgramSet, config: RunConfig) -> None:
    """Raises OfaError where programs were compiled for another run: the kernel would leave its buffers."""
    asked = {"model": config.model, "batch": config.train.batch, "games": config.games, "streams": config.streams}
    compiled = {"model": programs.model, "batch": programs.train.batch, "games": programs.games,
                "streams": programs.streams}
    for what, value in asked.items():
        if compiled[what] != value:
            raise OfaError(f"these programs were compiled for {what} {compiled[what]} and the run has {value}; "
                           "compile them for this run")


def check_tickets(programs: ProgramSet, config: RunConfig, schedule: Schedule) -> None:
    """Raises OfaError where a queue's tickets would not fit.

    Every counter stays below its queue's ticket number, since a task adds at most one to one counter.
    """
    tasks = {name: len(program.tasks) for name, program in programs.programs.items()}
    wanted = schedule.steps * tasks["train"] + schedule.all_batches * tasks["sweep"]
    if wanted >= TICKETS:
        raise OfaError(
            f"training to step {schedule.steps} with its sweeps takes {wanted:.3g} tasks, more than can be counted; "
            "use fewer steps or fewer sweeps"
        )
    for what, first, name in (("token", config.first_token, "decode"), ("tic", config.first_tic, "doom")):
        if (first + ENDLESS) * tasks[name] >= TICKETS:
            raise OfaError(
                f"a run that begins at {what} {first} could soon not count its tasks any more; "
                f"begin at most at {what} {TICKETS // tasks[name] - ENDLESS - 1}"
            )


def check_steps(steps: int, batch: int, available: int) -> None:
    """Raises OfaError where the figures of every step alone would not fit, before anything is built for them."""
    of_steps = steps * BYTES_PER_STEP + steps * batch * BYTES_PER_WINDOW
    if of_steps > available:
        raise _too_many_steps(steps, of_steps, available)


def _too_many_steps(steps: int, of_steps: int, available: int) -> OfaError:
    return OfaError(f"the figures of {steps} steps need {of_steps / 1e9:,.1f} GB of memory and "
                    f"{available / 1e9:,.1f} GB are free; use fewer steps with --steps")


def check_memory(config: RunConfig, needed: int, of_steps: int, available: int) -> None:
    """Raises OfaError where the run's memory is not there. `of_steps`: what its figures of every step need of it."""
    if needed <= available:
        return
    if of_steps > needed // 2:
        raise _too_many_steps(config.train.steps - config.first_step, of_steps, available)
    raise OfaError(
        f"preset {config.preset} needs {needed / 1e9:.1f} GB of memory and "
        f"{available / 1e9:.1f} GB are free; choose a smaller preset"
    )
