#!/usr/bin/env python3
"""Checks the kernel on a real GPU and prints one table.

    scripts/gpu_suite.py [--part NAME ...] [--out DIR] [--cubin FILE] [--demos-cubin FILE] [--golden DIR]

Each part is a process with a time limit of its own, so that one that fails or hangs costs only itself. Reports go into
DIR, a JSON object and a log per part, and the table. `reference` and `hopper_reference` need no GPU: they compute
on the CPU what the others compare with.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from count_launches import counted
from gpu_runs import (
    SMALL,
    Options,
    Result,
    architecture,
    doom_config,
    engine,
    follow,
    hopper_config,
    hopper_engine,
    losses_of,
    programs_of,
    read_cubin,
    run_to_end,
    tiny,
)

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ofa_tui import abi
from ofa_tui.checkpoint.checkpoint import Described, Identity, file_name, find_checkpoint, going_on
from ofa_tui.checkpoint.saver import Saver
from ofa_tui.checkpoint.tensors import scratch_name
from ofa_tui.doom import gpu_demos, packed, search, trace
from ofa_tui.doom.lmp import read_demo
from ofa_tui.engine import cuda as cuda_engine
from ofa_tui.engine import cuda_doctor
from ofa_tui.engine.config import RunConfig
from ofa_tui.engine.cuda import open_engine
from ofa_tui.engine.cuda_compiler import DEMOS, VARIANTS
from ofa_tui.engine.cuda_device import open_gpu
from ofa_tui.engine.host import HostEngine
from ofa_tui.engine.protocol import Event
from ofa_tui.errors import AbortedError, OfaError
from ofa_tui.presets import preset
from ofa_tui.program.lowering import compile_programs
from ofa_tui.program.ops import OPCODES
from ofa_tui.program.types import ProgramSet

FIRST_LIGHT_STEPS, BITWISE_STEPS, SM80_STEPS = 50, 200, 60
LOSS_TOLERANCE = 1e-4
REPORT_S = 10.0
"""From a fault to its report."""
CPU_LOSSES = "losses-of-the-cpu.json"
HOPPER_LOSSES = "losses-of-the-cpu-sm90.json"
CHECKPOINT_STEPS, CHECKPOINT_EVERY = 900, 400
KILLED = "checkpoints-of-a-killed-run"
SANITIZER_S, FINITE_TOKENS, FINITE_FRAMES = 300.0, 20, 20
"""Of the part `finite`."""
ROOT = Path(__file__).resolve().parents[1]


# --- parts --------------------------------------------------------------------------------------------------------


def part_doctor(options: Options) -> Result:
    checks = list(cuda_doctor.examine())
    for check in checks:
        print(check.line())
    return {"ok": all(check.ok for check in checks if check.required),
            "line": "; ".join(check.line() for check in checks if not check.ok) or "all there",
            "checks": [check.line() for check in checks]}


def part_reference(options: Options) -> Result:
    """On the CPU: the losses that the GPU's are compared with."""
    config = tiny(FIRST_LIGHT_STEPS, (max(1, (os.cpu_count() or 2) - 1), 0, 0))
    snapshots = run_to_end(HostEngine(programs_of(config), config), 600)
    path = options.out / CPU_LOSSES
    path.write_text(json.dumps(losses_of(snapshots)))
    return {"ok": True, "line": f"{FIRST_LIGHT_STEPS} steps on the CPU"}


def part_light(options: Options) -> Result:
    """Training, serving and Doom together: losses as on the CPU, tokens, frames, a clean stop."""
    expected = json.loads((options.out / CPU_LOSSES).read_text())
    game = doom_config()
    config = tiny(len(expected), (96, 28, 8) if game else (96, 28, 0), doom=game)
    running = engine(options, config)
    began = time.monotonic()
    running.start()
    ready_s = time.monotonic() - began
    try:
        snapshots = follow(running, lambda s: s.state == "finished" and s.tokens_served >= 50, 120)
        trained_s = time.monotonic() - began
        time.sleep(2)
        snapshots.append(running.poll())
        polls = []
        for _ in range(50):
            before = time.perf_counter()
            snapshots.append(running.poll())
            polls.append((time.perf_counter() - before) * 1e6)
        before = time.perf_counter()
        running.post(Event("prompt", "token", text="Once upon a time"))
        post_us = (time.perf_counter() - before) * 1e6
    finally:
        stopping = time.monotonic()
        running.stop()
        stop_ms = (time.monotonic() - stopping) * 1e3
    last = running.poll()
    snapshots.append(last)
    losses = np.array(losses_of(snapshots))
    worst = float(np.abs(losses - np.array(expected)).max()) if len(losses) == len(expected) else float("inf")
    weights = running.weights()
    finite = all(np.isfinite(array).all() for array in weights.values())
    fastest = max((s.step_ms for s in snapshots if s.step_ms), default=0.0)
    frames = sum(len(s.frames) for s in snapshots)
    served = [t for s in snapshots for t in s.served]
    running.close()
    return {
        "ok": worst < LOSS_TOLERANCE and finite and last.state == "stopped" and running.launches == 1,
        "line": f"largest difference of {len(losses)} losses {worst:.2e}, {fastest:.1f} ms a step, {len(served)} "
                f"tokens ({snapshots[-2].served_per_s:.0f}/s), {frames} frames ({snapshots[-2].frames_per_s:.1f}/s), "
                f"start {ready_s * 1e3:.0f} ms, poll {np.median(polls):.0f} us, post {post_us:.0f} us, "
                f"stop {stop_ms:.0f} ms",
        "losses": losses.tolist(), "worst": worst, "trained_s": trained_s, "step_ms": fastest,
        "text": "".join(t.text for t in served[-200:]), "device": last.device or snapshots[-2].device,
        "served_per_s": snapshots[-2].served_per_s, "frames_per_s": snapshots[-2].frames_per_s, "state": last.state,
    }


def part_bitwise(options: Options) -> Result:
    """The same losses, bit for bit: again, with fewer SMs, and with SMs moved in the middle."""
    moves = tuple(Event("set_role", "step", 20 + 10 * i, sm, (abi.SERVE if i % 2 else abi.TRAIN,))
                  for i, sm in enumerate((5, 100, 6, 101, 7, 102, 8, 5, 6)))
    runs = {
        "96/28": tiny(BITWISE_STEPS, (96, 28, 0)),
        "96/28 again": tiny(BITWISE_STEPS, (96, 28, 0)),
        "64/28": tiny(BITWISE_STEPS, (64, 28, 0)),
        "moved": tiny(BITWISE_STEPS, (96, 28, 0), events=moves, jitter_seed=5),
    }
    bits, notes = {}, []
    for name, config in runs.items():
        running = engine(options, config)
        snapshots = run_to_end(running, 110)
        bits[name] = np.array(losses_of(snapshots), np.float32).tobytes()
        notes.append(f"{name}: {snapshots[-1].seconds:.1f} s, {sum(len(s.applied) for s in snapshots)} moves")
        print(notes[-1], flush=True)
        running.close()
    equal = len(set(bits.values())) == 1 and len(bits["96/28"]) == 4 * BITWISE_STEPS
    return {"ok": equal, "line": f"{BITWISE_STEPS} losses {'equal' if equal else 'DIFFER'} in {len(bits)} runs; "
                                 + "; ".join(notes)}


def _broken(config: RunConfig, kind: str, target: str = "host") -> ProgramSet:
    programs = programs_of(config, target)
    train = programs.programs["train"]
    task = next(i for i, label in enumerate(train.labels) if "layers.1.qkv" in label)
    if kind == "no signal":
        train.tasks["signal"][task] = abi.NONE_U32
    elif kind == "wrong count":
        waiting = int(np.flatnonzero(train.tasks["n_waits"])[20])
        train.tasks["waits"]["count"][waiting, 0] += 1
    return programs


def _fault(options: Options, kind: str, target: str = "host") -> Result:
    """One fault in a run of its own; how long its report took."""
    config = tiny(1000, (20, 4, 0)) if target == "host" else hopper_config(SMALL, 1000, (20, 24, 0))
    cubin = options.cubin if target == "host" else options.sm90_cubin
    variant = VARIANTS["portable" if target == "host" else "sm90"]
    running = open_engine(_broken(config, kind, target), config, read_cubin(cubin, variant))
    if kind == "bad address":
        running.memory["operands"]["base"][10] = 0x10
    elif kind == "endless task":
        # A norm over two thousand million rows that are all the same one.
        train = running.memory["tasks/train"]
        norm = int(np.flatnonzero(train["opcode"] == OPCODES["norm"])[1])
        train["tile"][norm, 1] = 2**31 - 1
        for view in train["operands"][norm]:
            if view != abi.NONE_U16:
                running.memory["operands"]["pitch"][view] = 0
    began = time.monotonic()
    message = ""
    try:
        running.start()
        while time.monotonic() < began + 30:
            snapshot = running.poll()
            if snapshot.state == "aborted":
                message = snapshot.message
                break
            time.sleep(0.02)
    except OfaError as error:
        message = str(error)
    took = time.monotonic() - began
    print(f"{kind}: {took:.1f} s: {message}", flush=True)
    try:
        running.stop()
    except OfaError as error:
        print(f"stop: {error}", flush=True)
    stopped = time.monotonic() - began
    print(f"stopped after {stopped:.1f} s: {running.poll().message}", flush=True)
    first = message.splitlines()[0][:130] if message else "no report"
    return {"ok": bool(message) and stopped < REPORT_S,
            "line": f"{kind}: reported after {took:.1f} s, stopped after {stopped:.1f} s: {first}"}


def part_no_signal(options: Options) -> Result:
    return _fault(options, "no signal")


def part_wrong_count(options: Options) -> Result:
    return _fault(options, "wrong count")


def part_bad_address(options: Options) -> Result:
    return _fault(options, "bad address")


def part_endless_task(options: Options) -> Result:
    return _fault(options, "endless task")


def part_hopper_no_signal(options: Options) -> Result:
    return _fault(options, "no signal", "sm90")


def part_hopper_wrong_count(options: Options) -> Result:
    return _fault(options, "wrong count", "sm90")


def _child(options: Options, task: str) -> subprocess.Popen[str]:
    """A process that holds the GPU, and says so in its first line of output."""
    command = [sys.executable, __file__, "--out", str(options.out), "--hold", task]
    command += ["--cubin", str(options.cubin)] if options.cubin else []
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    while (line := child.stdout.readline()) and not line.startswith("held"):
        pass
    return child


def hold(options: Options, task: str) -> None:
    """What such a process does, until it is killed."""
    if task == "checkpoints":
        _with_checkpoints(options, options.out / KILLED)
    elif task == "run":
        running = engine(options, tiny(100_000, (96, 28, 0)))
        running.start()
        follow(running, lambda s: s.steps_done >= 3, 60)
    else:
        gpu = open_gpu()
        with gpu.current():
            gpu.allocate(gpu.free_bytes() - (2 << 30))
    print("held", flush=True)
    time.sleep(120)


def part_killed(options: Options) -> Result:
    """A run that is killed without warning leaves a GPU on which the next one starts at once."""
    child = _child(options, "run")
    child.kill()
    child.wait(30)
    began = time.monotonic()
    snapshots = run_to_end(engine(options, tiny(10, (20, 4, 0))), 60)
    return {"ok": len(losses_of(snapshots)) == 10, "line": f"10 steps within {time.monotonic() - began:.1f} s of it"}


def part_memory_held(options: Options) -> Result:
    """Another process has the memory: the run is refused with a sentence."""
    child = _child(options, "memory")
    began = time.monotonic()
    try:
        hopper_engine(options, hopper_config(preset("model-s").model, 10, (96, 28, 0))).close()
        said = ""
    except OfaError as error:
        said = str(error)
    finally:
        took = time.monotonic() - began
        notes = [check.line() for check in cuda_doctor.examine() if not check.ok]
        child.kill()
        child.wait(30)
    return {"ok": bool(said) and took < REPORT_S, "line": f"after {took:.1f} s: {said}; doctor: {notes}"}


def _with_checkpoints(options: Options, folder: Path, resumed: Path | None = None) -> list[float]:
    """Losses of a run of model-s that keeps its state every so many steps, from `resumed` on or from the beginning."""
    config = hopper_config(preset("model-s").model, CHECKPOINT_STEPS, (96, 28, 0), copies_state=True)
    described = Described(Identity.of(config, "sm90", "bf16"), config.train, config.tokenizer, {})
    if resumed:
        config = going_on(config, find_checkpoint(resumed)[0], "sm90", "bf16", resample=False)
    running = hopper_engine(options, config)
    saver = Saver(running, folder, lambda: described, every=CHECKPOINT_EVERY)
    saver.start()
    snapshots = run_to_end(running, 110)
    saver.close()
    saved = [entry for snapshot in [*snapshots, running.poll()] for entry in snapshot.saved]
    for entry in saved:
        print(f"step {entry.step}: {entry.bytes / 1e9:.2f} GB, held {entry.held_ms:.1f} ms, {entry.write_s:.1f} s "
              f"{entry.error}", flush=True)
    running.close()
    return losses_of(snapshots)


def part_checkpoint(options: Options) -> Result:
    """A run killed while it writes a checkpoint goes on from the one before, bit for bit."""
    whole, killed = options.out / "checkpoints-of-a-whole-run", options.out / KILLED
    for folder in (whole, killed):
        shutil.rmtree(folder, ignore_errors=True)
    expected = _with_checkpoints(options, whole)
    command = [sys.executable, __file__, "--out", str(options.out), "--hold", "checkpoints", *_file_arguments(options)]
    child = subprocess.Popen(command)
    half_written = killed / scratch_name(Path(file_name(2 * CHECKPOINT_EVERY))).name
    give_up = time.monotonic() + 100
    while not half_written.exists() and child.poll() is None and time.monotonic() < give_up:
        time.sleep(0.001)
    child.kill()
    child.wait(30)
    in_the_midst = half_written.exists() and not (killed / file_name(2 * CHECKPOINT_EVERY)).exists()
    losses = _with_checkpoints(options, killed, killed)
    equal = losses == expected[CHECKPOINT_EVERY:] and len(losses) > 0
    for folder in (whole, killed):
        shutil.rmtree(folder, ignore_errors=True)
    return {"ok": in_the_midst and equal,
            "line": f"killed {'in the midst of' if in_the_midst else 'NOT during'} the second checkpoint; the "
                    f"{len(losses)} losses after the first {'equal' if equal else 'DIFFER'}"}


def part_usable(options: Options) -> Result:
    """After the faults: a whole run."""
    snapshots = run_to_end(engine(options, tiny(10, (20, 4, 0))), 60)
    return {"ok": len(losses_of(snapshots)) == 10, "line": f"{len(losses_of(snapshots))} steps"}


def part_hopper_reference(options: Options) -> Result:
    """On the CPU, in f4: the losses of the Hopper program of a small model."""
    config = hopper_config(SMALL, FIRST_LIGHT_STEPS, (2, 0, 0))
    programs = compile_programs(config.model, config.train, games=0, target="sm90", storage="f4")
    losses = losses_of(run_to_end(HostEngine(programs, config), 600))
    (options.out / HOPPER_LOSSES).write_text(json.dumps(losses))
    return {"ok": len(losses) == FIRST_LIGHT_STEPS, "line": f"{len(losses)} steps on the CPU"}


def part_hopper(options: Options) -> Result:
    """The Hopper kernel on a small model: close to f4, and the same bits whoever computes them."""
    return _small_model(options, "sm90")


def _small_model(options: Options, variant: str) -> Result:
    expected = np.array(json.loads((options.out / HOPPER_LOSSES).read_text()))
    found, notes = [], []
    for sms in ((96, 28, 0), (64, 24, 0), (20, 0, 0)):
        running = hopper_engine(options, hopper_config(SMALL, len(expected), sms), variant)
        snapshots = run_to_end(running, 40)
        found.append(np.array(losses_of(snapshots)))
        rate = max((s.served_per_s for s in snapshots), default=0.0)
        notes.append(f"{sms} {snapshots[-1].seconds:.2f} s {snapshots[-1].tokens_served} tokens ({rate:.0f}/s)")
        print(notes[-1], found[-1], flush=True)
        running.close()
    differences = np.abs(found[0] - expected)
    mean, worst = float(differences.mean()), float(differences.max())
    equal = all(losses.tobytes() == found[0].tobytes() for losses in found)
    return {"ok": equal and mean < 0.02, "line": f"difference to f4 {mean:.4f}, at most {worst:.4f}, runs "
                                                  f"{'equal' if equal else 'DIFFER'}; " + "; ".join(notes)}


def part_sm80(options: Options) -> Result:
    """The kernel for Ampere and newer: the small model as above, then a few steps of model-s."""
    small = _small_model(options, "sm80")
    print(small["line"], flush=True)
    running = hopper_engine(options, hopper_config(preset("model-s").model, SM80_STEPS, (96, 28, 0)), "sm80")
    snapshots = run_to_end(running, 60)
    losses = np.array(losses_of(snapshots))
    ms = float(np.median(np.diff(running.memory["step_end_ns"].astype(np.int64))) / 1e6)
    served = max((s.served_per_s for s in snapshots), default=0.0)
    running.close()
    learns = len(losses) == SM80_STEPS and bool(np.isfinite(losses).all() and losses[-1] < losses[0])
    line = f"model-s: {ms:.2f} ms a step, {served:.0f} tokens/s, losses {losses[0]:.3f} to {losses[-1]:.3f}"
    return {"ok": small["ok"] and learns, "line": f"{small['line']}; {line}", "ms": ms, "losses": losses.tolist()}


def part_model_s(options: Options) -> Result:
    """162,417,408 parameters, 200 steps, serving and Doom beside them."""
    game = doom_config()
    model = preset("model-s").model
    found: list[bytes] = []
    notes = []
    moves = tuple(Event("set_role", "step", 20 + 10 * i, sm, (abi.SERVE if i % 2 else abi.TRAIN,))
                  for i, sm in enumerate((5, 100, 6, 101, 7, 102, 8, 5, 6)))
    sizes = [(train, 28, 8 if game else 0) for train in (96, 96, 64, 96)]
    figures: dict[str, Any] = {}
    for index, sms in enumerate(sizes):
        moved = index == len(sizes) - 1
        config = hopper_config(model, BITWISE_STEPS, sms, doom=game, events=moves if moved else ())
        began = time.monotonic()
        running = hopper_engine(options, config)
        built_s = time.monotonic() - began
        running.start()
        try:
            snapshots = follow(running, lambda s: s.state == "finished", 60)
        finally:
            running.stop()
        snapshots.append(running.poll())
        losses = np.array(losses_of(snapshots), np.float32)
        found.append(losses.tobytes())
        ends = running.memory["step_end_ns"].astype(np.int64)
        ms = float(np.median(np.diff(ends)) / 1e6)
        busy = [s for s in snapshots if s.state == "running"]
        served, frames = (float(np.median([getattr(s, name) for s in busy[len(busy) // 2:]])) if busy else 0.0
                          for name in ("served_per_s", "frames_per_s"))
        applied = f" with {sum(len(s.applied) for s in snapshots)} moves" if moved else ""
        notes.append(f"{sms}{applied}: {ms:.2f} ms a step, {served:.0f} tokens/s, {frames:.1f} frames/s, losses "
                     f"{losses[0]:.3f} to {losses[-1]:.3f}, finite {bool(np.isfinite(losses).all())}")
        print(notes[-1], f"built in {built_s:.1f} s", snapshots[-1].device, flush=True)
        figures[f"{index} {sms}"] = {"ms": ms, "served_per_s": served, "frames_per_s": frames,
                                     "losses": losses.tolist(), "device": [s.device for s in busy[::50]]}
        if index == 0:
            weights = running.weights()
            finite = all(np.isfinite(array).all() for array in weights.values())
            print("weights finite", finite, flush=True)
        running.close()
    equal = len(set(found)) == 1
    return {"ok": equal and finite, "line": f"losses {'equal' if equal else 'DIFFER'}; " + "; ".join(notes), **figures}


def part_demos(options: Options) -> Result:
    """Every golden demo whose WAD is here, all at once, against its trace."""
    names = sorted(path.stem for path in options.golden.glob("*.lmp"))
    wads = search.by_sha256()
    expected = {name: trace.load_trace(options.golden / f"{name}.npz") for name in names}
    hashes = {name: str(expected[name]["wad_sha256"]) for name in names}
    blobs = {sha: packed.load(path).blob for sha, path in wads.items() if sha in hashes.values()}
    names = [name for name in names if hashes[name] in blobs]
    demos = [(read_demo(options.golden / f"{name}.lmp"), blobs[hashes[name]]) for name in names]
    gpu = open_gpu()
    began = time.monotonic()
    played = gpu_demos.play_demos(
        gpu, read_cubin(options.demos_cubin, DEMOS), demos,
        lambda done, tics: print(f"{time.monotonic() - began:6.1f} s: tic {done} of {tics}", flush=True))
    took = time.monotonic() - began
    wrong, tics = [], 0
    for name, (demo, _), result in zip(names, demos, played, strict=True):
        got = trace.trace_of(demo, result, hashes[name])
        found = trace.compare(expected[name], got, [column for column in got if column in expected[name]])
        tics += len(demo.commands)
        if found:
            wrong.append(name)
            print(name, *found[:4], sep="\n    ", flush=True)
    return {"ok": not wrong and bool(names), "line": f"{len(names) - len(wrong)} of {len(names)} traces identical, "
                                                     f"{tics} tics in {took:.1f} s", "wrong": wrong}


def part_launches(options: Options) -> Result:
    """What CUPTI saw around a whole run, through PyTorch's profiler."""
    runs = 1
    with counted() as counts:
        snapshots = run_to_end(engine(options, tiny(20, (96, 28, 0))), 60)
        if options.sm90_cubin or architecture() == "90a":
            snapshots += run_to_end(hopper_engine(options, hopper_config(SMALL, 20, (96, 28, 0))), 60)
            runs = 2
    return {"ok": counts["megakernel"] == runs and len(losses_of(snapshots)) == 20 * runs,
            "line": ", ".join(f"{name} {count}" for name, count in counts.items()), "counts": dict(counts)}


def _few(options: Options, variant: str) -> str:
    """A few steps, tokens and frames of a kernel; says how many, or raises OfaError."""
    cuda_engine.START_TIMEOUT_S = cuda_engine.SILENT_S = cuda_engine.LEAVE_S = SANITIZER_S
    game = doom_config()
    sms = (8, 3, 1 if game else 0)
    portable = variant == "portable"
    config = (tiny(2, sms, doom=game, deadline_s=SANITIZER_S) if portable
              else hopper_config(SMALL, 3, sms, doom=game, deadline_s=SANITIZER_S))
    running = engine(options, config) if portable else hopper_engine(options, config, variant)
    running.start()
    try:
        snapshots = follow(running, lambda s: s.state == "finished" and s.tokens_served >= FINITE_TOKENS, SANITIZER_S)
        if game:
            snapshots += follow(running, lambda s: any(f.number >= FINITE_FRAMES for f in s.frames), SANITIZER_S)
    finally:
        running.stop()
    losses = losses_of([*snapshots, running.poll()])
    running.close()
    if len(losses) != config.train.steps or not np.isfinite(losses).all():
        raise OfaError(f"{variant}: {len(losses)} of {config.train.steps} steps, losses {losses}")
    return (f"{variant}: {len(losses)} steps, {snapshots[-1].tokens_served} tokens, "
            f"{sum(len(s.frames) for s in snapshots)} frames seen in {snapshots[-1].seconds:.0f} s")


def _finite(*variants: str) -> Callable[[Options], Result]:
    """For a tool that makes everything slow."""
    def run(options: Options) -> Result:
        chosen = variants or _variants(options)
        return {"ok": True, "line": "; ".join(_few(options, variant) for variant in chosen)}

    return run


def _variants(options: Options) -> list[str]:
    """Those that run here. What was not given is compiled, but for the kernel for Ampere."""
    hopper = options.sm90_cubin is not None or architecture() == "90a"
    return ["portable"] + ["sm90"] * hopper + ["sm80"] * (options.sm80_cubin is not None)


def _sanitized(options: Options, tool: str) -> Result:
    """The part `finite` of each kernel by itself under a tool of compute-sanitizer, which ends a launch at the first
    error."""
    clean, lines, began = True, [], time.monotonic()
    variants = _variants(options)
    for number, variant in enumerate(variants):
        left_s = PARTS[tool][1] - 5 - (time.monotonic() - began)
        report = options.out / f"finite_{variant}.json"
        report.unlink(missing_ok=True)
        command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", sys.executable, __file__]
        command += ["--run", report.stem, "--out", str(options.out), *_file_arguments(options)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=left_s / (len(variants) - number))
        except subprocess.TimeoutExpired:
            clean = False
            lines.append(f"{variant}: not done")
            continue
        print(done.stdout[-8000:], done.stderr[-2000:], sep="\n", flush=True)
        said_by_tool = [line.strip("= ") for line in done.stdout.splitlines()]
        summary = [line for line in said_by_tool if "SUMMARY" in line or "not supported" in line]
        said = json.loads(report.read_text())["line"] if report.is_file() else f"ended with {done.returncode}"
        clean = clean and done.returncode == 0 and bool(summary)
        lines.append(f"{variant}: {', '.join(summary) or 'no summary'} ({said})")
    return {"ok": clean, "line": "; ".join(lines)}


def part_memcheck(options: Options) -> Result:
    return _sanitized(options, "memcheck")


def part_synccheck(options: Options) -> Result:
    return _sanitized(options, "synccheck")


PARTS: dict[str, tuple[Callable[[Options], Result], int]] = {
    "doctor": (part_doctor, 60),
    "reference": (part_reference, 480),
    "light": (part_light, 180),
    "bitwise": (part_bitwise, 480),
    "no_signal": (part_no_signal, 60),
    "wrong_count": (part_wrong_count, 60),
    "bad_address": (part_bad_address, 60),
    "endless_task": (part_endless_task, 60),
    "hopper_no_signal": (part_hopper_no_signal, 60),
    "hopper_wrong_count": (part_hopper_wrong_count, 60),
    "killed": (part_killed, 120),
    "memory_held": (part_memory_held, 120),
    "checkpoint": (part_checkpoint, 240),
    "usable": (part_usable, 90),
    "demos": (part_demos, 480),
    "hopper_reference": (part_hopper_reference, 480),
    "hopper": (part_hopper, 150),
    "sm80": (part_sm80, 240),
    "model_s": (part_model_s, 300),
    "launches": (part_launches, 180),
    "finite": (_finite(), 120),
    "memcheck": (part_memcheck, 400),
    "synccheck": (part_synccheck, 400),
}
"""Name → (function, seconds it may take)."""

WITHIN_PARTS: dict[str, Callable[[Options], Result]] = {
    f"finite_{variant}": _finite(variant) for variant in ("portable", "sm90", "sm80")
}
"""What parts run as processes of their own."""


# --- the table ----------------------------------------------------------------------------------------------------


def _file_arguments(options: Options) -> list[str]:
    files = {"--cubin": options.cubin, "--sm90-cubin": options.sm90_cubin, "--sm80-cubin": options.sm80_cubin,
             "--demos-cubin": options.demos_cubin}
    return [part for flag, value in files.items() if value for part in (flag, str(value))]


def _run_part(name: str, options: Options) -> int:
    try:
        part = WITHIN_PARTS[name] if name in WITHIN_PARTS else PARTS[name][0]
        result = part(options)
    except Exception as error:
        import traceback

        traceback.print_exc()
        result = {"ok": False, "line": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"}
    (options.out / f"{name}.json").write_text(json.dumps(result))
    return 0 if result["ok"] else 1


def _spawn(name: str, options: Options) -> Result:
    """A part as a process, its output in a log."""
    path = options.out / f"{name}.json"
    path.unlink(missing_ok=True)
    command = [sys.executable, __file__, "--run", name, "--out", str(options.out), "--golden", str(options.golden)]
    command += _file_arguments(options)
    began = time.monotonic()
    limit = PARTS[name][1]
    with (options.out / f"{name}.log").open("wb") as log:
        try:
            code = subprocess.run(command, stdout=log, stderr=log, timeout=limit).returncode
        except subprocess.TimeoutExpired:
            code = -1
    took = time.monotonic() - began
    if path.is_file():
        result = json.loads(path.read_text())
        if code not in (0, 1, AbortedError.exit_code):
            result["line"] += f" (but the process ended with {code})"
            result["ok"] = False
    else:
        tail = (options.out / f"{name}.log").read_text(errors="replace").strip().splitlines()[-3:]
        what = f"not done after {limit} s" if code == -1 else f"ended with {code}"
        result = {"ok": False, "line": f"{what}: {' | '.join(tail)}"}
    return result | {"seconds": round(took, 1)}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--part", action="append", choices=PARTS, help="repeatable; default: all")
    parser.add_argument("--out", type=Path, default=Path("gpu-suite"), help="where reports go (default: gpu-suite)")
    parser.add_argument("--cubin", type=Path, help="a compiled portable kernel to use as it is")
    parser.add_argument("--sm90-cubin", type=Path, help="a compiled Hopper kernel to use as it is")
    parser.add_argument("--sm80-cubin", type=Path, help="a compiled kernel for Ampere and newer to use as it is")
    parser.add_argument("--demos-cubin", type=Path, help="a compiled demo player to use as it is")
    parser.add_argument("--golden", type=Path, default=ROOT.parent / "shared" / "doom-golden",
                        help="folder of demos with their traces")
    parser.add_argument("--run", choices=[*PARTS, *WITHIN_PARTS], help=argparse.SUPPRESS)
    parser.add_argument("--hold", choices=("run", "memory", "checkpoints"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    options = Options(arguments.out, arguments.cubin, arguments.sm90_cubin, arguments.sm80_cubin, arguments.demos_cubin,
                      arguments.golden)
    options.out.mkdir(parents=True, exist_ok=True)
    if arguments.hold:
        hold(options, arguments.hold)
    if arguments.run:
        return _run_part(arguments.run, options)
    failed = 0
    rows = []
    for name in arguments.part or PARTS:
        result = _spawn(name, options)
        failed += not result["ok"]
        rows.append(f"{'ok  ' if result['ok'] else 'FAIL'} {name:13} {result['seconds']:6.1f} s  {result['line']}")
        print(rows[-1], flush=True)
    (options.out / "table.txt").write_text("\n".join(rows) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
