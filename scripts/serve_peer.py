"""The ways to decode our model in PyTorch that bench_serve.py compares with; the model is bench_peer.py's.

Weights, activations and cache of one type, bf16 on a GPU; rotation in f4; greedy. The cache has room for a whole
context and is read as a whole, with what comes after the position hidden: shapes that never change are what CUDA graphs
and the compiler need. On a GPU a token is one replay of a graph, which also writes the token down and moves on, so that
the host has nothing to do between two tokens and enqueues a story at a time. Needs PyTorch and NumPy.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from bench_peer import Model
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ofa_tui.engine.config import RunConfig

WARM_TOKENS = 3


@dataclass(frozen=True)
class Variant:
    name: str
    compiled: bool


VARIANTS = {"eager": Variant("PyTorch eager", False), "compiled": Variant("torch.compile", True)}


class Peer:
    """Tells `len(first)` stories side by side, each from a token of its own, of a whole context each."""

    def __init__(self, config: RunConfig, weights: Mapping[str, np.ndarray], variant: Variant, first: Sequence[int],
                 device: str, dtype: torch.dtype) -> None:
        """`weights` f4 by parameter name. On a GPU `capture` comes next, else `run`."""
        self._context, self._used = config.model.context, config.tokenizer.size
        file: dict[str, Any] = {**weights, "config": json.dumps(dataclasses.asdict(config.model))}
        model = Model(file).requires_grad_(False).to(device)
        for parameter in model.parameters():
            parameter.data = parameter.data.to(dtype)
        self._next = torch.compile(model.next_token, dynamic=False) if variant.compiled else model.next_token
        self._device = torch.device(device)
        shape = (len(first), config.model.heads, self._context, config.model.head_dim)
        self._keys, self._values = (
            [torch.zeros(shape, dtype=dtype, device=device) for _ in range(config.model.layers)] for _ in "kv")
        self._first = torch.tensor(first, device=device)[:, None]
        self._token, self._position = self._first.clone(), torch.zeros(1, dtype=torch.int64, device=device)
        self._story = torch.zeros(len(first), self._context, dtype=torch.int64, device=device)
        self._stream: torch.cuda.Stream | None = None
        self._graph: Any = None

    @torch.no_grad()
    def capture(self, stream: torch.cuda.Stream) -> None:
        """From here on everything runs on that stream. Afterwards nothing is compiled, loaded or allocated any more."""
        self._graph, self._stream = None, stream
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            for _ in range(WARM_TOKENS):
                self._step()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            self._step()
        self._graph = graph
        self.run(1)

    @torch.no_grad()
    def run(self, stories: int) -> np.ndarray:
        """f8 [stories, context]: seconds from each token to the next; the first of a story counts from its beginning.

        All streams have a token at the same time.
        """
        if self._stream is None:
            return np.array([self._tell_on_cpu() for _ in range(stories)])
        with torch.cuda.stream(self._stream):
            return np.array([self._tell(self._stream) for _ in range(stories)])

    def tokens(self) -> np.ndarray:
        """i8 [streams, context]: the last stories."""
        return self._story.cpu().numpy()

    def _tell(self, stream: torch.cuda.Stream) -> list[float]:
        events = [torch.cuda.Event(enable_timing=True) for _ in range(self._context + 1)]
        events[0].record(stream)
        self._begin()
        for event in events[1:]:
            self._graph.replay()
            event.record(stream)
        events[-1].synchronize()
        return [before.elapsed_time(after) / 1e3 for before, after in itertools.pairwise(events)]

    def _tell_on_cpu(self) -> list[float]:
        moments = [time.perf_counter()]
        self._begin()
        for _ in range(self._context):
            self._step()
            moments.append(time.perf_counter())
        return np.diff(moments).tolist()

    def _begin(self) -> None:
        self._token.copy_(self._first)
        self._position.zero_()

    def _step(self) -> None:
        chosen: Tensor = self._next(self._token, self._position, self._keys, self._values, self._context, self._used)
        self._story.index_copy_(1, self._position, chosen)
        self._token.copy_(chosen)
        self._position.add_(1)
