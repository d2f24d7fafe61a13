"""Small models to compile, and all kinds of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from hypothesis import strategies as st

from ofa_tui.presets import ModelConfig, TrainConfig
from ofa_tui.program import tiles
from ofa_tui.program.lowering import compile_programs
from ofa_tui.program.targets import TARGETS
from ofa_tui.program.types import ProgramSet

SMALL = ModelConfig(layers=2, width=48, heads=3, feed_forward=72, context=64, vocab=160)
SMALL_TRAIN = TrainConfig(batch=6, steps=10, learning_rate=1e-3, warmup_steps=2)


def small_programs() -> ProgramSet:
    """A model of every kind of task with several tiles of each, in about 250 tasks."""
    return compile_programs(SMALL, SMALL_TRAIN, games=2)


SMALLEST = {
    "host": (ModelConfig(layers=1, width=32, heads=2, feed_forward=96, context=32, vocab=96), 2),
    "sm90": (ModelConfig(layers=1, width=128, heads=2, feed_forward=128, context=64, vocab=320), 2),
}
"""Model and batch of each target."""
TILES = {"SM90_TILE": (64, 256), "SM90_LOGIT_ROWS": 64, "ADAMW_ELEMENTS": 2048, "DECODE_ELEMENTS": 256,
         "FEWEST_BLOCKS": 2, "TASKS_PER_WEIGHT": 2}


@contextmanager
def small_tiles() -> Iterator[None]:
    """Tiles so small that a small model has several of each kind."""
    with mock.patch.multiple(tiles, **TILES):
        yield


def smallest_programs(target: str, layers: int = 1) -> ProgramSet:
    """As few tasks as have every kind of task and edge: about 150 a step and batch, 35 a token."""
    model, batch = SMALLEST[target]
    with small_tiles():
        return compile_programs(ModelConfig(**(vars(model) | {"layers": layers})),
                                TrainConfig(batch=batch, steps=10, learning_rate=1e-3, warmup_steps=2),
                                games=2, target=target)


@st.composite
def any_shape(draw: st.DrawFn, largest_rows: int = 4096) -> tuple[ModelConfig, TrainConfig]:
    heads = draw(st.integers(1, 5))
    head_dim = 2 * draw(st.integers(1, 24))
    context = draw(st.integers(1, 600))
    model = ModelConfig(
        layers=draw(st.integers(1, 3)), width=heads * head_dim, heads=heads, feed_forward=draw(st.integers(1, 300)),
        context=context, vocab=draw(st.integers(1, 900)),
    )
    batch = draw(st.integers(1, max(1, min(40, largest_rows // context))))
    train = TrainConfig(batch=batch, steps=5, learning_rate=1e-3, warmup_steps=1)
    return model, train


@st.composite
def sm90_shape(draw: st.DrawFn, largest_rows: int = 4096) -> tuple[ModelConfig, TrainConfig]:
    """All extents but the context are multiples of 16; the keys and values of a head fit into shared memory."""
    heads, head_dim = draw(st.integers(1, 5)), 16 * draw(st.integers(1, 12))
    longest = min(600, TARGETS["sm90"].shared_bytes // (4 * head_dim) - 3 * 64 - 64)
    context = draw(st.integers(1, longest))
    model = ModelConfig(
        layers=draw(st.integers(1, 3)), width=heads * head_dim, heads=heads, feed_forward=16 * draw(st.integers(1, 30)),
        context=context, vocab=16 * draw(st.integers(1, 60)),
    )
    batch = draw(st.integers(1, max(1, min(40, largest_rows // context))))
    return model, TrainConfig(batch=batch, steps=5, learning_rate=1e-3, warmup_steps=1)
