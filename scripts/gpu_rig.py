"""How task types of the Hopper kernel are run alone: the driver, a launch of one's own making, and what is checked.

Needs a Hopper GPU, PyTorch and NumPy; gpu_probe.py has the checks.
"""

from __future__ import annotations

import ctypes
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ofa_tui import abi
from ofa_tui.presets import ModelConfig, TrainConfig, preset
from ofa_tui.program.ops import OPCODES, OPS

SHARED_BYTES = 232_448
USES = 6
FLOAT32, BFLOAT16 = 7, 9
DEADLINE_S = 8.0

Tile = tuple[int, int, int, int]
results: list[tuple[str, str, float, float, str]] = []


# --- driver ---------------------------------------------------------------------------------------------------------


def driver() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")


def call(function, *arguments) -> None:
    code = function(*arguments)
    if code:
        raise RuntimeError(f"{function.__name__} returned {code}")


class Kernel:
    def __init__(self, cubin: Path) -> None:
        torch.cuda.init()
        torch.zeros(1, device="cuda")
        self.cuda = driver()
        self.module, self.function = ctypes.c_void_p(), ctypes.c_void_p()
        call(self.cuda.cuModuleLoadData, ctypes.byref(self.module), cubin.read_bytes())
        call(self.cuda.cuModuleGetFunction, ctypes.byref(self.function), self.module, b"megakernel")
        call(self.cuda.cuFuncSetAttribute, self.function, 8, SHARED_BYTES)

    def attribute(self, number: int) -> int:
        value = ctypes.c_int()
        call(self.cuda.cuFuncGetAttribute, ctypes.byref(value), number, self.function)
        return value.value

    def start(self, launch: np.ndarray, blocks: int, stream: torch.cuda.Stream) -> None:
        self._argument = launch.copy()
        arguments = (ctypes.c_void_p * 1)(self._argument.ctypes.data)
        call(self.cuda.cuLaunchKernel, self.function, blocks, 1, 1, self.attribute(0), 1, 1, SHARED_BYTES,
             ctypes.c_void_p(stream.cuda_stream), arguments, None)

    def tensor_map(self, address: int, dims: list[int], strides: list[int], box: list[int],
                   dtype: int = BFLOAT16) -> np.ndarray:
        """128-byte swizzle. `dims` inner first; `strides` in bytes of all but the innermost."""
        out = (ctypes.c_uint64 * 32)()
        aligned = ctypes.addressof(out) + -ctypes.addressof(out) % 64
        n = len(dims)
        call(self.cuda.cuTensorMapEncodeTiled, ctypes.c_void_p(aligned), dtype, n, ctypes.c_void_p(address),
             (ctypes.c_uint64 * n)(*dims), (ctypes.c_uint64 * max(1, n - 1))(*strides), (ctypes.c_uint32 * n)(*box),
             (ctypes.c_uint32 * n)(*([1] * n)), 0, 3, 2, 0)
        return np.frombuffer(ctypes.string_at(aligned, 128), np.uint8)


def maps_of(kernel: Kernel, address: int, rows: int, cols: int, pitch: int) -> list[np.ndarray]:
    """The maps of one bf16 matrix, one for each use (see cuda/tile/product.cuh)."""
    by_k = [64, rows, -(-cols // 64)], [2 * pitch, 128]
    return [
        kernel.tensor_map(address, [cols, rows], [2 * pitch], [64, 128]),
        kernel.tensor_map(address, [cols, rows], [2 * pitch], [64, 256]),
        kernel.tensor_map(address, *by_k, [64, 64, 2]),
        kernel.tensor_map(address, *by_k, [64, 64, 4]),
        kernel.tensor_map(address, [cols, rows], [2 * pitch], [64, 64]),
        np.zeros(128, np.uint8),
    ]


def maps_of_lines(kernel: Kernel, address: int, rows: int, cols: int, pitch: int) -> list[np.ndarray]:
    """The same of an f4 matrix, which has one use."""
    return [np.zeros(128, np.uint8)] * (USES - 1) + [
        kernel.tensor_map(address, [cols, rows], [4 * pitch], [32, 64], FLOAT32)]


def to_device(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(array).view(np.uint8).reshape(-1)).cuda()


def back(tensor: torch.Tensor, dtype: np.dtype) -> np.ndarray:
    return tensor.cpu().numpy().view(dtype)


# --- one task type --------------------------------------------------------------------------------------------------


class Rig:
    """A launch with tasks of one type. Operands are torch tensors, bf16 or f32, [rows, cols]."""

    def __init__(self, kernel: Kernel, model: ModelConfig, train: TrainConfig, tokens: np.ndarray,
                 blocks: int = 132) -> None:
        self.kernel, self.model, self.blocks = kernel, model, blocks
        self.keep: list[torch.Tensor] = []
        self.launch = launch = np.zeros(1, abi.LAUNCH)
        launch["n_sms"] = blocks
        for name in ("layers", "width", "heads", "head_dim", "feed_forward", "context", "vocab", "rope_base",
                     "norm_epsilon"):
            launch["model"][name] = getattr(model, name)
        launch["model"]["batch"] = train.batch
        for name in ("learning_rate", "beta1", "beta2", "epsilon", "weight_decay", "warmup_steps"):
            launch["optimizer"][name] = getattr(train, name)
        launch["optimizer"]["final_fraction"] = train.final_lr_fraction
        launch["optimizer"]["total_steps"] = train.steps
        launch["schedule"]["steps"] = 1
        launch["data"]["train_tokens"] = self.put(tokens.astype(np.int32))
        launch["data"]["n_train"] = len(tokens)
        launch["data"]["train_windows"] = self.put(np.arange(train.batch, dtype=np.int64) * model.context)
        launch["control"] = self.put(self._control())
        launch["scratch_bytes"] = 1 << 18
        launch["scratch"] = self.put(np.zeros(blocks << 18, np.uint8))
        launch["serve"] = self.put(np.zeros(1, abi.SERVE_STATE))
        launch["seats"] = self.put(np.zeros(abi.MAX_SMS, abi.SEAT))
        launch["losses"] = self.put(np.zeros(64, np.float32))
        launch["step_end_ns"] = self.put(np.zeros(64, np.uint64))
        roles = np.zeros(abi.MAX_SMS, np.uint32)
        roles[:blocks] = abi.TRAIN
        launch["roles"] = self.put(roles)

    def _control(self) -> np.ndarray:
        control = np.zeros(1, abi.CONTROL)
        control["stop"] = 1
        control["deadline_ns"] = int(2e9)
        return control

    def put(self, array: np.ndarray) -> int:
        self.keep.append(to_device(array))
        return self.keep[-1].data_ptr()

    def run(self, op: str, operands: list[torch.Tensor | None], tiles: list[Tile], flags: int = 0,
            repeat: int = 1) -> float:
        """Runs the tasks once (or each `repeat` times); returns milliseconds of the launch."""
        table = np.zeros(abi.MAX_OPERANDS, abi.OPERAND)
        maps: list[np.ndarray] = []
        tasks = np.zeros(len(tiles) * repeat, abi.TASK)
        tasks["opcode"], tasks["flags"] = OPCODES[op], flags | 0xC0
        tasks["signal"] = np.arange(len(tasks)) % 16
        tasks["tile"] = np.array(tiles * repeat, np.int32)
        tasks["operands"] = abi.NONE_U16
        for index, tensor in enumerate(operands):
            if tensor is None:
                continue
            row = table[index]
            row["base"], row["pitch"] = tensor.data_ptr(), tensor.stride(0)
            row["rows"], row["cols"] = tensor.shape
            row["copies"] = 1
            tasks["operands"][:, index] = index
            if tensor.dtype == torch.bfloat16 and tensor.stride(0) % 8 == 0 and tensor.shape[1] % 8 == 0:
                row["tensor_map"] = len(maps)
                maps += maps_of(self.kernel, tensor.data_ptr(), *tensor.shape, tensor.stride(0))
            elif tensor.dtype == torch.float32 and tensor.dim() == 2 and tensor.shape[1] % 32 == 0:
                row["tensor_map"] = len(maps)
                maps += maps_of_lines(self.kernel, tensor.data_ptr(), *tensor.shape, tensor.stride(0))
        launch = self.launch
        launch["operands"] = self.put(table)
        launch["tensor_maps"] = self.put(np.concatenate(maps) if maps else np.zeros(128, np.uint8))
        launch["programs"]["tasks"][0, 0], launch["programs"]["n_tasks"][0, 0] = self.put(tasks), len(tasks)
        launch["counters"] = self.put(np.zeros(16 * abi.COUNTER_STRIDE, np.uint64))
        counters = self.keep[-1]
        launch["queues"] = self.put(np.zeros(len(abi.ROLES), abi.QUEUE))
        launch["telemetry"] = self.put(np.zeros(1, abi.TELEMETRY))
        telemetry = self.keep[-1]
        torch.cuda.synchronize()
        stream = torch.cuda.Stream()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record(stream)
        self.kernel.start(launch, self.blocks, stream)
        end.record(stream)
        await_end(end, telemetry)
        state = back(telemetry, abi.TELEMETRY)[0]
        if state["abort"]["code"]:
            raise RuntimeError(f"{op} aborted: {state['abort']}")
        signals = back(counters, np.uint64).reshape(-1, abi.COUNTER_STRIDE)[:, 0]
        if int(signals.sum()) != len(tasks) or int(state["sms"]["tasks_done"].sum()) != len(tasks):
            done = state["sms"]["tasks_done"].sum()
            raise RuntimeError(f"{op}: {len(tasks)} tasks, {signals.sum()} signals, {done} done")
        self.telemetry = state
        return begin.elapsed_time(end)

    def note(self, op: str, ms: float | None = None) -> str:
        """Milliseconds of a launch and mean microseconds inside one task, for people."""
        return (f"{ms:.3f} ms " if ms is not None else "") + f"{self.mean_us(op):.1f} us"

    def mean_us(self, op: str) -> float:
        sms = self.telemetry["sms"]
        return float(sms["op_ns"][:, OPCODES[op]].sum() / sms["tasks_done"].sum() / 1e3)


def await_end(end: torch.cuda.Event, telemetry: torch.Tensor, limit_s: float = DEADLINE_S) -> None:
    give_up = time.monotonic() + limit_s
    while not end.query():
        if time.monotonic() > give_up:
            side = torch.cuda.Stream()
            with torch.cuda.stream(side):
                state = back(telemetry.to("cpu", non_blocking=False), abi.TELEMETRY)[0]
            show_state(state)
            print("still running: giving up", flush=True)
            import os
            os._exit(3)
        time.sleep(0.0005)


def show_state(state: np.ndarray) -> None:
    print("abort", state["abort"], "steps", state["steps_done"], "tokens", state["tokens_served"],
          "running", state["blocks_running"])
    names = [op.name for op in OPS]
    for sm, row in enumerate(state["sms"][:132]):
        opcode = int(row["opcode"])
        name = names[opcode] if opcode < len(names) else "-"
        if sm < 12 or sm % 16 == 0:
            print(f"  sm {sm:3} role {row['role']} {name:30} task {row['task']} phase {row['phase']} "
                  f"iteration {row['iteration']} done {row['tasks_done']}")


def grid(rows: int, tile_rows: int, columns: int, tile_columns: int) -> list[Tile]:
    return [(r, min(tile_rows, rows - r), c, min(tile_columns, columns - c))
            for r in range(0, rows, tile_rows) for c in range(0, columns, tile_columns)]


def relative(measured: torch.Tensor, expected: torch.Tensor) -> float:
    a, b = measured.detach().double(), expected.detach().double()
    return float((a - b).norm() / b.norm())


def check(name: str, what: str, error: float, limit: float, note: str = "") -> None:
    results.append((name, what, error, limit, note))
    ok = "ok  " if error <= limit else "FAIL"  # a NaN fails
    print(f"{ok} {name:28} {what:14} {error:10.3g} (limit {limit:g}) {note}", flush=True)


def normal(*shape: int, dtype: torch.dtype = torch.bfloat16, scale: float = 1.0) -> torch.Tensor:
    return (torch.randn(*shape, device="cuda") * scale).to(dtype)


def poison(*shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
    return torch.full(shape, float("nan"), device="cuda", dtype=dtype)


def gelu(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.gelu(x, approximate="tanh")


MODEL = preset("model-s").model
TRAIN = preset("model-s").train
BF16 = 4e-3
"""Relative norm of rounding to bf16 is 1.7e-3."""


def rig(kernel: Kernel, **changes) -> Rig:
    rng = np.random.default_rng(3)
    model = replace(MODEL, **{k: v for k, v in changes.items() if hasattr(MODEL, k)})
    train = replace(TRAIN, **{k: v for k, v in changes.items() if hasattr(TRAIN, k)})
    tokens = np.minimum(rng.zipf(1.2, train.batch * model.context + 1) - 1, model.vocab - 1)
    return Rig(kernel, model, train, tokens)
