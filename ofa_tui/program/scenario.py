"""A program made ready to be simulated: its joins, durations and names, for so many SMs at such a clock."""

from __future__ import annotations

from dataclasses import dataclass

from ofa_tui import abi
from ofa_tui.errors import OfaError
from ofa_tui.program.accesses import family_of, task_label
from ofa_tui.program.costs import Costs, Durations, moved_bytes, task_durations
from ofa_tui.program.joins import Joins, program_joins, without
from ofa_tui.program.ops import OPS
from ofa_tui.program.simulate import Machine, Schedule, simulate
from ofa_tui.program.types import ProgramSet
from ofa_tui.program.work import Work, program_work


@dataclass(frozen=True)
class Scenario:
    """One element of each list a task that takes part, in queue order."""

    machine: Machine
    joins: Joins
    durations: Durations
    lanes: list[int] | None
    labels: list[str]
    families: list[str]
    """The operation a task belongs to, the same in all layers."""
    works: list[Work]
    moved: list[float]
    """Bytes moved by plain loads and stores."""
    bases: list[str]
    """Where a task's cost comes from, one of costs.BASES."""

    def run(self, iterations: int) -> Schedule:
        return simulate(self.joins, self.durations, self.machine, iterations, self.lanes)


def make_scenario(programs: ProgramSet, name: str, costs: Costs, ghz: float, machine: Machine,
                  products_only: bool = False) -> Scenario:
    """The program `name` on `machine`; `products_only` drops all tasks but matrix products and bridges their waits.

    Raises OfaError if nothing is left of it, or for a task type without a cost.
    """
    program = programs.programs[name]
    works = program_work(programs, program)
    joins = program_joins(programs, program)
    durations = task_durations(costs, program, works, ghz)
    kept = list(range(len(works)))
    if products_only:
        joins, kept = without(joins, lambda task: works[task].product is not None)
        durations = Durations(*([column[task] for task in kept]
                                for column in (durations.body_ns, durations.shared_bytes, durations.ahead_ns)))
    if not kept:
        raise OfaError(f"the program {name} has no {'matrix products' if products_only else 'tasks'} to simulate")
    labels = [task_label(program, task) for task in kept]
    ops = [OPS[opcode].name for opcode in program.tasks["opcode"][kept].tolist()]
    works = [works[task] for task in kept]
    lanes = program.tasks["lane"][kept].tolist() if program.claims == abi.CLAIM_OWNED else None
    return Scenario(machine, joins, durations, lanes, labels, list(map(family_of, labels)), works,
                    [moved_bytes(costs, op, work) for op, work in zip(ops, works, strict=True)],
                    [costs.of(op).basis for op in ops])
