#!/usr/bin/env python3
"""Serving, alone and beside training and Doom, and PyTorch's on as many SMs: the same model and context, and one table.

    scripts/bench_serve.py [--part NAME ...] [--out DIR] [--sm90-cubin FILE] [--steps 700]
    scripts/bench_serve.py --cpu      # a small model: the peers' tokens have to be those of our host engine

Parts: `alone` (24, 28, 32 and all SMs), `alone-streams` (several streams on 28), `beside` (28 SMs, one stream and more)
and `beside-others` (24 and 32) are ours; `eager` and `compiled` are PyTorch, one CUDA graph a token, batch 1 and 8.
Each is a process of its own, of eight minutes at most; what is in DIR already is not measured again, and the table,
which comes last, has all that is there. Serving runs without pace, model-s from position 0 to 511 again and again, and
every figure is of whole stories, so of all these positions equally. Needs a Hopper GPU, PyTorch and ofa-tui's own
packages in one interpreter, nvcc and a WAD. Of this script only --cpu has been run so far: the parts wait for a GPU.

Alone: the launch is the one of `beside`, with the same blocks serving, but the role table says idle for all others from
the start. Holding training before its first step would do as well but for two things: somebody would have to train, so
that not all SMs could serve, and blocks that wait in a held step poll memory all the time, idle ones every 2 ms.

The SMs: ours serve on the blocks behind those that train. PyTorch gets a green context, which comes in eights; on 28 of
32 SMs the other four are held by blocks that poll a word of device memory. "Of copies" is the share of what bulk copies
of 32 KiB reach on these SMs in the same process, measured with nothing else running; only weights are counted as read.

What serving costs training: milliseconds a step while SMs serve at full rate, against the same SMs there but idle, Doom
playing either time.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from gpu_bench import (
    IDLE_TOKENS_PER_S,
    SHARED_SMS,
    WARM_S,
    Gauges,
    add_arguments,
    gauge_text,
    nothing,
    run_ours,
    run_part,
    run_parts,
    warm_steps,
    watch,
    weight_bytes,
)
from gpu_runs import SMALL, Result, doom_config, hopper_config, programs_of

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ofa_tui import abi
from ofa_tui.data.tokenizers import ByteTokenizer
from ofa_tui.engine.config import RunConfig, Sampling
from ofa_tui.engine.cuda_library import DriverLibrary
from ofa_tui.engine.memory import initial_weights
from ofa_tui.engine.protocol import Snapshot
from ofa_tui.engine.resident import ResidentEngine
from ofa_tui.errors import OfaError
from ofa_tui.presets import preset
from ofa_tui.program.types import ProgramSet

DOOM_SMS = 8
GREEN_SMS = 8
"""Green contexts come in multiples of it."""
GOAL_SMS = 28
SMS = (24, GOAL_SMS, 32, 0)
"""That serve; 0: all."""
GREEDY, SAMPLED = Sampling(0.0, 0, 1.0), Sampling(0.8, 0, 0.95)
Run = tuple[int, int, Sampling]
"""SMs that serve, or 0 for all; streams; sampling."""
ALONE: dict[str, tuple[Run, ...]] = {
    "alone": (*((sms, 1, GREEDY) for sms in SMS), (GOAL_SMS, 1, SAMPLED)),
    "alone-streams": (*((GOAL_SMS, streams, GREEDY) for streams in (2, 4, 8)), (GOAL_SMS, 8, SAMPLED)),
}
BESIDE: dict[str, tuple[Run, ...]] = {
    "beside": (*((GOAL_SMS, streams, GREEDY) for streams in (1, 2, 4, 8)), (GOAL_SMS, 1, SAMPLED)),
    "beside-others": ((24, 1, GREEDY), (32, 1, GREEDY)),
}
PEER_STREAMS = (1, 8)
ALONE_S = 6.0
STORIES = 8
"""Timed of each peer."""
COPY_ROUNDS, COPY_COUNTED = 70, 10
"""Launches of copies, two seconds of them, of which the last count."""
TOKENS_GOAL = {"alone": 7500.0, "beside": 6000.0}
"""Tokens a second of one stream on GOAL_SMS."""
STEP_MS_GOAL, FRAMES_GOAL, COST_GOAL = 9.2, 35.0, 0.15
CPU_STREAMS = (1, 8)


@dataclass(frozen=True)
class Options:
    out: Path
    sm90_cubin: Path | None
    steps: int


# --- measuring ----------------------------------------------------------------------------------------------------


def spread(values: Sequence[float] | np.ndarray) -> tuple[float, list[float]]:
    """Median, and the 10th and 90th percentile."""
    low, median, high = np.percentile(values, [10, 50, 90]).tolist()
    return median, [low, high]


def served(name: str, kind: str, sms: int, streams: int, seconds: np.ndarray, context: int, token_bytes: float,
           copies_gb_s: float, gauges: Gauges, **more: Any) -> Result:
    """A row of the table. `seconds` f8 [passes]: each from the one before; every stream has a token in every pass."""
    stories = len(seconds) // context
    if stories == 0:
        raise OfaError(f"{name}: {len(seconds)} passes after the first {WARM_S:g} s, less than a story of {context}")
    whole = seconds[: stories * context].reshape(stories, context)
    rate, range_of_stories = spread(context * streams / whole.sum(1))
    row = {"name": name, "kind": kind, "sms": sms, "streams": streams, "stories": stories, "tokens_per_s": rate,
           "tokens_per_s_range": range_of_stories, "us": 1e6 * float(np.median(whole)),
           "us_p99": 1e6 * float(np.percentile(whole, 99)), **gauges.medians(), **more}
    if copies_gb_s:
        gb_s = token_bytes * rate / streams / 1e9
        row |= {"gb_s": gb_s, "copies_gb_s": copies_gb_s, "of_copies": gb_s / copies_gb_s}
    return row


def shown(row: Result) -> Result:
    """Printed as soon as it is there."""
    print(line(row), flush=True)
    return row


def line(row: Result) -> str:
    text = f"{row['name']:<28} {row['sms']:3} SMs"
    if "tokens_per_s" in row:
        low, high = row["tokens_per_s_range"]
        text += (f", {row['streams']} streams: {row['tokens_per_s']:,.0f} tokens/s (10-90 % of {row['stories']} "
                 f"stories: {low:,.0f}-{high:,.0f}), {row['us']:.0f} us a token, p99 {row['us_p99']:.0f}")
    if "of_copies" in row:
        text += f", {row['gb_s']:,.0f} GB/s, {row['of_copies']:.0%} of copies"
    if "ms" in row:
        low, high = row["ms_range"]
        text += (f", {row['ms']:.3f} ms a step (10-90 % of {row['steps']}: {low:.3f}-{high:.3f}), Doom "
                 f"{row['frames_per_s']:.1f}")
    return text + gauge_text(row)


def pass_seconds(snapshots: list[Snapshot], streams: int, first_s: float, last_s: float) -> np.ndarray:
    """f8 [passes - 1]: from each pass to the next of those that ended in that time."""
    times: list[list[float]] = [[] for _ in range(streams)]
    for snapshot in snapshots:
        for token in snapshot.served:
            if first_s <= token.seconds <= last_s:
                times[token.stream].append(token.seconds)
    counts = [len(of_stream) for of_stream in times]
    if max(counts) - min(counts) > 2:  # the first and the last pass may lie on the edge
        raise OfaError(f"the streams have {min(counts)} to {max(counts)} tokens in the same time: a pass lacks some")
    return np.diff(times[0])


def first_story(snapshots: list[Snapshot], stream: int, context: int) -> list[int]:
    return [token.token for snapshot in snapshots for token in snapshot.served if token.stream == stream][:context]


# --- ours ---------------------------------------------------------------------------------------------------------


class AsManyAsGpt2(ByteTokenizer):
    """As many ids to choose from as model-s's own tokenizer has, without its files: nobody reads what is told."""

    name = "as many as gpt2"
    size = 50_257
    end_of_text = 50_256


def our_config(n_sms: int, sms: int, streams: int, sampling: Sampling, steps: int) -> RunConfig:
    """Of `n_sms` SMs so many serve and DOOM_SMS play; on all, where `sms` is `n_sms`, they can only be alone."""
    split = (n_sms - DOOM_SMS - sms, sms, DOOM_SMS) if sms < n_sms else (1, n_sms - 1, 0)
    return hopper_config(preset("model-s").model, steps, split, streams=streams, sampling=sampling,
                         tokenizer=AsManyAsGpt2())


def idle_but_for(sms: int) -> Callable[[ResidentEngine], None]:
    """Before the start: so many SMs serve, those that were to and then the first others, and no other does anything."""

    def prepare(running: ResidentEngine) -> None:
        roles = running.memory["roles"]
        wanted = np.argsort(roles[: running.info.n_sms] != abi.SERVE, kind="stable")[:sms]
        roles[:] = abi.IDLE
        roles[wanted] = abi.SERVE

    return prepare


def our_copies(n_sms: int) -> dict[int, float]:
    """GB/s of bulk copies by the blocks that serve, by their number: blocks take their SMs in the order of launch."""
    import torch
    from gpu_partition import Copies, Kernels

    copies, stream = Copies(Kernels()), torch.cuda.Stream()
    found = {}
    for sms in (each or n_sms for each in SMS):
        first = our_config(n_sms, sms, 1, GREEDY, 1).sms[0] if sms < n_sms else 0
        rate = copies.rate(stream, n_sms, first, sms, COPY_ROUNDS)
        found[sms], reach = spread(rate.gb_s[-COPY_COUNTED:])
        print(f"copies by blocks {first}-{first + sms - 1}: {found[sms]:,.0f} GB/s (10-90 %: {reach[0]:,.0f}-"
              f"{reach[1]:,.0f}), SMs {sorted(rate.sms)}", flush=True)
    return found


def model_bytes(n_sms: int) -> float:
    """Of weights, that a pass of model-s reads."""
    return weight_bytes(programs_of(our_config(n_sms, GOAL_SMS, 1, GREEDY, 1), "sm90"))


def ours_alone(options: Options, runs: Sequence[Run]) -> Result:
    n_sms = DriverLibrary().gpus()[0].n_sms
    copies, token_bytes, rows = our_copies(n_sms), model_bytes(n_sms), []
    for wanted, streams, sampling in runs:
        sms = wanted or n_sms
        config = our_config(n_sms, sms, streams, sampling, options.steps)
        context = config.model.context
        snapshots, gauges = run_ours(options.out, options.sm90_cubin, config,
                                     lambda s: s.seconds > WARM_S + ALONE_S, idle_but_for(sms))
        rows.append(shown(served(
            "ofa-tui alone" + ("" if sampling is GREEDY else ", sampled"), "alone", sms, streams,
            pass_seconds(snapshots, streams, WARM_S, WARM_S + ALONE_S), context, token_bytes, copies[sms], gauges,
            story=first_story(snapshots, 0, context))))
    return {"ok": True, "rows": rows, "copies_gb_s": copies, "line": verdict(rows)}


def ours_beside(options: Options, runs: Sequence[Run]) -> Result:
    """Each of the `runs`, before them and after them the same SMs without a token to make."""
    doom = doom_config()
    if doom is None:
        raise OfaError("there is no WAD; scripts/fetch_wads.py gets one")
    n_sms = DriverLibrary().gpus()[0].n_sms
    copies, token_bytes = our_copies(n_sms), model_bytes(n_sms)

    def run(sms: int, streams: int, sampling: Sampling, idle: bool = False) -> Result:
        config = replace(our_config(n_sms, sms, streams, sampling, options.steps), doom=doom,
                         tokens_per_s=IDLE_TOKENS_PER_S if idle else 0.0)
        snapshots, gauges = run_ours(options.out, options.sm90_cubin, config, lambda s: s.state == "finished")
        ends = np.array([loss.seconds for snapshot in snapshots for loss in snapshot.losses])
        steps = warm_steps(1e3 * np.diff(ends, prepend=0.0))
        ms, ms_range = spread(steps)
        trained = {"ms": ms, "ms_range": ms_range, "steps": len(steps),
                   "frames_per_s": frames_per_s(snapshots, WARM_S, ends[-1])}
        if idle:
            return shown({"name": "ofa-tui, serving idle", "kind": "held", "sms": sms, "streams": streams, **trained,
                          **gauges.medians()})
        name = "ofa-tui beside" + ("" if sampling is GREEDY else ", sampled")
        return shown(served(name, "beside", sms, streams, pass_seconds(snapshots, streams, WARM_S, ends[-1]),
                            config.model.context, token_bytes, copies[sms], gauges, **trained))

    sizes = sorted({sms for sms, _, _ in runs})
    before, rows, after = ([run(sms, 1, GREEDY, idle=True) for sms in sizes], [run(*each) for each in runs],
                           [run(sms, 1, GREEDY, idle=True) for sms in sizes])
    held_ms = {first["sms"]: (first["ms"] + last["ms"]) / 2 for first, last in zip(before, after, strict=True)}
    rows = [row | {"cost": row["ms"] / held_ms[row["sms"]] - 1} for row in rows]
    return {"ok": True, "rows": [*before, *rows, *after], "copies_gb_s": copies, "line": verdict(rows)}


def frames_per_s(snapshots: list[Snapshot], first_s: float, last_s: float) -> float:
    """Of game 0 in that time: the slope of its frames over the moments when they were seen."""
    seen = [(snapshot.seconds, snapshot.frames[-1].number) for snapshot in snapshots
            if snapshot.frames and first_s <= snapshot.seconds <= last_s]
    seconds, numbers = np.array(seen, float).reshape(-1, 2).T
    return float(np.polyfit(seconds, numbers, 1)[0]) if len(seen) > 10 else 0.0


# --- PyTorch ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """SMs that a peer has: those of a stream but for those that a holder of gpu_partition keeps."""

    sms: int
    stream: Any
    holder: Any
    copies_gb_s: float


def places(n_sms: int) -> list[Place]:
    """Raises OfaError where the GPU cannot be divided, or a CUDA graph's kernels leave their green context."""
    import torch
    from gpu_partition import Copies, Holder, Kernels, Partition

    kernels = Kernels()
    copies = Copies(kernels)
    found = []
    for sms in (each or n_sms for each in SMS):
        whole, holder, stream = sms, None, torch.cuda.Stream()
        if sms < n_sms:
            whole = -(-sms // GREEN_SMS) * GREEN_SMS
            partition = Partition(whole)
            stream = partition.stream
            own, graphs = kernels.sms_of(stream), kernels.sms_of(stream, captured=True)
            if partition.sms != whole or len(own) > whole + SHARED_SMS or graphs - own:
                raise OfaError(f"a green context of {whole} SMs has {partition.sms}, its kernels run on {len(own)}, "
                               f"and those of a CUDA graph on {len(graphs)}")
            if whole > sms:
                holder = Holder(kernels, partition.second_stream(), whole - sms)
        copies.rate(stream, whole, 0, whole, 1)  # loaded before SMs are held
        with holder or nothing():
            rate = copies.rate(stream, sms, 0, sms, COPY_ROUNDS)
        middle, reach = spread(rate.gb_s[-COPY_COUNTED:])
        held = f", held {sorted(holder.sms)}" if holder else ""
        print(f"copies on {sms} SMs: {middle:,.0f} GB/s (10-90 %: {reach[0]:,.0f}-{reach[1]:,.0f}), SMs "
              f"{sorted(rate.sms)}{held}", flush=True)
        found.append(Place(sms, stream, holder, middle))
    return found


def model_weights(config: RunConfig, programs: ProgramSet) -> dict[str, np.ndarray]:
    shapes = {name: programs.buffers[name].shape for name in programs.parameters}
    return dict(initial_weights(shapes, config.train.init_std, config.seed))


def peers(name: str) -> Result:
    import torch
    from serve_peer import VARIANTS, Peer

    n_sms, variant = DriverLibrary().gpus()[0].n_sms, VARIANTS[name]
    config = our_config(n_sms, GOAL_SMS, 1, GREEDY, 1)
    programs = programs_of(config, "sm90")
    weights, token_bytes = model_weights(config, programs), weight_bytes(programs)
    on, rows = places(n_sms), []
    for streams in PEER_STREAMS:
        first = [config.tokenizer.end_of_text] * streams
        peer = Peer(config, weights, variant, first, "cuda", torch.bfloat16)
        for place in on:
            peer.capture(place.stream)
            with place.holder or nothing(), Gauges() as gauges:
                warm_until = time.monotonic() + WARM_S
                while time.monotonic() < warm_until:
                    peer.run(1)
                seconds = peer.run(STORIES)
            rows.append(shown(served(f"{variant.name} + CUDA graph", "peer", place.sms, streams, seconds.ravel(),
                                     config.model.context, token_bytes, place.copies_gb_s, gauges,
                                     story=peer.tokens()[0].tolist())))
        del peer
        torch.cuda.empty_cache()
    best = max((row for row in rows if row["streams"] == 1), key=lambda row: row["tokens_per_s"])
    return {"ok": True, "rows": rows, "line": f"one stream: at best {best['tokens_per_s']:,.0f} tokens/s, on "
                                              f"{best['sms']} SMs; PyTorch {torch.__version__}"}


# --- the table ----------------------------------------------------------------------------------------------------

COLUMNS: tuple[tuple[str, Callable[[Result], str]], ...] = (
    ("what", lambda row: row["name"]),
    ("SMs", lambda row: str(row["sms"])),
    ("streams", lambda row: str(row["streams"])),
    ("tokens/s", lambda row: f"{row['tokens_per_s']:,.0f}"),
    ("10-90 %", lambda row: "{:,.0f}-{:,.0f}".format(*row["tokens_per_s_range"])),
    ("goal", lambda row: f"{tokens_goal(row):,.0f}"),
    ("us", lambda row: f"{row['us']:.0f}"),
    ("p99", lambda row: f"{row['us_p99']:.0f}"),
    ("GB/s", lambda row: f"{row['gb_s']:,.0f}"),
    ("of copies", lambda row: f"{row['of_copies']:.0%}"),
    ("ms a step", lambda row: f"{row['ms']:.2f}"),
    ("10-90 %", lambda row: "{:.2f}-{:.2f}".format(*row["ms_range"])),
    ("goal", lambda row: f"{STEP_MS_GOAL}" if row["ms"] and row["sms"] == GOAL_SMS else ""),
    ("cost", lambda row: f"{row['cost']:.1%}"),
    ("goal", lambda row: f"{COST_GOAL:.0%}" if row["cost"] is not None else ""),
    ("Doom", lambda row: f"{row['frames_per_s']:.1f}"),
    ("goal", lambda row: f"{FRAMES_GOAL}" if row["frames_per_s"] is not None else ""),
    ("MHz", lambda row: f"{row['clock_mhz']:.0f}"),
    ("W", lambda row: f"{row['power_w']:.0f}"),
)
"""Heading and cell. A figure that a row does not have leaves the cell empty."""


def tokens_goal(row: Result) -> float:
    """Raises KeyError for a row without one."""
    if row["sms"] != GOAL_SMS or row["streams"] != 1:
        raise KeyError(row["name"])
    return TOKENS_GOAL[row["kind"]]


def table(rows: list[Result]) -> str:
    def cell(make: Callable[[Result], str], row: Result) -> str:
        try:
            return make(row)
        except KeyError:
            return ""

    lines = [[heading for heading, _ in COLUMNS], *([cell(make, row) for _, make in COLUMNS] for row in rows)]
    used = [column for column in range(len(COLUMNS)) if any(each[column] for each in lines[1:])]
    widths = {column: max(len(each[column]) for each in lines) for column in used}
    return "\n".join("  ".join(each[column].ljust(widths[column]) if column == 0 else each[column].rjust(widths[column])
                               for column in used).rstrip() for each in lines)


def verdict(rows: list[Result]) -> str:
    """One stream, greedy, on GOAL_SMS beside its goals; without it, what was fastest."""
    row = next((row for row in rows if row["sms"] == GOAL_SMS and row["streams"] == 1), None)
    if row is None:
        best = max(rows, key=lambda row: row["tokens_per_s"])
        return f"at most {best['tokens_per_s']:,.0f} tokens/s, {best['streams']} streams on {best['sms']} SMs"
    text = f"{row['sms']} SMs {row['kind']}: {row['tokens_per_s']:,.0f} tokens/s (goal {tokens_goal(row):,.0f})"
    if "ms" in row:
        text += (f", in the same window training at {row['ms']:.2f} ms a step (goal {STEP_MS_GOAL}) and Doom at "
                 f"{row['frames_per_s']:.1f} (goal {FRAMES_GOAL}); serving costs training {row['cost']:.1%} (goal "
                 f"{COST_GOAL:.0%})")
    return text


def equal_tokens(ours: Sequence[int], theirs: Sequence[int]) -> int:
    """How many are the same from the first on."""
    return next((i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), min(len(ours), len(theirs)))


def summary(results: dict[str, Result]) -> str:
    """The table of all parts, and what it comes to."""
    good = {name: result for name, result in results.items() if result["ok"]}
    lines = [table([row for result in good.values() for row in result["rows"]])]
    lines += [f"{name}: {result['line']}" for name, result in good.items()]
    told = {name: next(row["story"] for row in good[name]["rows"] if row["streams"] == 1)
            for name in ("alone", "eager", "compiled") if name in good}
    if "alone" in told:
        lines += [f"{name}: the first {equal_tokens(told['alone'], told[name])} of {len(told[name])} greedy tokens are "
                  "ours, before rounding parts them" for name in told if name != "alone"]
    return "\n".join(lines)


# --- on a CPU -----------------------------------------------------------------------------------------------------


def on_cpu() -> None:
    """A small model, f4: the eager peer has to tell the stories that our host engine tells from the same weights."""
    import torch
    from serve_peer import VARIANTS, Peer

    from ofa_tui.engine.host import HostEngine

    variant, rows = VARIANTS["eager"], []
    for streams in CPU_STREAMS:
        config = hopper_config(SMALL, 1, (1, 1, 1), streams=streams, sampling=GREEDY)
        programs = programs_of(config)
        first, context = list(range(65, 65 + streams)), config.model.context

        def prepare(running: ResidentEngine, first: list[int] = first) -> None:
            idle_but_for(1)(running)
            running.memory["serve"]["streams"]["input_token"][0, : len(first)] = first

        def two_stories(snapshot: Snapshot, enough: int = 2 * streams * (context + 1)) -> bool:
            return snapshot.tokens_served >= enough

        snapshots, gauges = watch(HostEngine(programs, config), two_stories, prepare)
        last_s = max(token.seconds for snapshot in snapshots for token in snapshot.served)
        rows.append(served("ofa-tui's host engine", "cpu", 1, streams, pass_seconds(snapshots, streams, 0.0, last_s),
                           context, 0.0, 0.0, gauges))
        peer = Peer(config, model_weights(config, programs), variant, first, "cpu", torch.float32)
        with Gauges() as gauges:
            seconds = peer.run(2)
        rows.append(served(variant.name, "cpu", 1, streams, seconds.ravel(), context, 0.0, 0.0, gauges))
        told = [first_story(snapshots, stream, context) for stream in range(streams)]
        equal = [equal_tokens(ours, theirs) for ours, theirs in zip(told, peer.tokens().tolist(), strict=True)]
        print(f"{streams} streams: {sum(equal)} of {streams * context} tokens from the beginning of a story on are the "
              f"same, of {len({token for story in told for token in story})} kinds", flush=True)
        if min(equal) < context:
            raise OfaError(f"token {min(equal)} of stream {equal.index(min(equal))} differs")
    print(table(rows))


PARTS: dict[str, Callable[[Options], Result]] = {
    **{name: partial(ours_alone, runs=runs) for name, runs in ALONE.items()},
    **{name: partial(ours_beside, runs=runs) for name, runs in BESIDE.items()},
    "eager": lambda _: peers("eager"),
    "compiled": lambda _: peers("compiled"),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser, PARTS, "bench-serve")
    parser.add_argument("--steps", type=int, default=700, help="training steps of each run of beside (default: 700)")
    parser.add_argument("--cpu", action="store_true", help="compare the peers' tokens with ours, on a small model")
    given = parser.parse_args()
    options = Options(given.out, given.sm90_cubin, given.steps)
    if given.cpu:
        try:
            on_cpu()
        except OfaError as error:
            print(f"error: {error}", file=sys.stderr)
            return error.exit_code
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    if given.run:
        return run_part(given.run, PARTS[given.run], options, options.out)
    done = run_parts(given.part or list(PARTS), options.out, line)
    paths = {name: options.out / f"{name}.json" for name in PARTS}
    text = summary({name: json.loads(path.read_text()) for name, path in paths.items() if path.is_file()})
    (options.out / "table.txt").write_text(text + "\n")
    print(text)
    return 0 if all(result["ok"] for result in done.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
