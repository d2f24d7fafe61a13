"""The order of the train role in numbers without a limit: what cuda/sched/schedule.h computes from abi.SCHEDULE."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from ofa_tui import abi
from ofa_tui.engine.config import RunConfig


@dataclass(frozen=True)
class Schedule:
    """The fields of abi.SCHEDULE."""

    first_step: int
    steps: int
    sweep_every: int
    sweep_batches: int
    final_batches: int
    first_batch: int = 0

    @property
    def own_steps(self) -> int:
        """Steps that this run makes."""
        return self.steps - self.first_step

    @property
    def intermediate_sweeps(self) -> int:
        """Sweeps between two steps of the whole training; the one after the last step is not among them."""
        return (self.steps - 1) // self.sweep_every if self.sweep_every else 0

    @property
    def sweeps_before(self) -> int:
        """Those that this run does not make."""
        return self.first_batch // self.sweep_batches if self.sweep_batches else 0

    def batches_until(self, step: int) -> int:
        """Iterations of the sweep program that come before `step`."""
        sweeps = step // self.sweep_every if self.sweep_every else 0
        return min(sweeps, self.intermediate_sweeps) * self.sweep_batches

    @property
    def all_batches(self) -> int:
        """Iterations of the sweep program in the whole training."""
        return self.intermediate_sweeps * self.sweep_batches + self.final_batches

    def row(self) -> np.ndarray:
        """abi.SCHEDULE [1]"""
        return np.array([dataclasses.astuple(self)], abi.SCHEDULE)


def make_schedule(config: RunConfig, held_out_batches: int) -> Schedule:
    """The schedule of a run. Without held-out text there are no sweeps."""
    train = config.train
    between = min(train.sweep_batches, held_out_batches)
    schedule = Schedule(
        first_step=config.first_step,
        steps=train.steps,
        sweep_every=train.sweep_every if between else 0,
        sweep_batches=between,
        final_batches=held_out_batches,
    )
    done = schedule.batches_until(config.first_step)
    due = config.sweep_due and 0 < config.first_step < train.steps and done != schedule.batches_until(
        config.first_step - 1)
    return dataclasses.replace(schedule, first_batch=done - between if due else done)
