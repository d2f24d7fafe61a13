"""The ways to train our model in PyTorch that bench_train.py compares with; the model is bench_peer.py's.

Weights in f4, products in bf16 by autocast, flash attention, fused AdamW; eager or compiled, launched operation by
operation or as one CUDA graph a step. Needs PyTorch and NumPy.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from bench_peer import Model

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ofa_tui.engine.config import RunConfig
from ofa_tui.engine.memory import initial_weights
from ofa_tui.engine.telemetry import learning_rate
from ofa_tui.engine.windows import train_windows
from ofa_tui.program.types import ProgramSet

WARM_STEPS = 3


@dataclass(frozen=True)
class Variant:
    name: str
    compiled: bool
    graph: bool


VARIANTS = (
    Variant("PyTorch eager", False, False),
    Variant("PyTorch eager + CUDA graph", False, True),
    Variant("torch.compile", True, False),
    Variant("torch.compile + CUDA graph", True, True),
)


class Peer:
    """One training run from a configuration's initial weights, on its windows in their order."""

    def __init__(self, config: RunConfig, programs: ProgramSet, variant: Variant, device: str,
                 stream: torch.cuda.Stream | None) -> None:
        """Compiles, captures, and begins anew: afterwards nothing is loaded or allocated any more."""
        self._train, self._device, self._stream = config.train, torch.device(device), stream
        train, context = config.train, config.model.context
        shapes = {name: programs.buffers[name].shape for name in programs.parameters}
        file: dict[str, Any] = dict(initial_weights(shapes, train.init_std, config.seed))
        file["config"] = json.dumps(dataclasses.asdict(config.model))
        self._model = Model(file).to(self._device)
        self._loss_of = torch.compile(self._model, dynamic=False) if variant.compiled else self._model
        self._rate = torch.zeros((), device=self._device)
        matrices = [p for p in self._model.parameters() if p.dim() > 1]
        gains = [p for p in self._model.parameters() if p.dim() == 1]
        self._optimizer = torch.optim.AdamW(
            [{"params": matrices}, {"params": gains, "weight_decay": 0.0}], lr=self._rate,
            betas=(train.beta1, train.beta2), eps=train.epsilon, weight_decay=train.weight_decay, fused=True,
            capturable=variant.graph)
        self._tokens = torch.from_numpy(config.train_tokens.astype(np.int64)).to(self._device)
        windows = train_windows(len(config.train_tokens), context, train.batch, train.steps, config.seed)
        self._places = (torch.from_numpy(windows)[:, :, None] + torch.arange(context + 1)).to(self._device)
        self._inputs, self._targets = (torch.zeros(train.batch, context, dtype=torch.int64, device=self._device)
                                       for _ in range(2))
        self._loss = torch.zeros((), device=self._device)
        self._losses = torch.zeros(train.steps, device=self._device)
        self._first = [p.detach().clone() for p in self._model.parameters()]
        self._graph: Any = None
        if stream is not None:
            torch.cuda.synchronize()
        self._on_stream(lambda: self._get_ready(variant))

    def run(self, steps: int) -> np.ndarray:
        """f8 [steps]: milliseconds of each of the first `steps` steps, from weights as they were in the beginning."""
        self._on_stream(self._begin_anew)
        if self._device.type != "cuda":
            moments = [time.perf_counter()]
            for step in range(steps):
                self._step(step)
                moments.append(time.perf_counter())
            return 1e3 * np.diff(moments)
        events = [torch.cuda.Event(enable_timing=True) for _ in range(steps + 1)]

        def all_steps() -> None:
            events[0].record()
            for step in range(steps):
                self._step(step)
                events[step + 1].record()

        self._on_stream(all_steps)
        events[-1].synchronize()
        return np.array([before.elapsed_time(after) for before, after in itertools.pairwise(events)])

    def losses(self, steps: int) -> list[float]:
        """Of the last run."""
        return self._losses[:steps].tolist()

    def _on_stream(self, work: Callable[[], None]) -> None:
        if self._stream is None:
            work()
            return
        with torch.cuda.stream(self._stream):
            work()
        self._stream.synchronize()

    def _get_ready(self, variant: Variant) -> None:
        for step in range(WARM_STEPS):
            self._step(step)
        if variant.graph:
            self._optimizer.zero_grad(set_to_none=True)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=self._stream):
                self._work()
            self._graph = graph
            self._step(0)
        self._begin_anew()

    @torch.no_grad()
    def _begin_anew(self) -> None:
        for parameter, first in zip(self._model.parameters(), self._first, strict=True):
            parameter.copy_(first)
        for state in self._optimizer.state.values():
            for tensor in state.values():
                tensor.zero_()

    def _step(self, step: int) -> None:
        self._rate.fill_(learning_rate(step, self._train))
        rows = self._tokens[self._places[step]]
        self._inputs.copy_(rows[:, :-1])
        self._targets.copy_(rows[:, 1:])
        if self._graph is not None:
            self._graph.replay()
        else:
            self._optimizer.zero_grad(set_to_none=True)
            self._work()
        self._losses[step] = self._loss

    def _work(self) -> None:
        with torch.autocast(self._device.type, torch.bfloat16):
            loss = self._loss_of(self._inputs, self._targets)
        loss.backward()
        self._optimizer.step()
        self._loss.copy_(loss.detach())
