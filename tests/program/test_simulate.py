"""Simulated schedules: known makespans, the kernel's rules as equations, bounds, predictions against measurements."""

import dataclasses
import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ofa_tui import abi
from ofa_tui.cli import main
from ofa_tui.errors import OfaError
from ofa_tui.presets import ModelConfig, TrainConfig, preset
from ofa_tui.program import lowering
from ofa_tui.program.analysis import (
    longest_chain,
    middle_window,
    schedule_path,
    sm_usage,
    solo_ns,
    work_bound,
)
from ofa_tui.program.costs import DEFAULT_FILES, Durations, load_costs, spread_out
from ofa_tui.program.draw import write_trace
from ofa_tui.program.graph import model_graph
from ofa_tui.program.joins import Joins, program_joins, without
from ofa_tui.program.lowering import compile_programs
from ofa_tui.program.scenario import make_scenario
from ofa_tui.program.simulate import LONG_AGO, Machine, machine_of, simulate

MODEL = ModelConfig(layers=2, width=128, heads=2, feed_forward=192, context=48, vocab=320)
TRAIN = TrainConfig(batch=6, steps=10, learning_rate=1e-3, warmup_steps=2)
"""Heads of two units, and sequences that begin inside a row block."""


def joins_of(waits, feeds):
    """Task i feeds join feeds[i], or none; it waits for the joins waits[i], a number or (number, lag)."""
    pairs = [tuple(wait if isinstance(wait, tuple) else (wait, 0) for wait in task) for task in waits]
    producers = [feeds.count(join) for join in range(1 + max((f for f in feeds if f is not None), default=-1))]
    return Joins(pairs, [() if f is None else (f,) for f in feeds], producers, [False] * len(producers))


def lasting(*body_ns, ahead_ns=0.0, shared_bytes=None):
    n = len(body_ns)
    return Durations([float(ns) for ns in body_ns], shared_bytes or [0.0] * n, [min(ahead_ns, ns) for ns in body_ns])


# --- known makespans ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("blocks", [1, 2, 9])
def test_a_chain_pays_a_hand_off_a_link(blocks):
    joins = joins_of([[], [0], [1]], [0, 1, None])
    machine = Machine(blocks, signal_ns=5, start_ns=3, claim_ns=2)
    schedule = simulate(joins, lasting(10, 20, 30), machine, 1)
    assert schedule.makespan_ns == (2 + 3 + 10) + (5 + 3 + 20) + (5 + 3 + 30)


def test_a_fan_out_fills_the_blocks_there_are():
    joins = joins_of([[], [0], [0], [0], [0], [0]], [0] + [None] * 5)
    for blocks, rounds in ((1, 5), (2, 3), (3, 2), (5, 1)):
        assert simulate(joins, lasting(10, *[7] * 5), Machine(blocks), 1).makespan_ns == 10 + 7 * rounds


def test_a_join_waits_for_the_last():
    joins = joins_of([[], [], [], [0]], [0, 0, 0, None])
    schedule = simulate(joins, lasting(10, 40, 20, 5), Machine(3, signal_ns=1), 1)
    assert schedule.start[3] == 41 and schedule.cause[3] == 1


def test_two_lanes_are_two_queues():
    joins = joins_of([[], [], [0], [1]], [0, 1, None, None])
    schedule = simulate(joins, lasting(10, 30, 10, 10), Machine(2), 1, lanes=[0, 1, 1, 0])
    assert schedule.block.tolist() == [0, 1, 1, 0]
    assert schedule.start.tolist() == [0, 0, 30, 30]


def test_an_iteration_waits_for_the_one_before():
    joins = joins_of([[(1, 1)], [0]], [0, 1])
    schedule = simulate(joins, lasting(10, 20), Machine(4, signal_ns=1), 3)
    assert [schedule.iteration_end(i) for i in range(3)] == [31, 63, 95]


def test_look_ahead_hides_the_claim():
    joins = joins_of([[]] * 4, [None] * 4)
    durations = lasting(10, 10, 10, 10, ahead_ns=6)
    assert simulate(joins, durations, Machine(1, 0, claim_ns=4), 1).makespan_ns == 4 * (4 + 10)
    assert simulate(joins, durations, Machine(1, 1, claim_ns=4), 1).makespan_ns == 4 + 4 * 10


def test_a_claim_too_far_ahead_holds_a_task_that_another_block_could_run():
    """Task 3, which task 4 waits for, is claimed behind the long task 2 although the other block is idle."""
    joins = joins_of([[], [], [], [], [0]], [None, None, None, 0, None])
    durations = lasting(10, 12, 100, 10, 10)
    assert simulate(joins, durations, Machine(2, 1), 1).makespan_ns == 110
    late = simulate(joins, durations, Machine(2, 3), 1)
    assert late.block.tolist() == [0, 1, 0, 0, 1] and late.makespan_ns == 130


def test_shared_memory_is_divided_evenly():
    joins = joins_of([[]] * 3, [None] * 3)
    durations = lasting(0, 0, 5, shared_bytes=[100.0, 300.0, 0.0])
    schedule = simulate(joins, durations, Machine(3, memory_rates=(10.0, 6.0)), 1)
    assert schedule.end == pytest.approx([100 / 6, 100 / 6 + 200 / 10, 5])


def test_a_program_that_stops_is_reported():
    with pytest.raises(OfaError, match="task 0 of iteration 0"):
        simulate(joins_of([[0], []], [None, 0]), lasting(1, 1), Machine(1), 1)


# --- any program: the rules as equations -------------------------------------------------------------------------


@st.composite
def any_program(draw):
    """Joins in queue order with durations, a machine and a number of iterations."""
    n = draw(st.integers(1, 25))
    n_joins = draw(st.integers(1, 6))
    feeds = [draw(st.integers(0, n_joins - 1)) for _ in range(n)]
    last = {join: max((task for task in range(n) if feeds[task] == join), default=n) for join in range(n_joins)}
    waits = []
    for task in range(n):
        complete = [join for join in range(n_joins) if last[join] < task]
        waits.append(draw(st.lists(st.sampled_from(complete), unique=True, max_size=3)) if complete else [])
        if draw(st.integers(0, 4)) == 0:
            waits[-1].append((feeds[draw(st.integers(0, n - 1))], 1))
    ns = st.integers(0, 60)
    body = [draw(ns) for _ in range(n)]
    moved = [float(draw(st.sampled_from([0, 0, 0, 40]))) for _ in range(n)]
    durations = Durations([float(b) for b in body], moved, [float(min(draw(ns), b)) for b in body])
    latencies = [float(draw(st.integers(0, 9))) for _ in range(4)]
    machine = Machine(draw(st.integers(1, 6)), draw(st.integers(0, 3)), *latencies, memory_rates=(4.0, 3.0, 2.0))
    return joins_of(waits, feeds), durations, machine, draw(st.integers(1, 3))


@settings(max_examples=200, deadline=None)
@given(any_program(), st.booleans())
def test_every_start_and_claim_follows_the_rules(program, owned):
    joins, durations, machine, iterations = program
    lanes = [3 * task % 7 for task in range(len(joins.waits))] if owned else None
    schedule = simulate(joins, durations, machine, iterations, lanes)
    tasks = len(joins.waits)
    start_ns, claim_ns = (0.0, 0.0) if owned else (machine.start_ns, machine.claim_ns)
    ends = {}  # (join, iteration): when the last of its tasks was done
    for ticket in range(tasks * iterations):
        for join in joins.feeds[ticket % tasks]:
            place = (join, ticket // tasks)
            ends[place] = max(ends.get(place, 0.0), schedule.end[ticket])
    for ticket in range(tasks * iterations):
        iteration, task = divmod(ticket, tasks)
        ready = max((ends[join, iteration - lag] + machine.signal_ns
                     for join, lag in joins.waits[task] if lag <= iteration), default=LONG_AGO)
        assert schedule.ready[ticket] == ready
        assert schedule.start[ticket] == max(schedule.free[ticket], max(schedule.claimed[ticket], ready) + start_ns)
        took, body = schedule.end[ticket] - schedule.start[ticket], durations.body_ns[task]
        assert took == pytest.approx(body) or (durations.shared_bytes[task] and took >= body + 10 - 1e-9)
    for block in range(machine.blocks):
        own = sorted(np.flatnonzero(schedule.block == block), key=lambda ticket: schedule.start[ticket])
        assert own == sorted(own), "first claimed, first run"
        for before, ticket in itertools.pairwise(own):
            assert schedule.before[ticket] == before and schedule.free[ticket] == schedule.end[before]
        depth = machine.look_ahead
        for place, ticket in enumerate(own[max(depth, 1):], max(depth, 1)):
            holder = own[place - max(depth, 1)]
            tail = durations.ahead_ns[holder % tasks] if depth else 0.0
            assert schedule.claimed[ticket] == pytest.approx(schedule.end[holder] - tail + claim_ns)
        if owned:
            assert {lanes[ticket % tasks] % machine.blocks for ticket in own} <= {block}
    if not owned:
        assert (np.diff(schedule.claimed) >= 0).all(), "tickets are handed out in queue order"


@settings(max_examples=200, deadline=None)
@given(any_program())
def test_bounds_hold_and_all_time_is_accounted_for(program):
    joins, durations, machine, iterations = program
    schedule = simulate(joins, durations, machine, iterations)
    again = simulate(joins, durations, machine, iterations)
    assert all(np.array_equal(getattr(schedule, f.name), getattr(again, f.name)) for f in dataclasses.fields(schedule))
    makespan = schedule.makespan_ns
    assert makespan >= iterations * work_bound(durations, machine) - 1e-6
    chain, _ = longest_chain(joins, durations, machine, 1, machine.start_ns, str)
    assert schedule.iteration_end(0) >= chain - 1e-6
    window = middle_window(schedule)
    usage = sm_usage(schedule, window)
    used = usage.busy + usage.waiting + usage.claiming
    assert (used <= window.length + 1e-6).all()
    everything = sm_usage(schedule, dataclasses.replace(window, begin=0.0, end=makespan))
    assert everything.busy.sum() == pytest.approx((schedule.end - schedule.start).sum())
    assert sum(schedule_path(schedule, window, str).values()) == pytest.approx(window.length)


@settings(max_examples=100, deadline=None)
@given(any_program())
def test_without_waits_one_block_works_without_a_pause(program):
    joins, durations, machine, iterations = program
    free = dataclasses.replace(joins, waits=[()] * len(joins.waits))
    alone = dataclasses.replace(machine, blocks=1, look_ahead=1, claim_ns=0.0, start_ns=0.0)
    assert simulate(free, durations, alone, iterations).makespan_ns == pytest.approx(
        iterations * sum(solo_ns(durations, alone)))


# --- compiled programs -------------------------------------------------------------------------------------------


def scenario_of(target, name, sms, costs="", **options):
    programs = compile_programs(MODEL, TRAIN, games=2, target=target)
    table = load_costs(costs or DEFAULT_FILES[target])
    return programs, make_scenario(programs, name, table, 1.5, machine_of(table, sms, 1), **options)


def test_spread_durations_stay_within_the_spread_and_repeat():
    durations = lasting(*range(100, 600), ahead_ns=50)
    spread = spread_out(durations, 0.1)
    assert spread == spread_out(durations, 0.1) and spread != durations
    ratios = np.array(spread.body_ns) / np.array(durations.body_ns)
    assert 0.9 <= ratios.min() < 0.95 and 1.05 < ratios.max() <= 1.1
    assert np.array(spread.ahead_ns) / 50 == pytest.approx(ratios)


@pytest.mark.parametrize("target", ["host", "sm90"])
@pytest.mark.parametrize("name", abi.PROGRAMS)
@pytest.mark.parametrize("sms", [1, 5, 40])
def test_compiled_programs_respect_their_waits(target, name, sms):
    programs, scenario = scenario_of(target, name, sms)
    schedule = scenario.run(3)
    tasks = programs.programs[name].tasks
    ends = schedule.end.reshape(3, -1)
    for iteration in range(3):
        for task, row in enumerate(tasks):
            start = schedule.start[iteration * len(tasks) + task]
            for first, _, n, lag in row["waits"][: row["n_waits"]].tolist():
                signalling = (tasks["signal"] >= first) & (tasks["signal"] < first + n)
                assert iteration < lag or start >= ends[iteration - lag][signalling].max()


def test_a_message_is_read_after_all_who_write_the_elements():
    programs, scenario = scenario_of("sm90", "decode", 7)
    joins = program_joins(programs, programs.programs["decode"])
    labels = scenario.labels
    writers = {task: {other for other, feeds in enumerate(joins.feeds) if {(join, 0) for join in feeds} & set(waits)}
               for task, waits in enumerate(joins.waits)}
    named = {labels[task].split(" ")[0]: {labels[writer].split(" ")[0] for writer in writers[task]} for task in writers}
    assert named["layers.1.qkv"] == {"layers.0.fc2"} and named["layers.1.fc2"] == {"layers.1.fc1", "layers.1.proj"}
    assert named["layers.0.attention"] == {"layers.0.qkv"} and named["sample_row"] == {"head"}
    assert named["sample"] == {"sample_row"}
    attention = next(task for task, label in enumerate(labels) if label.startswith("layers.0.attention head 1"))
    assert {labels[writer] for writer in writers[attention]} == {
        f"layers.0.qkv head 1 part {part} of 2" for part in (0, 1)}
    schedule = scenario.run(2)
    for task, sources in writers.items():
        assert all(schedule.start[task] >= schedule.end[source] for source in sources)


@pytest.mark.parametrize("target", ["host", "sm90"])
def test_bridged_waits_keep_the_order_of_the_products(target):
    programs, scenario = scenario_of(target, "train", 3)
    full = program_joins(programs, programs.programs["train"])
    bridged, kept = without(full, lambda task: scenario.works[task].product is not None)
    n = len(full.waits)

    def ancestors(joins):
        """Of each task, the tasks of its own iteration and those of the one before that precede it."""
        feeding = [[] for _ in joins.producers]
        for task, feeds in enumerate(joins.feeds):
            for join in feeds:
                feeding[join].append(task)
        found = [[set(), set()] for _ in joins.waits]
        for _ in range(2):  # the second pass knows the ancestors of the iteration before
            for task, waits in enumerate(joins.waits):
                for join, lag in waits:
                    for other in feeding[join]:
                        found[task][lag] |= {other} | found[other][0]
                        found[task][1] |= found[other][1] if lag == 0 else set()
        return found

    before, after = ancestors(full), ancestors(bridged)
    place = {task: index for index, task in enumerate(kept)}
    assert 0 < len(kept) < n
    for task in kept:
        for lag in (0, 1):
            assert {place[other] for other in before[task][lag] if other in place} == after[place[task]][lag]


def test_a_trace_has_every_task_and_no_two_slices_at_once(tmp_path):
    _, scenario = scenario_of("sm90", "train", 5)
    schedule = scenario.run(2)
    path = tmp_path / "trace.json"
    count = write_trace(path, schedule, scenario.labels, scenario.families)
    events = json.loads(path.read_text())["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    assert len(slices) == count and sum(event["name"] != "waiting" for event in slices) == 2 * schedule.tasks
    for sm in range(5):
        track = sorted((round(1000 * e["ts"]), round(1000 * (e["ts"] + e["dur"]))) for e in slices if e["tid"] == sm)
        assert track and all(end <= start for (_, end), (start, _) in itertools.pairwise(track))


# --- costs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [("tasks.attention.flop_per_clk=-1", "from 0 to"), ("tasks.attention.colour=1", "means nothing"),
     ("tasks.attention.memory=\"disk\"", "shared"), ("tasks.nothing.fixed_clk=1", "changes nothing"),
     ("fixed_clk=1", "changes nothing"), ("memory.cache_gb_s=0", "above 0"), ("tile.depth=0", "above 0"),
     ("tasks.norm.fixed_us=1e300", "from 0 to"),
     ("tasks.norm.source=guessed", "begin with"), ("clock.sms=[1]", "as many"),
     ("memory.tasks=[8, 1]", "as many"), ("handoff.claim_ns=true", "a number"), ("memory.gb_s=3", "a list"),
     ("tasks.norm.elements_of=\"logits\"", "none of the task's operands")],
)
def test_costs_that_cannot_be_are_one_sentence(change, words, capsys):
    assert main(["program", "simulate", "--preset", "tiny", "--set", change]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("text", ["[tasks", "[colour]\na = 1", "[clock]\nghz = 1", "tasks = 1",
                                  "[tasks.walk]\nfixed_us = 1", ""])
def test_cost_files_that_do_not_fit_are_one_sentence(text, tmp_path, capsys):
    path = tmp_path / "costs.toml"
    path.write_text(text)
    assert main(["program", "simulate", "--preset", "tiny", "--costs", str(path)]) == 2
    error = capsys.readouterr().err
    assert "cost file" in error and error.count("\n") == 1


def test_the_clock_goes_through_both_of_its_points_and_not_above_its_limit():
    clock = load_costs("h200").clock
    assert [clock.at(int(sms)) for sms in clock.sms] == pytest.approx(clock.ghz)
    assert clock.at(1) == clock.limit_ghz and clock.ghz[0] > clock.at(110) > clock.ghz[1]


# --- the command, and what it predicts ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [["--target", "host"], ["--program", "decode"], ["--program", "sweep", "--sms", "3"],
     ["--only", "matrix", "--look-ahead", "0", "--spread", "5"], ["--steps", "1", "--program", "doom"]],
)
def test_every_program_is_reported(arguments, capsys, tmp_path):
    assert main(["program", "simulate", "--preset", "tiny", "--trace", str(tmp_path / "t.json"), *arguments]) == 0
    printed = capsys.readouterr().out
    assert "step " in printed and "time line" in printed and "nan" not in printed
    shares = [float(line.split(" %")[0].split()[-1]) for line in printed.splitlines() if "% of the step" in line]
    assert len(shares) == 4 and max(shares) <= 100.05


@pytest.mark.parametrize("arguments", [["--sms", "0"], ["--steps", "0"], ["--look-ahead", "-1"], ["--ghz", "nan"],
                                       ["--spread", "200"],
                                       ["--costs", "nothing.toml"], ["--trace", "/nowhere/trace.json"]])
def test_bad_options_are_one_sentence(arguments, capsys):
    assert main(["program", "simulate", "--preset", "tiny", *arguments]) == 2
    assert capsys.readouterr().err.count("\n") == 1


PLAIN = ["tasks.matmul*.fixed_clk=2100"]
WITH_ADAMW = [*PLAIN, "tasks.matmul_dw_adamw.fixed_clk=18000"]


def as_it_was_measured(nodes):
    """A weight gradient behind its product's dx, as the queue had them; ours has a layer's behind its attention."""
    gradients = {node.name.removesuffix("w") + "x": node for node in nodes if node.name.endswith(".dw")}
    for node in nodes:
        if not node.name.endswith(".dw"):
            yield node
            if node.name in gradients:
                yield gradients[node.name]


def test_the_queue_of_products_takes_as_long_as_was_measured(monkeypatch):
    """The queue of products in docs/h200.md, middle of each range; no step time there went into the costs."""

    def measured_graph(*args):
        graph = model_graph(*args)
        graph.programs["train"][:] = as_it_was_measured(list(graph.programs["train"]))
        return graph

    monkeypatch.setattr(lowering, "model_graph", measured_graph)
    chosen = preset("model-s")
    programs = compile_programs(chosen.model, chosen.train, target="sm90")
    measured = [(PLAIN, 80, 6.62), (PLAIN, 96, 6.0), (PLAIN, 132, 5.27),
                (WITH_ADAMW, 96, 6.45), (WITH_ADAMW, 132, 5.76)]
    for changes, sms, step_ms in measured:
        costs = load_costs("h200", changes)
        scenario = make_scenario(programs, "train", costs, costs.clock.at(sms), machine_of(costs, sms, 1), True)
        assert middle_window(scenario.run(3)).length / 1e6 == pytest.approx(step_ms, rel=0.03)
