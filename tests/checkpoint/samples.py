"""Checkpoints without an engine: small states of nothing in particular."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

import numpy as np

from ofa_tui import settings
from ofa_tui.checkpoint.checkpoint import Described, Identity, tensors_of
from ofa_tui.checkpoint.tensors import write_tensors
from ofa_tui.data.tokenizers import ByteTokenizer
from ofa_tui.engine.config import RunConfig, RunState, Sampling, ServingState, StreamState, TrainState
from ofa_tui.presets import ModelConfig, TrainConfig
from ofa_tui.program.graph import matrix_shapes

MODEL = ModelConfig(layers=2, width=8, heads=2, feed_forward=16, context=12, vocab=257)
RUN = RunConfig("small", MODEL, TrainConfig(batch=3, steps=9, learning_rate=3e-3, warmup_steps=3),
                np.arange(200, dtype=np.int32), np.arange(50, dtype=np.int32), ByteTokenizer())
ROWS = 3


def identity(run: RunConfig = RUN) -> Identity:
    return Identity.of(run, "host", "f4")


def options(*arguments: str) -> dict[str, object]:
    """Plain values of the command line's options."""
    parser = argparse.ArgumentParser()
    settings.add_arguments(parser)
    return settings.from_arguments(parser.parse_args(arguments)).as_dict()


def state(step: int) -> RunState:
    rng = np.random.default_rng(step)
    weights, m, v = ({name: rng.random(shape, np.float32) for name, shape in matrix_shapes(MODEL).items()}
                     for _ in range(3))
    caches = [{f"layers.{layer}": np.ones((ROWS, MODEL.width), np.float32) for layer in range(MODEL.layers)}
              for _ in range(2)]
    stream = StreamState(token=20, story=4, telling=True, tokens=np.arange(ROWS, dtype=np.int32),
                         versions=np.zeros(ROWS, np.uint64), keys=caches[0], values=caches[1],
                         prompt=np.zeros(0, np.int32), seed=7, sampling=Sampling())
    return RunState(step, False, TrainState(weights, m, v), ServingState(20, 5, (stream,)))


def write(path: Path, step: int, run: RunConfig = RUN, **changes: object) -> Path:
    """A checkpoint at `path`; `changes` are to RUN."""
    run = dataclasses.replace(run, **changes)
    described = Described(identity(run), run.train, run.tokenizer, options("--preset", "tiny"))
    write_tensors(path, *tensors_of(state(step), described))
    return path
