#!/usr/bin/env python3
"""Training beside PyTorch: the same model, tokens and steps on the same number of SMs of one GPU, and one table.

    scripts/bench_train.py [--part NAME ...] [--out DIR] [--sm90-cubin FILE] [--sms 96] [--serving 28] [--steps 400]
    scripts/bench_train.py --cpu [--steps 5]       # a small model, the peers alone, to see that they run

Parts: `idle` (the other SMs have nothing to do), `beside` (SMs of ours decode; beside the peers as many stream weights
at the same rate) and `products` (each matrix task type against cuBLAS). Each is a process of its own, of eight minutes
at most; what is in DIR already is not measured again. Needs a Hopper GPU, PyTorch and ofa-tui's own packages in one
interpreter, and nvcc. Parts with peers have not been run yet.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
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
    weight_bytes,
)
from gpu_runs import Result

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ofa_tui.engine.config import RunConfig
from ofa_tui.errors import OfaError
from ofa_tui.presets import preset
from ofa_tui.program.types import ProgramSet

TIMELINE_ENTRIES = 4096
LAUNCH_MS, ROUNDS = 40.0, 5
"""Of `products`: how long one timed launch takes, and how many there are of each kind."""


@dataclass(frozen=True)
class Options:
    out: Path
    sm90_cubin: Path | None
    sms: int
    serving: int
    steps: int
    cpu: bool


# --- measuring ----------------------------------------------------------------------------------------------------


def summary(name: str, milliseconds: np.ndarray, gauges: Gauges, losses: list[float], **more: Any) -> Result:
    """Figures of the steps after the first WARM_S seconds."""
    timed = warm_steps(milliseconds)
    low, median, high = np.percentile(timed, [10, 50, 90])
    row = {"name": name, "ms": median, "p10": low, "p90": high, "mean": float(timed.mean()), "steps": len(timed),
           "first_loss": losses[0], "last_loss": float(np.mean(losses[-10:])), "losses": losses,
           **gauges.medians(), **more}
    print(line(row), flush=True)
    return row


def line(row: Result) -> str:
    text = (f"{row['name']:<30} {row['ms']:7.3f} ms a step (10-90 %: {row['p10']:.3f}-{row['p90']:.3f}, mean "
            f"{row['mean']:.3f}, {row['steps']} steps)") + gauge_text(row)
    if row.get("tokens_per_s"):
        text += f", {row['tokens_per_s']:,.0f} tokens/s served"
    if row.get("gb_s"):
        text += f", {row['gb_s']:,.0f} GB/s beside it"
    return text + f", loss {row['first_loss']:.3f} to {row['last_loss']:.3f}"


# --- training -----------------------------------------------------------------------------------------------------


def our_row(options: Options, config: RunConfig, name: str, token_bytes: float) -> Result:
    snapshots, gauges = run_ours(options.out, options.sm90_cubin, config, lambda s: s.state == "finished")
    losses = [loss for snapshot in snapshots for loss in snapshot.losses]
    if len(losses) != config.train.steps:
        raise OfaError(f"{name} ended after {len(losses)} of {config.train.steps} steps")
    tokens = [token.seconds for snapshot in snapshots for token in snapshot.served]
    late = [at for at in tokens if WARM_S <= at <= losses[-1].seconds]
    rate = (len(late) - 1) / (late[-1] - late[0]) if len(late) > 10 else 0.0
    ends = np.array([loss.seconds for loss in losses])
    return summary(name, 1e3 * np.diff(ends, prepend=0.0), gauges, [loss.loss for loss in losses],
                   tokens_per_s=rate, gb_s=rate * token_bytes / 1e9)


def run_peers(options: Options, config: RunConfig, programs: ProgramSet, gb_s: float) -> list[Result]:
    """On `options.sms` SMs; with `gb_s`, others stream at that rate beside them."""
    import torch
    from gpu_partition import Kernels, Partition, Streamer
    from train_peer import VARIANTS, Peer

    torch.backends.cuda.enable_cudnn_sdp(False)
    torch.backends.cuda.enable_mem_efficient_sdp(False)
    torch.backends.cuda.enable_math_sdp(False)
    partition = Partition(options.sms)
    if partition.sms != options.sms or partition.other_stream is None or partition.other_sms < options.serving:
        raise OfaError(f"this GPU can be divided into {partition.sms} and {partition.other_sms} SMs, not into "
                       f"{options.sms} and {options.serving}")
    kernels = Kernels()
    streamer = Streamer(kernels, partition.other_stream, options.serving, gb_s)
    own, others = kernels.sms_of(partition.stream), kernels.sms_of(partition.other_stream)
    print(f"the peers run on {len(own)} SMs, {len(others)} others, {len(own & others)} of them the same", flush=True)
    if len(own) > options.sms + SHARED_SMS or len(own & others) > SHARED_SMS:
        raise OfaError("the green contexts share SMs")
    rows = []
    for variant in VARIANTS:
        peer = Peer(config, programs, variant, "cuda", partition.stream)
        with streamer if gb_s else nothing(), Gauges() as gauges:
            milliseconds = peer.run(options.steps)
        rows.append(summary(variant.name, milliseconds, gauges, peer.losses(options.steps),
                            gb_s=streamer.measured_gb_s if gb_s else 0.0))
        del peer
        torch.cuda.empty_cache()
    return rows


def training(options: Options, beside: bool) -> Result:
    from gpu_runs import hopper_config, programs_of

    config = hopper_config(preset("model-s").model, options.steps, (options.sms, options.serving, 0),
                           tokens_per_s=0.0 if beside else IDLE_TOKENS_PER_S)
    programs = programs_of(config, "sm90")
    token_bytes = weight_bytes(programs)
    ours = [our_row(options, config, "ofa-tui", token_bytes)]
    peers = run_peers(options, config, programs, ours[0]["gb_s"] if beside else 0.0)
    ours.append(our_row(options, config, "ofa-tui again", token_bytes))
    kept = our_row(options, replace(config, timeline_entries=TIMELINE_ENTRIES), "ofa-tui with a timeline", token_bytes)
    if not all(row["losses"] == kept["losses"] for row in ours):
        raise OfaError("runs of the same steps have other losses")
    own = float(np.mean([row["ms"] for row in ours]))
    best = min(peers, key=lambda row: row["ms"])
    ratios = {row["name"]: row["ms"] / own for row in peers}
    return {"ok": True, "rows": [*ours, kept, *peers],
            "line": f"ofa-tui {own:.3f} ms a step, the best peer ({best['name']}) {best['ms']:.3f} ms; a step of "
                    "ours is "
                    + ", ".join(f"{ratio:.2f}" for ratio in ratios.values())
                    + " times as fast as one of " + ", ".join(ratios)}


def part_idle(options: Options) -> Result:
    return training(options, beside=False)


def part_beside(options: Options) -> Result:
    return training(options, beside=True)


def on_cpu(options: Options) -> None:
    """The peers that a CPU has, on a small model."""
    from gpu_runs import SMALL, hopper_config, programs_of
    from train_peer import VARIANTS, Peer

    config = hopper_config(SMALL, options.steps, (1, 0, 0))
    config = replace(config, model=replace(SMALL, context=32))
    programs = programs_of(config)
    for variant in VARIANTS:
        if variant.graph:
            continue
        peer = Peer(config, programs, variant, "cpu", None)
        with Gauges() as gauges:
            milliseconds = peer.run(options.steps)
        summary(variant.name, milliseconds, gauges, peer.losses(options.steps))


# --- products -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Product:
    """A matrix task type on the shapes of model-s: `rows` x `columns`, summed over `depth`."""

    name: str
    op: str
    rows: int
    columns: int
    depth: int

    @property
    def flops(self) -> float:
        return 2.0 * self.rows * self.columns * self.depth


def products() -> list[Product]:
    model, train = preset("model-s").model, preset("model-s").train
    bt, c, f, v = train.batch * model.context, model.width, model.feed_forward, model.vocab
    return [
        Product("qkv", "matmul", bt, 3 * c, c), Product("proj", "matmul_residual", bt, c, c),
        Product("fc1", "matmul_gelu", bt, f, c), Product("fc2", "matmul_residual", bt, c, f),
        Product("head", "matmul_statistics", bt, v, c), Product("head.dx", "matmul_dx", bt, c, v),
        Product("fc2.dx", "matmul_dx_gelu", bt, f, c), Product("fc1.dx", "matmul_dx", bt, c, f),
        Product("proj.dx", "matmul_dx", bt, c, c), Product("qkv.dx", "matmul_dx", bt, c, 3 * c),
        Product("head.dw", "matmul_dw_adamw", v, c, bt), Product("fc2.dw", "matmul_dw_adamw", c, f, bt),
        Product("fc1.dw", "matmul_dw_adamw", f, c, bt), Product("proj.dw", "matmul_dw_adamw", c, c, bt),
        Product("qkv.dw", "matmul_dw_adamw", 3 * c, c, bt),
    ]


def part_products(options: Options) -> Result:
    import torch
    from gpu_partition import Partition
    from gpu_rig import MODEL, TRAIN, Kernel, Rig, grid
    from gpu_runs import read_cubin

    from ofa_tui.engine.cuda_compiler import VARIANTS as KERNELS

    cubin = options.out / "sm90.cubin"
    cubin.write_bytes(read_cubin(options.sm90_cubin, KERNELS["sm90"]).code)
    kernel, partition = Kernel(cubin), Partition(options.sms)
    rows = []
    with Gauges() as gauges:
        for product in products():
            operands, flags, multiply = _operands(product)
            tiles = grid(product.rows, 128, product.columns, 256)
            repeat = max(1, round(LAUNCH_MS / 1e3 * 4e14 / product.flops))  # at 400 TFLOP/s
            rig = Rig(kernel, MODEL, TRAIN, np.zeros(TRAIN.batch * MODEL.context + 1, np.int32), options.sms)
            graph, replay = _graphed(multiply, partition.stream, min(repeat, 200))
            warm_until = time.monotonic() + WARM_S
            while time.monotonic() < warm_until:
                replay()
            times = np.array([(rig.run(product.op, operands, tiles, flags, repeat) / repeat, replay())
                              for _ in range(ROUNDS)])
            own, cublas = np.median(times, axis=0)
            row = {"name": product.name, "op": product.op, "shape": [product.rows, product.columns, product.depth],
                   "us": 1e3 * own, "cublas_us": 1e3 * cublas, "tflops": product.flops / own / 1e9,
                   "cublas_tflops": product.flops / cublas / 1e9, "ratio": cublas / own,
                   "spread": float(np.ptp(times[:, 0]) / own), "cublas_spread": float(np.ptp(times[:, 1]) / cublas)}
            rows.append(row)
            print(product_line(row), flush=True)
            del graph, rig, operands
            torch.cuda.empty_cache()
    counted = sum(row["us"] for row in rows), sum(row["cublas_us"] for row in rows)
    note = ", ".join(f"{name} {value:.0f}" for name, value in gauges.medians().items())
    return {"ok": True, "rows": rows,
            "line": f"{options.sms} SMs, each product once: {counted[0] / 1e3:.3f} ms, "
                    f"cuBLAS {counted[1] / 1e3:.3f} ms without what epilogues do; both run one product many times "
                    f"over, ours without a pause between two ({note})"}


def product_line(row: Result) -> str:
    shape = "x".join(map(str, row["shape"]))
    return (f"{row['name']:<8} {row['op']:<18} {shape:<16} {row['us']:8.1f} us {row['tflops']:5.0f} TFLOP/s "
            f"(+-{row['spread'] / 2:.1%})  cuBLAS {row['cublas_us']:8.1f} us {row['cublas_tflops']:5.0f} TFLOP/s "
            f"(+-{row['cublas_spread'] / 2:.1%})  {row['ratio']:.2f}")


def _operands(product: Product) -> tuple[list[Any], int, Callable[[], Any]]:
    """Operands of our task type, its flags, and the same product through PyTorch."""
    import torch
    from gpu_rig import normal, poison

    from ofa_tui.program.ops import ADAMW_DECAY, STATISTICS_TILE

    m, n, k = product.rows, product.columns, product.depth
    out = poison(m, n)
    if product.op == "matmul_dw_adamw":
        dy, x = normal(k, m), normal(k, n)
        master, first, second = (normal(m, n, dtype=torch.float32, scale=scale) for scale in (0.02, 1e-2, 1e-2))
        return ([dy, x, master, first, second.square(), out, poison(m, n)], ADAMW_DECAY,
                lambda: torch.mm(dy.t(), x))
    x = normal(m, k)
    w = normal(k, n) if product.op.startswith("matmul_dx") else normal(n, k)
    extra: list[Any] = {
        "matmul_residual": [normal(m, n, dtype=torch.float32), poison(m, n, dtype=torch.float32)],
        "matmul_gelu": [out, poison(m, n)],
        "matmul_statistics": [out, poison(m, 2 * -(-n // STATISTICS_TILE), dtype=torch.float32)],
        "matmul_dx_gelu": [normal(m, n), out],
    }.get(product.op, [out])
    transposed = w if product.op.startswith("matmul_dx") else w.t()
    return [x, w, *extra], 0, lambda: torch.mm(x, transposed)


def _graphed(multiply: Callable[[], Any], stream: Any, times: int) -> tuple[Any, Callable[[], float]]:
    """A CUDA graph of that many products, and a function that replays it: milliseconds of one product."""
    import torch

    with torch.cuda.stream(stream):
        multiply()
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            for _ in range(times):
                multiply()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def replay() -> float:
        with torch.cuda.stream(stream):
            begin.record()
            graph.replay()
            end.record()
        end.synchronize()
        return begin.elapsed_time(end) / times

    return graph, replay


# --- parts --------------------------------------------------------------------------------------------------------

PARTS: dict[str, Callable[[Options], Result]] = {"idle": part_idle, "beside": part_beside, "products": part_products}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser, PARTS, "bench-train")
    parser.add_argument("--sms", type=int, default=96, help="SMs that train (default: 96)")
    parser.add_argument("--serving", type=int, default=28, help="SMs that serve, or stream (default: 28)")
    parser.add_argument("--steps", type=int, default=400, help="steps of each run (default: 400)")
    parser.add_argument("--cpu", action="store_true", help="only see whether the peers run, on a small model")
    given = parser.parse_args()
    options = Options(given.out, given.sm90_cubin, given.sms, given.serving, given.steps, given.cpu)
    if options.cpu:
        on_cpu(options)
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    if given.run:
        return run_part(given.run, PARTS[given.run], options, options.out)
    results = run_parts(given.part or list(PARTS), options.out,
                        lambda row: line(row) if "ms" in row else product_line(row))
    return 0 if all(result["ok"] for result in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
