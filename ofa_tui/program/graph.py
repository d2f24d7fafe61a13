"""A model as operations on whole matrices, before they are cut into tiles.

`model_graph` lists, for each of the four task programs, the operations in the order in which their tasks will be
claimed, and every buffer they touch. A node's operands follow its row in `ops.OPS`.

On a target with masters a weight's gradient and its update are one node; on one with streamed decoding the tokens'
nodes pass on messages.

Names: the residual stream entering layer i is "layers.i.in" (after the last layer "norm.in"), between its two halves
"layers.i.mid"; the output of a weight's product is "<weight>.y"; the gradient of an activation is "<activation>.d".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from ofa_tui import abi
from ofa_tui.presets import ModelConfig, TrainConfig
from ofa_tui.program.ops import ADAMW_DECAY, STATISTICS_TILE
from ofa_tui.program.targets import Target
from ofa_tui.program.tiles import Tiling
from ofa_tui.program.types import Buffer, View

Split = Literal[
    "once",          # one task that owns the whole output
    "rows",          # a task per row block, all columns
    "single_rows",   # a task per row, all columns
    "row_tiles",     # row blocks x column tiles
    "heads",         # a task per sequence and head
    "weight_tiles",  # tiles of a weight gradient
    "table_rows",    # stripes of the token table
    "stripes",       # stripes of a weight for the optimiser
    "columns",       # column tiles of a decode product
    "decode_heads",  # a task per head
    "units",         # a task per unit of a head
]
"""How a node's output is divided among tasks."""


@dataclass(frozen=True)
class Node:
    """One operation on whole matrices."""

    name: str
    op: str
    operands: tuple[View | None, ...]
    split: Split
    flags: int = 0
    counter: str = ""
    """Counter that its tasks share with those of other nodes; by default the node has counters of its own."""
    wave: str = ""
    """Neighbouring nodes of one wave interleave row block by row block, each one block behind the node before it."""
    after_previous: str = ""
    """Waits for this node of the iteration before."""
    joins: str = ""
    """Shared counter it waits for."""
    index: int = 0
    """Row of the only tile of a node without operands (the game of a doom_tic)."""


@dataclass
class Graph:
    buffers: dict[str, Buffer] = field(default_factory=dict)
    parameters: list[str] = field(default_factory=list)
    programs: dict[str, list[Node]] = field(default_factory=dict)


def model_graph(model: ModelConfig, train: TrainConfig, tiling: Tiling, games: int, streams: int, target: Target
                ) -> Graph:
    """The graph of `model` trained with `train`, which tells `streams` stories at once beside `games` Doom games."""
    buffers = _Buffers(model, train, streams, target)
    buffers.add_weights(train.batch * model.context // tiling.rows_of("norm_backward"))
    buffers.add_activations()
    graph = Graph(buffers.all, list(matrix_shapes(model)))
    graph.programs["train"] = [
        Node("step_begin", "step_begin", (), "once", after_previous="publish"),
        *_forward(model, "cross_entropy", target),
        *_backward(model, target),
        Node("publish", "publish", (), "once", joins="step.done"),
    ]
    graph.programs["sweep"] = [
        Node("sweep_begin", "sweep_begin", (), "once", after_previous="sweep_loss"),
        *_forward(model, "cross_entropy_loss", target),
        Node("sweep_loss", "sweep_loss", _views("losses"), "once"),
    ]
    if target.streamed_decode:
        buffers.add_streamed_decode()
        graph.programs["decode"] = list(_streamed_decode(model))
    else:
        buffers.add_decode()
        graph.programs["decode"] = list(_decode(model))
    graph.programs["doom"] = [
        Node(f"game {game}", "doom_tic", (), "once", after_previous=f"game {game}", index=game) for game in range(games)
    ]
    return graph


def matrix_shapes(model: ModelConfig) -> dict[str, tuple[int, int]]:
    """Shape of every parameter in their fixed order: [out, in] for matrices, [1, width] for gains."""
    width, inner = model.width, model.feed_forward
    shapes: dict[str, tuple[int, int]] = {"embed": (model.vocab, width)}
    for layer in _layers(model):
        shapes[f"{layer}.norm1"] = (1, width)
        shapes[f"{layer}.qkv"] = (3 * width, width)
        shapes[f"{layer}.proj"] = (width, width)
        shapes[f"{layer}.norm2"] = (1, width)
        shapes[f"{layer}.fc1"] = (inner, width)
        shapes[f"{layer}.fc2"] = (width, inner)
    shapes["norm"] = (1, width)
    shapes["head"] = (model.vocab, width)
    return shapes


def is_gain(parameter: str) -> bool:
    """True for the RMSNorm gains, which are vectors and never decay."""
    return parameter.rpartition(".")[2].startswith("norm")


def _layers(model: ModelConfig) -> list[str]:
    return [f"layers.{i}" for i in range(model.layers)]


def _residual(model: ModelConfig, layer: int) -> str:
    return f"layers.{layer}.in" if layer < model.layers else "norm.in"


def _views(*names: str) -> tuple[View, ...]:
    return tuple(View(name) for name in names)


def halves(model: ModelConfig) -> int:
    """Units of a head in streamed decoding: two where each has whole blocks of 16 weight rows, else one."""
    return 2 if model.head_dim % 64 == 0 else 1


# --- buffers ---------------------------------------------------------------------------------------------------------


class _Buffers:
    def __init__(self, model: ModelConfig, train: TrainConfig, streams: int, target: Target) -> None:
        self.all: dict[str, Buffer] = {}
        self._model, self._train, self._streams, self._target = model, train, streams, target

    def _add(self, kind: str, shapes: dict[str, tuple[int, int]], dtype: str = "f4", copies: int = 1,
             layout: str = "rows", generations: int = 1) -> None:
        for name, shape in shapes.items():
            self.all[name] = Buffer(name, shape, dtype, kind, copies, layout, generations)

    def add_weights(self, gain_parts: int) -> None:
        """`gain_parts`: row blocks whose gradients of a gain are kept apart."""
        for name, shape in matrix_shapes(self._model).items():
            self._add("moment", {f"{name}.m": shape, f"{name}.v": shape})
            if is_gain(name):
                self._add("weight", {name: shape}, copies=3)
                self._add("gradient", {f"{name}.grad": shape, f"{name}.dgain": (gain_parts, shape[1])})
                continue
            self._add("weight", {name: shape}, self._target.storage, copies=3)
            if not self._target.masters:
                self._add("gradient", {f"{name}.grad": shape})
                continue
            self._add("master", {f"{name}.master": shape})
            if name != "embed":
                self._add("weight", {f"{name}.stream": shape}, self._target.storage, copies=3, layout="stream")

    def add_activations(self) -> None:
        """The residual stream is f4, its gradient and all other matrices are in the target's storage dtype."""
        model, storage = self._model, self._target.storage
        rows, width, inner = self._train.batch * model.context, model.width, model.feed_forward
        residual = {f"layers.{i}.mid": (rows, width) for i in range(model.layers)}
        residual |= {_residual(model, i): (rows, width) for i in range(model.layers + 1)}
        inputs = {"norm.y": (rows, width)}
        for layer in _layers(model):
            inputs[f"{layer}.norm1.y"] = inputs[f"{layer}.norm2.y"] = inputs[f"{layer}.attention"] = (rows, width)
            inputs[f"{layer}.qkv.y"] = (rows, 3 * width)
            inputs[f"{layer}.fc1.y"] = (rows, inner)
            self._add("activation", {f"{layer}.norm1.rstd": (rows, 1), f"{layer}.norm2.rstd": (rows, 1),
                                     f"{layer}.attention.lse": (rows, model.heads)})
            self._add("activation", {f"{layer}.gelu": (rows, inner)}, storage)
        self._add("activation", residual)
        self._add("activation", inputs | {f"{name}.d": shape for name, shape in (residual | inputs).items()}, storage)
        self._add("activation", {"logits": (rows, model.vocab)}, storage)
        self._add("activation", {"norm.rstd": (rows, 1), "losses": (rows, 1)})
        if self._target.masters:
            tiles = -(-model.vocab // STATISTICS_TILE)
            self._add("activation", {"logits.statistics": (rows, 2 * tiles)})

    def add_decode(self) -> None:
        width = self._model.width
        self._add_caches()
        for layer in _layers(self._model):
            self._add("activation", {
                f"decode.{layer}.in": (abi.PASS_ROWS, width),
                f"decode.{layer}.qkv.y": (abi.PASS_ROWS, 3 * width),
                f"decode.{layer}.attention": (abi.PASS_ROWS, width),
                f"decode.{layer}.mid": (abi.PASS_ROWS, width),
                f"decode.{layer}.gelu": (abi.PASS_ROWS, self._model.feed_forward),
            })
        self._add("activation", {"decode.norm.in": (abi.PASS_ROWS, width)})
        self._add_sampling()

    def add_streamed_decode(self) -> None:
        """One buffer per kind of message, rewritten in every layer."""
        model = self._model
        self._add_caches()
        units = model.heads * halves(model)
        self._add_message("decode.x", (abi.PASS_ROWS, model.width), 2 * model.layers + 1)
        self._add_message("decode.scores", (units, abi.PASS_ROWS * model.context), model.layers)
        self._add_message("decode.attention", (abi.PASS_ROWS, model.width), model.layers)
        self._add_message("decode.gelu", (abi.PASS_ROWS, model.feed_forward), model.layers)
        self._add_sampling()

    def _add_sampling(self) -> None:
        self._add("activation", {"decode.logits": (abi.PASS_ROWS, self._model.vocab)})
        self._add("activation", {"decode.next": (abi.PASS_ROWS, 1)}, "i4")

    def _add_message(self, name: str, shape: tuple[int, int], generations: int) -> None:
        self._add("message", {name: shape}, "packet", generations=generations)

    def _add_caches(self) -> None:
        shape = (self._streams * self._model.context, self._model.width)
        for layer in _layers(self._model):
            self._add("cache", {f"{layer}.k_cache": shape, f"{layer}.v_cache": shape}, self._target.storage)


# --- the training step and the sweep ----------------------------------------------------------------------------


def _forward(model: ModelConfig, loss_op: str, target: Target) -> Iterable[Node]:
    yield Node("embed", "embed", _views("embed", _residual(model, 0)), "rows")
    for i, layer in enumerate(_layers(model)):
        x, mid, out = f"{layer}.in", f"{layer}.mid", _residual(model, i + 1)
        norm1, qkv, attention = f"{layer}.norm1", f"{layer}.qkv", f"{layer}.attention"
        norm2, fc1, gelu = f"{layer}.norm2", f"{layer}.fc1", f"{layer}.gelu"
        yield Node(norm1, "norm", _views(x, norm1, f"{norm1}.y", f"{norm1}.rstd"), "rows")
        yield Node(qkv, "matmul", _views(f"{norm1}.y", qkv, f"{qkv}.y"), "row_tiles")
        yield Node(attention, "attention", _views(f"{qkv}.y", attention, f"{attention}.lse"), "heads")
        yield Node(f"{layer}.proj", "matmul_residual", _views(attention, f"{layer}.proj", x, mid), "row_tiles")
        yield Node(norm2, "norm", _views(mid, norm2, f"{norm2}.y", f"{norm2}.rstd"), "rows")
        yield Node(fc1, "matmul_gelu", _views(f"{norm2}.y", fc1, f"{fc1}.y", gelu), "row_tiles")
        yield Node(f"{layer}.fc2", "matmul_residual", _views(gelu, f"{layer}.fc2", mid, out), "row_tiles")
    yield Node("norm", "norm", _views("norm.in", "norm", "norm.y", "norm.rstd"), "rows")
    if not target.masters:
        yield Node("head", "matmul", _views("norm.y", "head", "logits"), "row_tiles", wave="head")
        yield Node(loss_op, loss_op, _views("logits", "losses"), "rows", wave="head")
        return
    statistics = "logits.statistics"
    yield Node("head", "matmul_statistics", _views("norm.y", "head", "logits", statistics), "row_tiles", wave="head")
    yield Node(loss_op, f"{loss_op}_statistics", _views("logits", statistics, "losses"), "rows", wave="head")


def _backward(model: ModelConfig, target: Target) -> Iterable[Node]:
    """The chain of activation gradients, with weight gradients filling the gaps.

    A weight gradient joins all row blocks, so the next link of the chain stands between it and its last input in the
    queue, and the next weight gradient between it and its optimiser tasks: who claims one seldom has to wait. Three of
    a layer stand behind its attention, whose few long tasks leave blocks idle until they end (docs/simulator.md).
    """
    pending = _Updates(target)
    yield Node("head.dx", "matmul_dx", _views("logits", "head", "norm.y.d"), "row_tiles", wave="head")
    yield Node("loss", "loss", _views("losses"), "once", counter="step.done")
    yield from pending.weight("head", dy="logits", x="norm.y")
    yield _norm_backward("norm", "norm.in", "norm.y.d", skip=None, dx="norm.in.d")
    pending.gain("norm")
    for i in reversed(range(model.layers)):
        layer, dout = f"layers.{i}", f"{_residual(model, i + 1)}.d"
        fc1, gelu, attention = f"{layer}.fc1", f"{layer}.gelu", f"{layer}.attention"
        qkv, norm1, norm2 = f"{layer}.qkv", f"{layer}.norm1", f"{layer}.norm2"
        yield Node(f"{layer}.fc2.dx", "matmul_dx_gelu",
                   _views(dout, f"{layer}.fc2", f"{fc1}.y", f"{fc1}.y.d"), "row_tiles")
        weights = [*pending.weight(f"{layer}.fc2", dy=dout, x=gelu)]
        yield Node(f"{fc1}.dx", "matmul_dx", _views(f"{fc1}.y.d", fc1, f"{norm2}.y.d"), "row_tiles")
        weights += pending.weight(fc1, dy=f"{fc1}.y.d", x=f"{norm2}.y")
        yield _norm_backward(norm2, f"{layer}.mid", f"{norm2}.y.d", skip=dout, dx=f"{layer}.mid.d")
        pending.gain(norm2)
        yield Node(f"{layer}.proj.dx", "matmul_dx",
                   _views(f"{layer}.mid.d", f"{layer}.proj", f"{attention}.d"), "row_tiles")
        weights += pending.weight(f"{layer}.proj", dy=f"{layer}.mid.d", x=attention)
        yield Node(f"{attention}.backward", "attention_backward",
                   _views(f"{qkv}.y", attention, f"{attention}.lse", f"{attention}.d", f"{qkv}.y.d"), "heads")
        yield from weights
        yield Node(f"{qkv}.dx", "matmul_dx", _views(f"{qkv}.y.d", qkv, f"{norm1}.y.d"), "row_tiles")
        yield from pending.weight(qkv, dy=f"{qkv}.y.d", x=f"{norm1}.y")
        yield _norm_backward(norm1, f"{layer}.in", f"{norm1}.y.d", skip=f"{layer}.mid.d", dx=f"{layer}.in.d")
        pending.gain(norm1)
    yield from pending.table(f"{_residual(model, 0)}.d")


class _Updates:
    """Weight gradients, and optimiser nodes held back until the next weight gradient is in the queue."""

    def __init__(self, target: Target) -> None:
        self._fused = target.masters
        self._nodes: list[Node] = []

    def weight(self, name: str, dy: str, x: str) -> Iterable[Node]:
        if self._fused:
            operands = (*_views(dy, x, *_state(name)), View(name, 1), View(f"{name}.stream", 1))
            yield Node(f"{name}.dw", "matmul_dw_adamw", operands, "weight_tiles", flags=ADAMW_DECAY,
                       counter="step.done")
        else:
            yield Node(f"{name}.dw", "matmul_dw", _views(dy, x, f"{name}.grad"), "weight_tiles")
        yield from self.flush()
        if not self._fused:
            self._nodes.append(_adamw(name))

    def gain(self, name: str) -> None:
        self._nodes.append(_adamw_gain(name))

    def table(self, dx: str) -> Iterable[Node]:
        if self._fused:
            operands = (*_views(dx, *_state("embed")), View("embed", 1))
            yield Node("embed.dw", "embed_adamw", operands, "table_rows", flags=ADAMW_DECAY, counter="step.done")
        else:
            yield Node("embed.dw", "embed_backward", _views(dx, "embed.grad"), "table_rows")
        yield from self.flush()
        if not self._fused:
            yield _adamw("embed")

    def flush(self) -> Iterable[Node]:
        yield from self._nodes
        self._nodes = []


def _norm_backward(name: str, x: str, dy: str, skip: str | None, dx: str) -> Node:
    operands = (*_views(dy, x, f"{name}.rstd", name), View(skip) if skip else None, *_views(dx, f"{name}.dgain"))
    return Node(f"{name}.dx", "norm_backward", operands, "rows")


def _state(weight: str) -> tuple[str, str, str]:
    return f"{weight}.master", f"{weight}.m", f"{weight}.v"


def _adamw(name: str) -> Node:
    operands = (View(f"{name}.grad"), View(name), View(name, 1), View(f"{name}.m"), View(f"{name}.v"))
    return Node(f"{name}.adamw", "adamw", operands, "stripes", flags=ADAMW_DECAY, counter="step.done")


def _adamw_gain(name: str) -> Node:
    operands = (View(f"{name}.dgain"), View(name), View(name, 1), *_views(f"{name}.m", f"{name}.v", f"{name}.grad"))
    return Node(f"{name}.adamw", "adamw_gain", operands, "once", counter="step.done")


# --- a pass of decoding ------------------------------------------------------------------------------------------


def _decode(model: ModelConfig) -> Iterable[Node]:
    def local(name: str) -> str:
        return f"decode.{name}"

    yield Node("token_begin", "token_begin", _views("embed", local(_residual(model, 0))), "once",
               after_previous="sample")
    for i, layer in enumerate(_layers(model)):
        x, mid, out = local(f"{layer}.in"), local(f"{layer}.mid"), local(_residual(model, i + 1))
        qkv, attention, gelu = local(f"{layer}.qkv.y"), local(f"{layer}.attention"), local(f"{layer}.gelu")
        yield Node(f"{layer}.qkv", "decode_norm_matmul", _views(x, f"{layer}.norm1", f"{layer}.qkv", qkv), "columns")
        yield Node(f"{layer}.attention", "decode_attention",
                   _views(qkv, f"{layer}.k_cache", f"{layer}.v_cache", attention), "decode_heads")
        yield Node(f"{layer}.proj", "decode_matmul_residual", _views(attention, f"{layer}.proj", x, mid), "columns")
        yield Node(f"{layer}.fc1", "decode_norm_matmul_gelu",
                   _views(mid, f"{layer}.norm2", f"{layer}.fc1", gelu), "columns")
        yield Node(f"{layer}.fc2", "decode_matmul_residual", _views(gelu, f"{layer}.fc2", mid, out), "columns")
    logits = local("logits")
    yield Node("head", "decode_norm_matmul", _views(local("norm.in"), "norm", "head", logits), "columns")
    yield from _sampling()


def _streamed_decode(model: ModelConfig) -> Iterable[Node]:
    """Five messages a layer; message 2 i of decode.x enters layer i, 2 i + 1 leaves its attention."""

    def message(name: str, generation: int) -> View:
        return View(f"decode.{name}", generation=generation)

    def stream(name: str) -> View:
        return View(f"{name}.stream")

    yield Node("stream_begin", "stream_begin", (View("embed"), message("x", 0)), "once", after_previous="sample")
    for i, layer in enumerate(_layers(model)):
        x, mid, out = (message("x", 2 * i + part) for part in range(3))
        scores, attention, gelu = message("scores", i), message("attention", i), message("gelu", i)
        k, v = View(f"{layer}.k_cache"), View(f"{layer}.v_cache")
        yield Node(f"{layer}.qkv", "stream_qkv", (x, View(f"{layer}.norm1"), stream(f"{layer}.qkv"), k, v, scores),
                   "units")
        yield Node(f"{layer}.attention", "stream_attention", (scores, v, attention), "units")
        yield Node(f"{layer}.proj", "stream_matmul_residual", (attention, stream(f"{layer}.proj"), x, mid), "columns")
        yield Node(f"{layer}.fc1", "stream_norm_matmul_gelu",
                   (mid, View(f"{layer}.norm2"), stream(f"{layer}.fc1"), gelu), "columns")
        yield Node(f"{layer}.fc2", "stream_matmul_residual", (gelu, stream(f"{layer}.fc2"), mid, out), "columns")
    x, logits = message("x", 2 * model.layers), View("decode.logits")
    yield Node("head", "stream_norm_matmul", (x, View("norm"), stream("head"), logits), "columns")
    yield from _sampling()


def _sampling() -> Iterable[Node]:
    operands = _views("decode.logits", "decode.next")
    yield Node("sample_row", "sample_row", operands, "single_rows")
    yield Node("sample", "sample", operands, "once")
