"""The table against timelines made by hand, whose sums are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ofa_tui import abi
from ofa_tui.engine.protocol import TimelinePart
from ofa_tui.presets import ModelConfig, TrainConfig
from ofa_tui.program.lowering import compile_programs
from ofa_tui.timeline.limits import Limits, limits_of
from ofa_tui.timeline.programs import program_facts
from ofa_tui.timeline.table import make_table, role_tables, sm_table, table_cells
from ofa_tui.timeline.timeline import Timeline, make_timeline

MODEL = ModelConfig(layers=1, width=64, heads=2, feed_forward=128, context=32, vocab=320)
PROGRAMS = compile_programs(MODEL, TrainConfig(batch=2, steps=4, learning_rate=1e-3, warmup_steps=1))
FACTS = program_facts(PROGRAMS)
TRAIN, DECODE = (abi.PROGRAMS.index(name) for name in ("train", "decode"))
LABELS = FACTS.programs[TRAIN].labels
PUBLISH = len(LABELS) - 1
FC1, NORM = (LABELS.index(f"layers.0.{name} rows 0-15 columns 0-63") for name in ("fc1", "norm1"))


def timeline(rows: list[tuple[int, int, int, int, int, int, int]], n_sms: int = 2) -> Timeline:
    """(SM, task, iteration, waited, begin, end, held) of the training program."""
    entries = np.zeros(len(rows), abi.TIMELINE_ENTRY)
    for entry, (_, task, iteration, waited, begin, end, held) in zip(entries, rows, strict=True):
        entry["begin_ns"], entry["body_ns"], entry["held_ns"], entry["waited_ns"] = begin, end - begin, held, waited
        entry["iteration"], entry["task"] = iteration, TRAIN * abi.TIMELINE_TOGETHER * abi.TIMELINE_TASKS + task
    sms = np.array([row[0] for row in rows], np.uint16)
    return make_timeline([TimelinePart(sms, entries, np.zeros(n_sms, np.int64))], n_sms)


STEP = [
    # SM 0: a step's end at 1000, then a product from 1100 to 1400, a wait of 50, a norm, and the step's end
    (0, PUBLISH, 0, 0, 990, 1000, 0), (0, FC1, 1, 0, 1100, 1400, 0), (0, NORM, 1, 50, 1460, 1500, 0),
    (0, PUBLISH, 1, 0, 1510, 2000, 90),
    # SM 1: in the midst of a product when the step begins, and of a wait when it ends
    (1, FC1, 1, 0, 900, 1200, 0), (1, NORM, 1, 0, 1200, 1300, 0), (1, FC1, 2, 600, 2100, 2400, 0),
]  # fmt: skip


def test_a_step_made_by_hand_adds_up():
    (table,) = role_tables(timeline(STEP), FACTS)
    assert (table.role, table.sms, table.begin_ns, table.end_ns, table.iterations) == (abi.TRAIN, 2, 1000, 2000, 1)
    rows = {row.name: row for row in table.rows}
    assert {name: row.sm_ns for name, row in rows.items()} == pytest.approx(
        {"fc1": 300 + 200, "norm1": 40 + 100, "publish": 400})
    assert {name: row.tasks for name, row in rows.items()} == pytest.approx(
        {"fc1": 1 + 2 / 3, "norm1": 2, "publish": 1})
    assert table.waiting_ns == 50 + 90 + 500
    assert table.between_ns == (100 + 10 + 10) + 200
    assert sum(row.sm_ns for row in table.rows) + table.waiting_ns + table.between_ns == table.total_ns == 2000
    one = sm_table(timeline(STEP), FACTS, table, 1)
    assert one.total_ns == 1000 and one.waiting_ns == 500 and one.between_ns == 200


def test_flops_and_bytes_are_those_of_operands_and_tiles():
    (table,) = role_tables(timeline(STEP), FACTS)
    rows = {row.name: row for row in table.rows}
    assert rows["fc1"].flops == pytest.approx((1 + 2 / 3) * 2 * 16 * 64 * 64)
    # x, w and both outputs of the tile; x, the gain, y and the reciprocal roots of a norm
    assert rows["fc1"].moved == pytest.approx((1 + 2 / 3) * 4 * (16 * 64 + 64 * 64 + 2 * 16 * 64))
    assert rows["norm1"].moved == pytest.approx(2 * 4 * (16 * 64 + 64 + 16 * 64 + 16))
    cells = {row[0]: row for row in table_cells(table, Limits(1e12, 1e11, 1.5e11, "made up"))}
    rate = rows["fc1"].flops / 500e-9 * 2
    assert cells["fc1"][5:] == (f"{rate / 1e9:,.1f} GFLOP/s", f"{rate / 2e12:.0%}")
    moved = rows["norm1"].moved / 140e-9 * 2
    assert cells["norm1"][5:] == (f"{moved / 1e9:,.1f} GB/s", f"{moved / 1.5e11:.0%}")
    assert cells["sum"][1:3] == ("0.002", "100.0%")


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60), st.integers(0, 80), st.floats(0, 1)), min_size=1,
                max_size=30), st.integers(0, 3000), st.integers(1, 3000))
def test_every_window_of_every_timeline_adds_up(tasks, begin, length):
    rows, now = [], {0: 0, 1: 0}
    for number, (gap, waited, body, held) in enumerate(tasks):
        sm = number % 2
        start = now[sm] + gap + waited
        rows.append((sm, FC1 if number % 3 else NORM, 0, waited, start, start + body, int(held * body)))
        now[sm] = start + body
    table = make_table(timeline(rows), FACTS, abi.TRAIN, np.arange(2), begin, begin + length, 1)
    parts = [row.sm_ns for row in table.rows] + [table.waiting_ns, table.between_ns]
    assert min(parts) >= -1e-6
    assert sum(parts) == pytest.approx(2 * length)


def test_tasks_done_together_count_as_so_many():
    made = timeline(STEP)
    three = replace(made, together=np.full(len(made), 3))
    (one,), (all_three,) = role_tables(made, FACTS), role_tables(three, FACTS)
    assert [row.flops * 3 for row in one.rows] == pytest.approx([row.flops for row in all_three.rows])
    assert [row.sm_ns for row in one.rows] == [row.sm_ns for row in all_three.rows]


def test_a_decoded_token_reads_every_weight_once():
    model = ModelConfig(layers=2, width=128, heads=2, feed_forward=512, context=128, vocab=512)
    programs = compile_programs(model, TrainConfig(batch=2, steps=4, learning_rate=1e-3, warmup_steps=1), target="sm90")
    weights = 2 * (model.parameter_count() - model.vocab * model.width)  # bf16, all but the token table
    moved = float(program_facts(programs).programs[DECODE].moved.sum())
    assert weights < moved < 1.5 * weights  # and the cache, gains and messages


def test_the_limits_of_gpus_say_where_they_come_from():
    found = limits_of("NVIDIA H200")
    assert found and "data sheet" in found.source
    assert found.flop_s_of_sm * 132 == pytest.approx(989e12) and found.bytes_s(132) < 4.8e12
    assert limits_of("a GPU of next year") is None
