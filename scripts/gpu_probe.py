#!/usr/bin/env python3
"""Runs task types of the GPU kernel alone, and whole training steps, against PyTorch.

    scripts/gpu_probe.py CUBIN [--out FOLDER] [--part NAME ...]

Needs a Hopper GPU, PyTorch and NumPy; `scripts/compile_gpu.py --keep` makes the cubin, of the sm90 or the sm80 kernel.
Every part runs in a process of its own, so that one that fails or hangs takes no other with it; the table comes last.
Each check makes a program of one task type out of the Launch struct of a run (no waits, a queue that ends after one
iteration), or, for whole steps, runs the programs of `compile_programs` unchanged.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from gpu_rig import (
    BF16,
    MODEL,
    TRAIN,
    USES,
    Kernel,
    check,
    gelu,
    grid,
    maps_of,
    maps_of_lines,
    normal,
    poison,
    relative,
    results,
    rig,
    show_state,
    to_device,
)

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ofa_tui import abi
from ofa_tui.presets import ModelConfig, TrainConfig
from ofa_tui.program.ops import ADAMW_DECAY, OPS, STATISTICS_TILE

# --- parts ----------------------------------------------------------------------------------------------------------


def products(kernel: Kernel) -> None:
    r = rig(kernel)
    for m, n, k in ((128, 256, 64), (384, 512, 192), (320, 272, 200), (4096, 2304, 768)):
        x, w, y = normal(m, k), normal(n, k), poison(m, n)
        ms = r.run("matmul", [x, w, y], grid(m, 128, n, 256))
        error = relative(y, x.double() @ w.double().T)
        check("matmul", f"{m}x{n}x{k}", error, BF16, r.note("matmul", ms))
    m, n, k = 384, 320, 256
    x, w, skip, y = normal(m, k), normal(n, k), normal(m, n, dtype=torch.float32), poison(m, n, dtype=torch.float32)
    ms = r.run("matmul_residual", [x, w, skip, y], grid(m, 128, n, 256))
    error = relative(y, skip.double() + x.double() @ w.double().T)
    check("matmul_residual", f"{m}x{n}x{k}", error, 1e-5, r.note("matmul_residual"))
    m, n, k = 384, 512, 128
    x, w, u, a = normal(m, k), normal(n, k, scale=0.1), poison(m, n), poison(m, n)
    r.run("matmul_gelu", [x, w, u, a], grid(m, 128, n, 256))
    expected = x.double() @ w.double().T
    check("matmul_gelu", "u", relative(u, expected), BF16, r.note("matmul_gelu"))
    check("matmul_gelu", "a", relative(a, gelu(expected)), BF16)
    m, n, k = 256, 1296, 128
    x, w, y = normal(m, k), normal(n, k, scale=0.1), poison(m, n)
    s = poison(m, 2 * -(-n // STATISTICS_TILE), dtype=torch.float32)
    r.run("matmul_statistics", [x, w, y, s], grid(m, 128, n, 256))
    error = relative(y, x.double() @ w.double().T)
    check("matmul_statistics", "y", error, BF16, r.note("matmul_statistics"))
    parts = y.double().split(STATISTICS_TILE, 1)
    most = torch.stack([p.max(1).values for p in parts], 1)
    total = torch.stack([(p - p.max(1, keepdim=True).values).exp().sum(1) for p in parts], 1)
    check("matmul_statistics", "largest", relative(s[:, 0::2], most), 1e-6)
    check("matmul_statistics", "total", relative(s[:, 1::2], total), 1e-5)
    m, n, k = 384, 320, 448
    dy, w, dx = normal(m, k), normal(k, n), poison(m, n)
    r.run("matmul_dx", [dy, w, dx], grid(m, 128, n, 256))
    check("matmul_dx", f"{m}x{n}x{k}", relative(dx, dy.double() @ w.double()), BF16)
    dy, w, u, du = normal(m, k), normal(k, n), normal(m, n), poison(m, n)
    r.run("matmul_dx_gelu", [dy, w, u, du], grid(m, 128, n, 256))
    leaf = u.double().requires_grad_()
    gelu(leaf).backward(dy.double() @ w.double())
    check("matmul_dx_gelu", f"{m}x{n}x{k}", relative(du, leaf.grad), BF16, r.note("matmul_dx_gelu"))
    for m, n, k in ((256, 320, 448), (2304, 768, 4096)):
        dy, x = normal(k, m), normal(k, n)
        p, mo, v = (normal(m, n, dtype=torch.float32, scale=s) for s in (0.02, 1e-2, 1e-2))
        v = v.square()
        before = [t.double() for t in (p, mo, v)]
        w, stream = poison(m, n), poison(m, n)
        ms = r.run("matmul_dw_adamw", [dy, x, p, mo, v, w, stream], grid(m, 128, n, 256), ADAMW_DECAY)
        want = adamw(dy.double().T @ x.double(), *before, TRAIN, 0, TRAIN.weight_decay)
        for name, got, expected in zip(("p", "m", "v"), (p, mo, v), want, strict=True):
            step = 1.0 if name != "p" else 0.0
            error = relative(got, expected) if step else relative(got.double() - before[0], expected - before[0])
            check("matmul_dw_adamw", f"{m}x{n}x{k} {name}", error, 5e-3 if name == "p" else 1e-4,
                  r.note("matmul_dw_adamw", ms))
        check("matmul_dw_adamw", "w", relative(w, p), BF16)
        same = torch.equal(stream.view(torch.int16).cpu(), torch.from_numpy(stream_order(w)))
        check("matmul_dw_adamw", "stream order", 0.0 if same else 1.0, 0)


def stream_order(w: torch.Tensor) -> np.ndarray:
    from ofa_tui.engine.layouts import to_stream
    return to_stream(w.view(torch.int16).cpu().numpy())


def learning_rate(train: TrainConfig, step: int) -> float:
    warm = min(1.0, (step + 1) / train.warmup_steps) if train.warmup_steps else 1.0
    cosine = math.cos(math.pi * step / train.steps)
    return train.learning_rate * warm * (train.final_lr_fraction + (1 - train.final_lr_fraction) / 2 * (1 + cosine))


def adamw(grad, p, m, v, train: TrainConfig, step: int, decay: float):
    m = train.beta1 * m + (1 - train.beta1) * grad
    v = train.beta2 * v + (1 - train.beta2) * grad * grad
    direction = m / (1 - train.beta1 ** (step + 1)) / ((v / (1 - train.beta2 ** (step + 1))).sqrt() + train.epsilon)
    return p - learning_rate(train, step) * (direction + decay * p), m, v


def rotated(x: torch.Tensor, base: float) -> torch.Tensor:
    """x [..., T, D], float64."""
    t, d = x.shape[-2:]
    frequency = base ** (-2.0 * torch.arange(d // 2, device=x.device, dtype=torch.float64) / d)
    angle = torch.arange(t, device=x.device, dtype=torch.float64)[:, None] * frequency
    first, second = x[..., : d // 2], x[..., d // 2 :]
    return torch.cat([first * angle.cos() - second * angle.sin(), second * angle.cos() + first * angle.sin()], -1)


def attend(qkv: torch.Tensor, batch: int, context: int, heads: int, base: float) -> tuple[torch.Tensor, torch.Tensor]:
    """o [BT, C] and lse [BT, H] in the dtype of qkv."""
    width = qkv.shape[1] // 3
    q, k, v = (p.reshape(batch, context, heads, -1).transpose(1, 2) for p in qkv.split(width, 1))
    scores = rotated(q, base) @ rotated(k, base).transpose(-1, -2) / math.sqrt(width // heads)
    scores = scores.masked_fill(torch.ones(context, context, device=qkv.device).triu(1).bool(), -math.inf)
    o = scores.softmax(-1) @ v
    return o.transpose(1, 2).reshape(batch * context, width), scores.logsumexp(-1).transpose(1, 2).reshape(-1, heads)


def attention(kernel: Kernel) -> None:
    for batch, context, heads in ((2, 512, 3), (3, 40, 2), (1, 200, 2), (8, 512, 12)):
        width = 64 * heads
        r = rig(kernel, batch=batch, context=context, heads=heads, width=width)
        qkv = normal(batch * context, 3 * width)
        o, lse = poison(batch * context, width), poison(batch * context, heads, dtype=torch.float32)
        tiles = [(b * context, context, 64 * h, 64) for b in range(batch) for h in range(heads)]
        r.run("attention", [qkv, o, lse], tiles)
        name = f"{batch}x{context}x{heads}"
        us = r.mean_us("attention")
        leaf = qkv.double().requires_grad_()
        want, want_lse = attend(leaf, batch, context, heads, 10_000.0)
        check("attention", f"o {name}", relative(o, want), 8e-3, f"{us:.1f} us a task")
        check("attention", f"lse {name}", relative(lse, want_lse), 3e-3)
        d_o, dqkv = normal(batch * context, width), poison(batch * context, 3 * width)
        r.run("attention_backward", [qkv, o, lse, d_o, dqkv], tiles)
        us = r.mean_us("attention_backward")
        want.backward(d_o.double())
        for part, got, expected in zip("qkv", dqkv.split(width, 1), leaf.grad.split(width, 1), strict=True):
            check("attention_backward", f"d{part} {name}", relative(got, expected), 1.2e-2, f"{us:.1f} us a task")


def rows(kernel: Kernel) -> None:
    r = rig(kernel)
    bt, width, vocab = TRAIN.batch * MODEL.context, MODEL.width, MODEL.vocab
    tokens = r.keep[0].cpu().numpy().view(np.int32)
    table, x = normal(vocab, width), poison(bt, width, dtype=torch.float32)
    tiles = grid(bt, 32, width, width)
    r.run("embed", [table, x], tiles)
    ids = torch.from_numpy(tokens[:bt].astype(np.int64)).cuda()
    check("embed", "x", relative(x, table[ids]), 0, r.note("embed"))
    gain = normal(1, width, dtype=torch.float32)
    y, rstd = poison(bt, width), poison(bt, 1, dtype=torch.float32)
    x = normal(bt, width, dtype=torch.float32)
    r.run("norm", [x, gain, y, rstd], tiles)
    us = r.mean_us("norm")
    leaf, gains = x.double().requires_grad_(), gain.double().requires_grad_()
    want_rstd = (leaf.square().mean(1, keepdim=True) + MODEL.norm_epsilon).rsqrt()
    want = leaf * want_rstd * gains
    check("norm", "y", relative(y, want), BF16, f"{us:.1f} us")
    check("norm", "rstd", relative(rstd, want_rstd), 1e-6)
    dy, skip = normal(bt, width), normal(bt, width)
    want.backward(dy.double())
    for given in (skip, None):
        dx, dgain = poison(bt, width), poison(bt // 32, width, dtype=torch.float32)
        r.run("norm_backward", [dy, x, rstd, gain, given, dx, dgain], tiles)
        expected = leaf.grad + (0 if given is None else given.double())
        what = "dx" if given is None else "dx skip"
        check("norm_backward", what, relative(dx, expected), BF16, r.note("norm_backward"))
        check("norm_backward", "dgain", relative(dgain.double().sum(0, keepdim=True), gains.grad), 1e-5)
    p, m, v = (normal(1, width, dtype=torch.float32) for _ in range(3))
    v = v.square()
    before = [t.double() for t in (p, m, v)]
    after, grad = poison(1, width, dtype=torch.float32), poison(1, width, dtype=torch.float32)
    r.run("adamw_gain", [dgain, p, after, m, v, grad], [(0, 1, 0, width)])
    want_p, want_m, want_v = adamw(dgain.double().sum(0, keepdim=True), *before, TRAIN, 0, 0.0)
    check("adamw_gain", "p", relative(after, want_p), 1e-6, r.note("adamw_gain"))
    check("adamw_gain", "m v", max(relative(m, want_m), relative(v, want_v)), 1e-5)
    # cross-entropy
    logits = normal(bt, vocab, scale=2.0)
    parts = logits.float().split(STATISTICS_TILE, 1)
    most = torch.stack([part.max(1).values for part in parts], 1)
    total = torch.stack([(part - part.max(1, keepdim=True).values).exp().sum(1) for part in parts], 1)
    statistics = torch.stack([most, total], 2).reshape(bt, -1).contiguous()
    losses = poison(bt, 1, dtype=torch.float32)
    targets = torch.from_numpy(tokens[1 : bt + 1].astype(np.int64)).cuda()
    log_p = torch.log_softmax(logits[:512].double(), 1)
    want_losses = -log_p.gather(1, targets[:512, None])
    r.run("cross_entropy_loss_statistics", [logits, statistics, losses], grid(bt, 8, vocab, vocab))
    check("cross_entropy_loss", "losses", relative(losses[:512], want_losses), 1e-5)
    want_d = log_p.exp()
    want_d[torch.arange(512), targets[:512]] -= 1
    losses = poison(bt, 1, dtype=torch.float32)
    ms = r.run("cross_entropy_statistics", [logits, statistics, losses], grid(bt, 8, vocab, vocab))
    check("cross_entropy", "losses", relative(losses[:512], want_losses), 1e-5)
    error = relative(logits[:512], want_d / bt)
    check("cross_entropy", "dlogits", error, BF16, r.note("cross_entropy_statistics", ms))
    # table
    dx = normal(bt, width)
    p, m, v = (normal(vocab, width, dtype=torch.float32, scale=s) for s in (0.02, 1e-2, 1e-2))
    v = v.square()
    before = [t.double() for t in (p, m, v)]
    w = poison(vocab, width)
    ms = r.run("embed_adamw", [dx, p, m, v, w], grid(vocab, 128, width, width), ADAMW_DECAY)
    grad = torch.zeros(vocab, width, device="cuda", dtype=torch.float64).index_add_(0, ids, dx.double())
    want_p, want_m, want_v = adamw(grad, *before, TRAIN, 0, TRAIN.weight_decay)
    check("embed_adamw", "m v", max(relative(m, want_m), relative(v, want_v)), 1e-4)
    error = relative(p.double() - before[0], want_p - before[0])
    check("embed_adamw", "step of p", error, 1e-3, r.note("embed_adamw", ms))
    check("embed_adamw", "w", relative(w, p), BF16)


# --- whole programs -------------------------------------------------------------------------------------------------


def bits(values: np.ndarray) -> np.ndarray:
    """bf16 of f4, to nearest even, as u2."""
    words = values.astype(np.float32).view(np.uint32)
    return ((words + 0x7FFF + ((words >> 16) & 1)) >> 16).astype(np.uint16)


class DeviceRun:
    """A run of the sm90 program in the GPU's memory: the host's arena, moved."""

    def __init__(self, kernel: Kernel, config, seed: int = 1, game_bytes: int = 128) -> None:
        from ofa_tui.engine.layouts import to_stream
        from ofa_tui.engine.memory import RunMemory, buffer_array
        from ofa_tui.program.lowering import compile_programs
        self.kernel, self.config = kernel, config
        self.programs = programs = compile_programs(config.model, config.train, games=config.games,
                                                    streams=config.streams, target="sm90")
        RunMemory._fill_weights = lambda self: None  # type: ignore[method-assign]  # weights are filled below, in bf16
        self.memory = memory = RunMemory(programs, config, lambda _: 1 << 18, game_bytes, 1 << 50)
        rng = np.random.default_rng(seed)
        self.initial: dict[str, np.ndarray] = {}
        for name in programs.parameters:
            if programs.buffers[name].dtype != "bf16":
                memory.buffer(name)[0] = 1 + 0.1 * rng.standard_normal(programs.buffers[name].shape, np.float32)
                self.initial[name] = memory.buffer(name)[0].copy()
                continue
            value = rng.standard_normal(programs.buffers[name].shape, np.float32) * np.float32(config.train.init_std)
            self.initial[name] = value
            memory.buffer(name)[0] = bits(value)
            memory.buffer(f"{name}.master")[0] = value
            if f"{name}.stream" in programs.buffers:
                memory.buffer(f"{name}.stream")[0] = to_stream(bits(value))
        arena = memory.arena
        self.device = torch.zeros(arena.size, dtype=torch.uint8, device="cuda")
        base = self.device.data_ptr()
        assert base % 256 == 0
        for field, target in arena._pointers:
            arena._memory[field : field + 8].view(np.uint64)[0] = base + target
        operands, maps = memory["operands"], []
        for index, view in enumerate(programs.views):
            buffer = programs.buffers[view.buffer]
            row = operands[index]
            if buffer.dtype not in ("bf16", "f4") or buffer.layout != "rows" or buffer.shape[1] % 32:
                continue
            row["tensor_map"] = len(maps)
            make = maps_of_lines if buffer.dtype == "f4" else maps_of
            per_copy = [make(kernel, int(row["base"]) + c * int(row["copy_bytes"]), *buffer.shape, int(row["pitch"]))
                        for c in range(buffer.copies)]
            maps += [per_copy[copy][use] for use in range(USES) for copy in range(buffer.copies)]
        self.maps = to_device(np.concatenate(maps))
        self.launch = memory["launch"].copy()
        self.launch["tensor_maps"] = self.maps.data_ptr()
        zero = ("activation", "moment", "gradient", "cache")
        idle = {buffer_array(b) for b in programs.buffers.values() if b.kind in zero}
        for name in arena._places:
            if name not in idle and arena.bytes_of(name):
                self.write(name)

    def write(self, name: str) -> None:
        arena = self.memory.arena
        first, size = arena.offset(name), arena.bytes_of(name)
        self.device[first : first + size].copy_(torch.from_numpy(arena._memory[first : first + size]))

    def read(self, name: str) -> np.ndarray:
        arena = self.memory.arena
        first, (_, dtype, shape) = arena.offset(name), arena._places[name]
        return self.device[first : first + arena.bytes_of(name)].cpu().numpy().view(dtype).reshape(shape)

    def tensor(self, name: str) -> torch.Tensor:
        from ofa_tui.engine.memory import buffer_array
        buffer = self.programs.buffers[name]
        array = buffer_array(buffer)
        first = self.memory.arena.offset(array)
        dtype = torch.bfloat16 if buffer.dtype == "bf16" else torch.float32
        part = self.device[first : first + self.memory.arena.bytes_of(array)]
        return part.view(dtype).view(buffer.copies, *buffer.shape)

    def run(self, until, limit_s: float = 60.0) -> np.ndarray:
        """Starts, polls until `until(telemetry)`, stops, and returns the telemetry after the end."""
        control, side, main = self.memory["control"], torch.cuda.Stream(), torch.cuda.Stream()
        arena = self.memory.arena
        first, size = arena.offset("telemetry"), arena.bytes_of("telemetry")
        pinned = torch.empty(size, dtype=torch.uint8, pin_memory=True)
        word = torch.ones(4, dtype=torch.uint8).pin_memory()
        word[1:] = 0
        start = arena.offset("control")
        offset = {name: abi.CONTROL.fields[name][1] for name in ("stop", "abort")}
        torch.cuda.synchronize()
        self.kernel.start(self.launch, self.config.n_sms, main)
        begin, stopped = time.monotonic(), False
        while not main.query():
            with torch.cuda.stream(side):
                pinned.copy_(self.device[first : first + size], non_blocking=True)
            side.synchronize()
            state = pinned.numpy().view(abi.TELEMETRY)[0]
            late = time.monotonic() - begin > limit_s
            if not stopped and (until(state) or late or state["abort"]["code"]):
                if late or state["abort"]["code"]:
                    show_state(state)
                stopped = True
                with torch.cuda.stream(side):
                    self.device[start + offset["stop"] : start + offset["stop"] + 4].copy_(word, non_blocking=True)
                    if late:
                        at = start + offset["abort"]
                        self.device[at : at + 4].copy_(word, non_blocking=True)
            if time.monotonic() - begin > limit_s + 6:
                show_state(state)
                print("does not leave: giving up", flush=True)
                import os
                os._exit(3)
            time.sleep(0.001)
        del control
        return self.read("telemetry")[0]


def run_config(sms, model: ModelConfig, train: TrainConfig, tokens: int = 200_000, **changes):
    from ofa_tui.data.tokenizers import ByteTokenizer
    from ofa_tui.engine.config import RunConfig
    rng = np.random.default_rng(5)
    text = rng.integers(0, min(model.vocab, 50_000), 4096)
    picks = np.minimum(rng.zipf(1.3, tokens) - 1, 4095)
    picks[1::2] = (picks[0::2][: len(picks[1::2])] * 7 + 3) % 4096  # something to learn
    ids = text[picks].astype(np.int32)
    return RunConfig("probe", model, train, ids, ids[:0], ByteTokenizer(), sms=sms, tokens_per_s=0, deadline_s=4,
                     **changes)


class Reference:
    """The model in PyTorch, f32 (TF32 off), from the same initial weights."""

    def __init__(self, run: DeviceRun) -> None:
        self.model, self.train = run.config.model, run.config.train
        self.p = {n: torch.from_numpy(v).cuda().requires_grad_() for n, v in run.initial.items()}
        self.m = {n: torch.zeros_like(v) for n, v in self.p.items()}
        self.v = {n: torch.zeros_like(v) for n, v in self.p.items()}

    def norm(self, x, gain):
        return x * (x.square().mean(-1, keepdim=True) + self.model.norm_epsilon).rsqrt() * gain

    def logits(self, ids: torch.Tensor) -> torch.Tensor:
        """ids [B, T]."""
        model, p = self.model, self.p
        batch, context = ids.shape
        x = p["embed"][ids.reshape(-1)]
        for i in range(model.layers):
            layer = f"layers.{i}"
            qkv = self.norm(x, p[f"{layer}.norm1"]) @ p[f"{layer}.qkv"].T
            o, _ = attend(qkv.double(), batch, context, model.heads, model.rope_base)
            x = x + o.float() @ p[f"{layer}.proj"].T
            x = x + gelu(self.norm(x, p[f"{layer}.norm2"]) @ p[f"{layer}.fc1"].T) @ p[f"{layer}.fc2"].T
        return self.norm(x, p["norm"]) @ p["head"].T

    def step(self, ids: torch.Tensor, targets: torch.Tensor, step: int) -> float:
        loss = torch.nn.functional.cross_entropy(self.logits(ids), targets.reshape(-1))
        loss.backward()
        with torch.no_grad():
            for name, p in self.p.items():
                decay = 0.0 if name.rpartition(".")[2].startswith("norm") else self.train.weight_decay
                new, self.m[name], self.v[name] = adamw(p.grad, p, self.m[name], self.v[name], self.train, step, decay)
                p.copy_(new)
                p.grad = None
        return float(loss.detach())


def compare_steps(kernel: Kernel, label: str, model: ModelConfig, train: TrainConfig, sms, check_gradients: bool
                  ) -> None:
    torch.backends.cuda.matmul.allow_tf32 = False
    config = run_config(sms, model, train)
    run = DeviceRun(kernel, config)
    reference = Reference(run)
    state = run.run(lambda s: s["finished"], 20.0)
    if state["abort"]["code"] or not state["finished"]:
        check(label, "finished", 1.0, 0, f"steps {state['steps_done']} {state['abort']}")
        return
    losses = run.read("losses")
    ends = run.read("step_end_ns").astype(np.int64)
    steps_ms = np.diff(ends) / 1e6
    tokens, windows = config.train_tokens, run.memory["train_windows"]
    wanted = []
    for step in range(train.steps):
        at = windows[step][:, None] + np.arange(model.context + 1)
        ids = torch.from_numpy(tokens[at].astype(np.int64)).cuda()
        wanted.append(reference.step(ids[:, :-1], ids[:, 1:], step))
        if step == 0 and check_gradients and train.steps == 1:
            worst = {"m": 0.0, "p": 0.0}
            for name in run.programs.parameters:
                got = run.tensor(f"{name}.m")[0]
                worst["m"] = max(worst["m"], relative(got, reference.m[name]))
                after = f"{name}.master" if f"{name}.master" in run.programs.buffers else name
                value = run.tensor(after)[0 if after.endswith("master") else 1]
                worst["p"] = max(worst["p"], relative(value, reference.p[name]))
            check(label, "gradients", worst["m"], 2e-2, "worst of all parameters, after one step")
            check(label, "parameters", worst["p"], 2e-2)
    wanted = np.array(wanted)
    error = float(np.abs(losses - wanted).max()) if np.isfinite(losses).all() else math.nan
    note = f"{losses[0]:.4f} .. {losses[-1]:.4f}, PyTorch {wanted[0]:.4f} .. {wanted[-1]:.4f}"
    if len(steps_ms):
        note += f"; {np.median(steps_ms):.2f} ms a step (best {steps_ms.min():.2f})"
    check(label, "losses", error, 1e-3 if train.steps == 1 else 0.05, note)
    show_families(state)


def show_families(state: np.ndarray) -> None:
    total, tasks = state["sms"]["op_ns"].sum(0) / 1e6, int(state["sms"]["tasks_done"].sum())
    order = np.argsort(-total)[:14]
    families = ", ".join(f"{OPS[i].name} {total[i]:.1f}" for i in order if total[i])
    print(f"    {tasks} tasks; SM milliseconds: {families}; waiting {state['sms']['wait_ns'].sum() / 1e6:.1f}",
          flush=True)


SMALL = ModelConfig(layers=2, width=128, heads=2, feed_forward=256, context=64, vocab=512)
SMALL_TRAIN = replace(TRAIN, batch=4, steps=30, learning_rate=3e-3, warmup_steps=5, sweep_every=0, init_std=0.05)


def small_step(kernel: Kernel) -> None:
    compare_steps(kernel, "small, one step", SMALL, replace(SMALL_TRAIN, steps=1), (132, 0, 0), True)


def small_steps(kernel: Kernel) -> None:
    compare_steps(kernel, "small, 30 steps", SMALL, SMALL_TRAIN, (20, 0, 0), False)


def model_s_step(kernel: Kernel) -> None:
    train = replace(TRAIN, steps=1, warmup_steps=0, sweep_every=0)
    compare_steps(kernel, "model-s, one step", MODEL, train, (96, 0, 0), True)


def model_s_steps(kernel: Kernel) -> None:
    train = replace(TRAIN, steps=20, warmup_steps=10, sweep_every=0)
    compare_steps(kernel, "model-s, 20 steps", MODEL, train, (96, 0, 0), False)


def bitwise(kernel: Kernel) -> None:
    """Losses and masters of a few steps on different numbers of SMs."""
    train = replace(TRAIN, steps=6, warmup_steps=3, sweep_every=0)
    seen = []
    for sms in ((96, 0, 0), (64, 0, 0), (132, 0, 0)):
        run = DeviceRun(kernel, run_config(sms, MODEL, train))
        state = run.run(lambda s: s["finished"])
        ends = run.read("step_end_ns").astype(np.int64)
        losses = run.read("losses")
        state_of_weights = [n for n in run.programs.buffers if n.endswith((".master", ".v"))]
        seen.append([losses.tobytes()] + [run.tensor(n)[0].sum(dtype=torch.float64).item() for n in state_of_weights])
        ms = np.median(np.diff(ends)) / 1e6
        print(f"    {sms}: finished {state['finished']} losses {losses} {ms:.2f} ms a step", flush=True)
        show_families(state)
        del run
        torch.cuda.empty_cache()
    check("bitwise", "64, 132, 96", 0.0 if all(s == seen[0] for s in seen) else 1.0, 0)


GREEDY = (0.0, 0, 1.0)
SPLIT = (96, 28, 8)
FIRST_TOKEN = 5
"""What the first stream's story begins with."""


def decoding_run(kernel: Kernel, streams: int = 1) -> DeviceRun:
    """`model-s` on all SMs of the GPU; which of them serve, `serve_alone` and `beside` say. Stories begin with a token
    of their stream's own and never end."""
    run = DeviceRun(kernel, run_config(SPLIT, MODEL, replace(TRAIN, steps=4000, sweep_every=0), streams=streams))
    run.memory["serve"]["vocab_used"] = 50_257
    run.memory["serve"]["end_of_text"] = MODEL.vocab + 7
    run.memory["serve"]["streams"]["input_token"] = FIRST_TOKEN + np.arange(abi.MAX_STREAMS)
    return run


def restart(run: DeviceRun, roles: tuple[int, ...], sampling: tuple[float, int, float],
            telling: tuple[int, ...] = (0,), prompt: np.ndarray | None = None) -> None:
    """Everything but weights and moments as before the first launch, with so many SMs that train and serve, and with
    these streams, the first of them reading `prompt` first."""
    memory = run.memory
    streams = memory["serve"]["streams"][0]
    streams["telling"] = streams["keeps_telling"] = np.isin(np.arange(abi.MAX_STREAMS), telling)
    streams["temperature"], streams["top_k"], streams["top_p"] = sampling
    streams["prompt_slot"] = abi.NONE_U32
    if prompt is not None:
        memory["prompts"][0, : len(prompt)] = prompt
        first = streams[telling[0] : telling[0] + 1]
        first["prompt_slot"], first["prompt_length"], first["prompt_read"] = 0, len(prompt), 0
    memory["roles"][:] = abi.IDLE
    memory["roles"][: roles[0]] = abi.TRAIN
    memory["roles"][roles[0] : sum(roles)] = abi.SERVE
    messages = {f"buffer/{b.name}" for b in run.programs.buffers.values() if b.kind == "message"}
    for name in memory.arena._places:
        if memory.arena.bytes_of(name) and (name in messages or not name.startswith("buffer/")) and name != "launch":
            run.write(name)


def serve_alone(run: DeviceRun, serving: int, count: int, sampling=GREEDY) -> tuple[np.ndarray, float]:
    """Ids of the first `count` tokens, and tokens a second (median)."""
    restart(run, (0, serving), sampling)
    state = run.run(lambda s: s["tokens_served"] >= count, 8.0)
    n = int(state["tokens_served"])
    if n < count:
        raise RuntimeError(f"{serving} SMs served only {n} tokens: {state['abort']}")
    served = run.read("served")[:n]
    show_families(state)
    return served["token"][:count].copy(), 1e9 / float(np.median(np.diff(served["time_ns"].astype(np.int64))))


def tokens(kernel: Kernel) -> None:
    """Greedy tokens of `model-s` against PyTorch, on several numbers of SMs; with temperature; beside training."""
    run, count = decoding_run(kernel), 400
    ids, rate = serve_alone(run, 28, count)
    with torch.no_grad():
        inputs = torch.tensor([[FIRST_TOKEN, *ids[: count - 1].tolist()]], device="cuda")
        logits = Reference(run).logits(inputs)[:, :50_257]
    best, chosen = logits.max(1).values, logits.gather(1, torch.from_numpy(ids.astype(np.int64)).cuda()[:, None])[:, 0]
    behind, same = float((best - chosen).max() / logits.std()), (logits.argmax(1).cpu().numpy() == ids).mean()
    check("tokens", "28 SMs", behind, 0.05, f"greedy choice behind the best, in deviations; {same:.4f} the same; "
                                            f"{rate:.0f} tokens/s")
    for serving, few in ((28, count), (24, count), (32, count), (132, count), (5, 300), (1, 100)):
        again, rate = serve_alone(run, serving, few)
        check("tokens", f"{serving} SMs", float((again != ids[:few]).sum()), 0, f"tokens differ; {rate:.0f} tokens/s")
    for sampling in ((0.8, 0, 0.95), (0.8, 40, 1.0), (1.0, 0, 1.0)):
        drawn = [serve_alone(run, serving, 200, sampling) for serving in (28, 24)]
        check("tokens", f"sampled {sampling}", float((drawn[0][0] != drawn[1][0]).sum()), 0,
              f"tokens differ; {drawn[0][1]:.0f} tokens/s")


def served_by(run: DeviceRun, count: int) -> np.ndarray:
    """abi.SERVED of at least `count` tokens."""
    state = run.run(lambda s: s["tokens_served"] >= count, 8.0)
    n = int(state["tokens_served"])
    if n < count:
        raise RuntimeError(f"only {n} tokens were served: {state['abort']}")
    return run.read("served")[: min(n, abi.SERVED_RING)]


def streams(kernel: Kernel) -> None:
    """Stories of several streams, each as when it is told alone; a prompt read in chunks; tokens a second."""
    run, count = decoding_run(kernel, abi.MAX_STREAMS), 150
    every = tuple(range(abi.MAX_STREAMS))
    for sampling in (GREEDY, (0.8, 0, 0.95)):
        alone = []
        for stream in every:
            restart(run, (0, 28), sampling, (stream,))
            alone.append(served_by(run, count)["token"][:count])
        for telling, serving in ((every, 28), (every, 24), (every[2:5], 28), (every, 7)):
            restart(run, (0, serving), sampling, telling)
            served = served_by(run, count * len(telling) + abi.PASS_ROWS)
            differ = sum(int((served["token"][served["stream"] == stream][:count] != alone[stream]).sum())
                         for stream in telling)
            pass_us = float(np.median(np.diff(served["time_ns"][:: len(telling)].astype(np.int64)))) / 1e3
            check("streams", f"{len(telling)} on {serving} SMs, {sampling}", float(differ), 0,
                  f"tokens differ; {pass_us:.0f} us a pass, {1e6 * len(telling) / pass_us:.0f} tokens/s")
    restart(run, (0, 28), GREEDY, (3,))
    whole = served_by(run, 400)["token"][:400]
    for telling in ((3,), (3, 0, 1)):
        restart(run, (0, 28), GREEDY, telling, whole[:250])
        served = served_by(run, 400 * len(telling))
        own = served[served["stream"] == 3][:400]
        took_us = float(own["time_ns"][250] - own["time_ns"][0]) / 1e3
        check("streams", f"prompt of 250, {len(telling)} streams", float((own["token"] != whole[: len(own)]).sum()), 0,
              f"tokens differ; read in {took_us:.0f} us")
    for telling in ((0,), every[:2], every[:4], every):
        restart(run, (96, 28), GREEDY, telling)
        state = run.run(lambda s: s["steps_done"] >= 60, 12.0)
        steps = int(state["steps_done"])
        served = run.read("served")[: int(state["tokens_served"])]
        ms = float(np.median(np.diff(run.read("step_end_ns")[:steps].astype(np.int64)))) / 1e6
        seconds = float(served["time_ns"][-1] - served["time_ns"][0]) / 1e9
        check("streams", f"{len(telling)} beside training", 0.0 if steps >= 60 else 1.0, 0,
              f"{len(served) / seconds:.0f} tokens/s, {ms:.2f} ms a step")


def beside(kernel: Kernel) -> None:
    """Tokens a second while 96 SMs train, and milliseconds a step with and without 28 that serve."""
    run = decoding_run(kernel)
    for what, roles, sampling in (("idle", (96, 0), GREEDY), ("greedy", (96, 28), GREEDY),
                                  ("sampled", (96, 28), (0.8, 0, 0.95))):
        restart(run, roles, sampling)
        state = run.run(lambda s: s["steps_done"] >= 100, 12.0)
        steps, n = int(state["steps_done"]), int(state["tokens_served"])
        ms = float(np.median(np.diff(run.read("step_end_ns")[:steps].astype(np.int64)))) / 1e6
        note = f"{what}: {ms:.2f} ms a step"
        if n > 10:
            apart = np.diff(run.read("served")["time_ns"][:n].astype(np.int64)) / 1e3
            note += (f", {1e6 / apart.mean():.0f} tokens/s; us: median {np.median(apart):.0f}, "
                     f"p90 {np.quantile(apart, 0.9):.0f}, p99 {np.quantile(apart, 0.99):.0f}")
        check("beside", what, 0.0 if steps >= 100 and not state["abort"]["code"] else 1.0, 0, note)
        show_families(state)


def doom(kernel: Kernel) -> None:
    """The commands of the scripted player's first tics are those of the CPU: so is the game that they answer to."""
    from ofa_tui.engine.config import DoomConfig
    file = Path("doom.npz")
    if not file.is_file():
        print("no doom.npz (blob, commands, game_bytes of a host run): nothing to compare with")
        return
    given = np.load(file)
    wanted = given["commands"].view(abi.DOOM_COMMAND)
    game = DoomConfig(given["blob"].tobytes(), np.zeros((14, 256, 3), np.uint8))
    config = run_config((1, 0, 1), SMALL, replace(SMALL_TRAIN, steps=1), 4096, doom=game, tics_per_s=0)
    run = DeviceRun(kernel, config, game_bytes=int(given["game_bytes"]))
    begin = time.monotonic()
    state = run.run(lambda s: s["frames"][0] >= len(wanted), 40.0)
    seconds, n = time.monotonic() - begin, int(state["frames"][0])
    got = run.read("doom_commands")[0][: len(wanted)]
    same = int((got == wanted).sum())
    check("doom", "commands", float(len(wanted) - same) if n >= len(wanted) else math.nan, 0,
          f"{same} of {len(wanted)} tics the same; {n / seconds:.0f} tics/s; {state['abort']['code']}")
    show_families(state)


PARTS = {part.__name__: part for part in (
    products, attention, rows, small_step, small_steps, tokens, streams, beside, model_s_step, model_s_steps, doom,
    bitwise)}
LIMIT_S = {"tokens": 120, "streams": 120, "beside": 120, "model_s_step": 120, "model_s_steps": 120, "bitwise": 150}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("cubin", type=Path)
    parser.add_argument("--part", nargs="*", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--out", type=Path, default=Path("."))
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        torch.manual_seed(1)
        kernel = Kernel(options.cubin)
        print(f"registers {kernel.attribute(4)} local {kernel.attribute(3)} bytes", flush=True)
        PARTS[options.part[0]](kernel)
        print("RESULTS " + json.dumps(results))
        return 0
    table: list[list] = []
    for part in options.part:
        began = time.monotonic()
        log = options.out / f"{part}.log"
        with log.open("w") as out:
            try:
                code = subprocess.run([sys.executable, __file__, str(options.cubin), "--part", part, "--inside"],
                                      stdout=out, stderr=subprocess.STDOUT, timeout=LIMIT_S.get(part, 60)).returncode
            except subprocess.TimeoutExpired:
                code = 124
        text = log.read_text()
        lines = text.splitlines()
        print(f"=== {part}: exit {code}, {time.monotonic() - began:.1f} s")
        print("\n".join(line for line in lines if not line.startswith("RESULTS"))[-6000:], flush=True)
        found = [json.loads(line[8:]) for line in lines if line.startswith("RESULTS")]
        table += found[0] if found else [[part, "did not end", math.nan, 0, f"exit {code}"]]
    failed = [row for row in table if not row[2] <= row[3]]
    print(f"{len(table) - len(failed)} checks passed, {len(failed)} failed")
    for row in failed:
        print("FAILED", *row)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
