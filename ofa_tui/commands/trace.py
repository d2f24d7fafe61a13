"""`ofa-tui trace`: a run whose every task is timed, as a trace for Chrome or Perfetto and as a table."""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ofa_tui import abi, settings
from ofa_tui.assemble import assemble, check
from ofa_tui.engine.cuda_compiler import VARIANTS
from ofa_tui.engine.protocol import TimelinePart
from ofa_tui.engine.resident import ResidentEngine
from ofa_tui.errors import AbortedError, OfaError
from ofa_tui.presets import ModelConfig, TrainConfig
from ofa_tui.program.lowering import compile_programs
from ofa_tui.program.types import ProgramSet
from ofa_tui.progress import Progress
from ofa_tui.record.files import check_place
from ofa_tui.record.reader import RecordedRun
from ofa_tui.record.timeline_log import read_timeline
from ofa_tui.signals import signals_raise
from ofa_tui.timeline.chrome import write_trace
from ofa_tui.timeline.limits import Limits, limits_of, machine_limits
from ofa_tui.timeline.programs import Facts, program_facts
from ofa_tui.timeline.table import last_tasks, role_tables, table_lines
from ofa_tui.timeline.timeline import Timeline, make_timeline

STEPS, LAST = 30, 20
POLL_S = 0.02


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("record", type=settings.named_path, nargs="?", metavar="RECORD",
                        help="the folder of a run that was recorded with --timeline (default: make a run)")
    parser.add_argument("-o", "--out", type=settings.named_path, default=Path("trace.json"), metavar="FILE",
                        help="where the trace goes (default: trace.json)")
    parser.add_argument("--last", type=int, default=LAST, metavar="N",
                        help=f"steps that are shown: the last N whole ones (default: {LAST}); a run has {STEPS}, or "
                             "what --steps says")
    settings.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    if not 1 <= args.last < 2**31:
        raise OfaError(f"--last {args.last} cannot be; show at least 1 step")
    check_place(args.out, "the trace")
    timeline, programs, limits = _recorded(args.record) if args.record is not None else _run(args)
    facts = program_facts(programs)
    timeline = _last_steps(timeline, facts, args.last)
    slices = write_trace(args.out, timeline, facts)
    tables = list(role_tables(timeline, facts))
    for table in tables:
        print("\n".join(table_lines(table, limits)))
        print()
    if not tables:
        print("no whole step, token or tic lies in this timeline")
    print(f"limits: {limits.source if limits else 'those of this machine are not in assets/limits.toml'}")
    if timeline.lost:
        print(f"{timeline.lost:,} tasks are missing, because they were overwritten before they were read: their time "
              "counts as between tasks; keep more with --timeline")
    print(f"{slices:,} slices in {args.out}; open it at ui.perfetto.dev or chrome://tracing")
    return 0


def _last_steps(timeline: Timeline, facts: Facts, last: int) -> Timeline:
    """What ends after the step before the last ones."""
    ends = last_tasks(timeline, facts, abi.TRAIN).end
    if len(ends) <= last:
        return timeline
    return timeline.part(timeline.end >= ends[-1 - last])


def _run(args: argparse.Namespace) -> tuple[Timeline, ProgramSet, Limits | None]:
    if args.resume is not None:
        raise OfaError("trace makes a run of its own; to time one that goes on, use --resume with --record and "
                       "--timeline")
    args.steps = max(STEPS, args.last + 1) if args.steps is None else args.steps
    args.timeline = args.timeline or settings.TIMELINE_ENTRIES
    chosen = settings.from_arguments(args)
    if chosen.writes_checkpoints:
        raise OfaError("trace writes no checkpoints; leave out the options that ask for them")
    check(chosen, doom_required=chosen.wad is not None)
    engine = assemble(chosen, doom_required=chosen.wad is not None).engine
    with signals_raise(), Progress("running", total=chosen.steps) as progress:
        parts = list(_follow(engine, chosen.steps, args.last, progress))
    return make_timeline(parts, engine.info.n_sms), engine.programs, machine_limits(engine.info)


def _follow(engine: ResidentEngine, steps: int, last: int, progress: Progress) -> Iterator[TimelinePart]:
    """The parts in which the last steps are, of a run that is stopped after its last step."""
    held: list[TimelinePart] = []
    engine.start()
    try:
        while True:
            snapshot = engine.poll()
            if snapshot.state == "aborted":
                raise AbortedError(snapshot.message)
            held.append(snapshot.timeline)
            if snapshot.steps_done < steps - last:
                del held[:-2]  # entries come up to a batch late
            if snapshot.steps_done >= steps:
                break
            progress.update(snapshot.steps_done, f"step {snapshot.steps_done}/{steps}")
            time.sleep(POLL_S)
    finally:
        engine.stop()
    yield from held
    yield engine.poll().timeline


def _recorded(folder: Path) -> tuple[Timeline, ProgramSet, Limits | None]:
    record = RecordedRun(folder)
    part = read_timeline(folder)
    if part is None:
        raise OfaError(f"{folder} holds no timeline; record one with --timeline")
    try:
        variant = record.run.get("gpu", {}).get("kernel")
        target = VARIANTS[variant].target if variant else "host"
        model, train = record.run["model"], record.run["train"]
        programs = compile_programs(_made(ModelConfig, model), _made(TrainConfig, train), games=record.info.games,
                                    target=target)
    except (KeyError, TypeError, AttributeError) as error:
        raise OfaError(f"{folder / 'run.json'} does not say which programs the run had ({error}); record it again"
                       ) from None
    timeline = make_timeline([part], max(record.info.n_sms, int(part.sms.max(initial=0)) + 1))
    _check_tasks(folder, timeline, programs)
    return timeline, programs, limits_of(record.info.device) if record.info.backend == "cuda" else None


def _made(kind: type, values: dict[str, Any]) -> Any:
    names = {field.name for field in dataclasses.fields(kind)}
    return kind(**{name: value for name, value in values.items() if name in names})


def _check_tasks(folder: Path, timeline: Timeline, programs: ProgramSet) -> None:
    counts = np.array([len(program.tasks) for program in programs.programs.values()])
    if (timeline.program >= len(counts)).any() or (timeline.task >= counts[timeline.program]).any():
        raise OfaError(f"the timeline in {folder} is not of the programs that its run.json tells of; record it again")
