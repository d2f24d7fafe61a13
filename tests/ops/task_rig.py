"""Runs the body of one task on NumPy arrays: a launch with a single task in it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ofa_tui import abi
from ofa_tui.engine.library import KernelLibrary
from ofa_tui.presets import ModelConfig, TrainConfig
from ofa_tui.program.ops import OPCODES

Tile = tuple[int, int, int, int]
SMALL = ModelConfig(layers=1, width=48, heads=2, feed_forward=96, context=40, vocab=61)


def matrix(rng: np.random.Generator, rows: int, cols: int, spare: int = 3) -> np.ndarray:
    """Normal f4 [rows, cols] whose rows are `spare` elements further apart than they are long."""
    return rng.standard_normal((rows, cols + spare)).astype(np.float32)[:, :cols]


def relative(measured: np.ndarray, expected: np.ndarray) -> float:
    """Norm of the difference over the norm of what is expected."""
    return float(np.linalg.norm(measured - expected) / np.linalg.norm(expected))


class TaskRig:
    """One model's launch. Tokens are those of a training step in which sequence b starts at token b * context."""

    def __init__(self, kernel: KernelLibrary, model: ModelConfig = SMALL, batch: int = 3,
                 tokens: np.ndarray | None = None) -> None:
        self.kernel, self.model, self.batch = kernel, model, batch
        self.launch = np.zeros(1, abi.LAUNCH)
        self.task = np.zeros(1, abi.TASK)
        self.operands = np.zeros(abi.MAX_OPERANDS, abi.OPERAND)
        self.windows = np.arange(batch, dtype=np.int64) * model.context
        self.tokens = np.zeros(1, np.int32) if tokens is None else tokens.astype(np.int32)
        shape = self.launch["model"]
        for name in ("layers", "width", "heads", "head_dim", "feed_forward", "context", "vocab", "rope_base",
                     "norm_epsilon"):
            shape[name] = getattr(model, name)
        shape["batch"] = batch
        data = self.launch["data"]
        data["train_tokens"], data["n_train"] = self.tokens.ctypes.data, len(self.tokens)
        data["train_windows"] = self.windows.ctypes.data
        self.launch["operands"] = self.operands.ctypes.data
        self.launch["programs"]["tasks"] = self.task.ctypes.data
        self.launch["programs"]["n_tasks"] = 1
        self.launch["scratch_bytes"] = size = kernel.scratch_bytes(self.launch)
        self._scratch = np.zeros(size + 64, np.uint8)
        self.launch["scratch"] = self._scratch.ctypes.data + -self._scratch.ctypes.data % 64

    def set_optimizer(self, train: TrainConfig) -> None:
        optimizer = self.launch["optimizer"]
        for name in ("learning_rate", "beta1", "beta2", "epsilon", "weight_decay", "warmup_steps"):
            optimizer[name] = getattr(train, name)
        optimizer["final_fraction"], optimizer["total_steps"] = train.final_lr_fraction, train.steps

    def run(self, op: str, arrays: Sequence[np.ndarray | None], tile: Tile, flags: int = 0, step: int = 0) -> None:
        """Runs task type `op` with f4 `arrays` [rows, cols] as operands, in the order of ops.py."""
        self.task["opcode"], self.task["flags"], self.task["tile"] = OPCODES[op], flags, tile
        self.task["operands"] = abi.NONE_U16
        for index, array in enumerate(arrays):
            if array is None:
                continue
            assert array.dtype == np.float32 and array.strides[1] == 4
            row = self.operands[index]
            row["base"], row["pitch"] = array.ctypes.data, array.strides[0] // 4
            row["rows"], row["cols"] = array.shape
            row["copies"] = 1
            self.task["operands"][0, index] = index
        self.kernel.run_task(self.launch.ctypes.data, abi.PROGRAMS.index("train"), step, 0)
