"""From a graph of whole matrices to arrays of tasks: tiles, counters, waits.

Waits are not written by hand. Every buffer remembers which counters stand for the rows written so far; a task waits for
those of the rows it reads, less those that are already implied by the others. Messages need no waits: who reads one
looks for its generation.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from ofa_tui import abi
from ofa_tui.errors import OfaError
from ofa_tui.presets import ModelConfig, TrainConfig
from ofa_tui.program import tiles
from ofa_tui.program.graph import Graph, Node, halves, model_graph
from ofa_tui.program.ops import FENCE_AFTER, FENCE_BEFORE, OPCODES, OPS, Access
from ofa_tui.program.regions import REGIONS, Tile
from ofa_tui.program.targets import Target, target_called
from ofa_tui.program.tiles import Tiling
from ofa_tui.program.types import Buffer, ProgramSet, TaskProgram, View

Wait = tuple[int, int, int, int]  # first, count, n, lag


def compile_programs(
    model: ModelConfig, train: TrainConfig, *, games: int = 1, streams: int = 1, target: str = "host", storage: str = ""
) -> ProgramSet:
    """The four task programs of `model`, trained with `train`, which tells `streams` stories at once beside `games`
    Doom games.

    `storage` replaces the target's dtype of matrices: the host runs the programs of every target in f4. Raises OfaError
    for a shape that cannot be compiled or an unknown target.
    """
    chosen = target_called(target)
    if storage:
        chosen = dataclasses.replace(chosen, storage=storage)
    _check(model, train, games, streams, chosen)
    tiling = tiles.choose_tiling(model, train, chosen)
    graph = model_graph(model, train, tiling, games, streams, chosen)
    lowering = _Lowering(model, tiling, graph, chosen)
    programs = {name: lowering.program(name) for name in abi.PROGRAMS}
    return ProgramSet(model, train, target, chosen.storage, games, streams, graph.buffers, lowering.views,
                      lowering.counters, programs, list(graph.parameters))


MOST_VIEWS = abi.NONE_U16
"""Operands that a descriptor can tell apart."""
BLOCK = 16
"""Rows and columns of a block of the stream order."""


def _check(model: ModelConfig, train: TrainConfig, games: int, streams: int, target: Target) -> None:
    sizes = {"layers": model.layers, "width": model.width, "heads": model.heads, "feed_forward": model.feed_forward,
             "context": model.context, "vocab": model.vocab, "batch": train.batch}
    for name, size in sizes.items():
        if size < 1:
            raise OfaError(f"the model's {name} is {size}; it must be at least 1")
    if model.width % model.heads or model.head_dim % 2:
        raise OfaError(f"width {model.width} cannot be divided into {model.heads} heads of an even size; "
                       "change width or heads")
    if target.streamed_decode:
        _check_streamed(model, target)
    if -(-train.batch * model.context // tiles.SM90_TILE[0]) > tiles.MOST_BLOCKS and target.name == "sm90":
        raise OfaError(f"batch {train.batch} x context {model.context} is more than {tiles.MOST_BLOCKS} blocks of "
                       f"{tiles.SM90_TILE[0]} rows, the most that a task can wait for; choose a smaller batch")
    if not 0 <= games <= abi.MAX_GAMES:
        raise OfaError(f"{games} Doom games were asked for; choose 0 to {abi.MAX_GAMES}")
    if not 1 <= streams <= abi.MAX_STREAMS:
        raise OfaError(f"{streams} streams of text were asked for; choose 1 to {abi.MAX_STREAMS}")


def _check_streamed(model: ModelConfig, target: Target) -> None:
    sizes = {"width": model.width, "feed_forward": model.feed_forward, "vocab": model.vocab,
             "head size": model.head_dim}
    for name, size in sizes.items():
        if size % BLOCK:
            raise OfaError(f"the model's {name} is {size}; for target {target.name} it must be a multiple of {BLOCK}")


@dataclass
class _Task:
    node: Node
    tile: Tile
    signal: int
    waits: tuple[Wait, ...] = ()


@dataclass
class _Counters:
    """The counters of one program while its tasks are made."""

    produced: dict[int, int] = field(default_factory=dict)  # counter: tasks that signal it
    ancestors: dict[int, int] = field(default_factory=dict)  # counter: bit set of counters complete before it
    shared: dict[str, int] = field(default_factory=dict)


class _Lowering:
    def __init__(self, model: ModelConfig, tiling: Tiling, graph: Graph, target: Target) -> None:
        self.model = model
        self.target = target
        self.tiling = tiling
        self.graph = graph
        self.views: list[View] = []
        self.counters: list[str] = []
        self._operand: dict[View, int] = {}

    def program(self, name: str) -> TaskProgram:
        nodes = self.graph.programs[name]
        known = _Counters()
        tasks_of = {node.name: self._cut(name, node, known) for node in nodes}
        self._derive_waits(name, nodes, tasks_of, known)
        ordered = list(_claim_order(nodes, tasks_of, self.tiling))
        claims = abi.CLAIM_TICKETS
        if name == "decode":
            claims = abi.CLAIM_OWNED if self.target.streamed_decode else abi.CLAIM_WHOLE
        return TaskProgram(name, self._encode(nodes, ordered), [_label(task) for task in ordered], claims)

    # --- tiles and counters ------------------------------------------------------------------------------------

    def _cut(self, program: str, node: Node, known: _Counters) -> list[_Task]:
        """The node's tasks, each with the counter it signals."""
        output = self._output(node)
        rows, columns = output.shape if output else (1, 1)
        tasks = []
        counter_of: dict[int, int] = {}
        if self._passes_messages(node):
            return [_Task(node, tile, abi.NONE_U32) for tile in self._tiles(node, rows, columns)]
        for tile in self._tiles(node, rows, columns):
            group = self._counter_group(node, tile)
            if group not in counter_of:
                counter_of[group] = self._counter(program, node, group, known)
            signal = counter_of[group]
            known.produced[signal] = known.produced.get(signal, 0) + 1
            tasks.append(_Task(node, tile, signal))
        return tasks

    def _is_message(self, view: View | None) -> bool:
        return view is not None and self.graph.buffers[view.buffer].kind == "message"

    def _passes_messages(self, node: Node) -> bool:
        """Whether all that wait for the node wait for its messages."""
        accesses = OPS[OPCODES[node.op]].accesses
        return any("w" in access.mode and self._is_message(view)
                   for access, view in zip(accesses, node.operands, strict=True))

    def _output(self, node: Node) -> Buffer | None:
        """The buffer whose elements the node's tiles divide."""
        slot = OPS[OPCODES[node.op]].output
        view = None if slot is None else node.operands[slot]
        return self.graph.buffers[view.buffer] if view else None

    def _tiles(self, node: Node, rows: int, columns: int) -> Iterator[Tile]:
        tiling, context, head_dim = self.tiling, self.model.context, self.model.head_dim
        heads = range(self.model.heads)
        match node.split:
            case "once":
                yield (node.index, rows, 0, columns)
            case "rows":
                yield from _grid(rows, tiling.rows_of(node.op), columns, columns)
            case "single_rows":
                yield from _grid(rows, 1, columns, columns)
            case "row_tiles":
                width = tiling.column_tile(columns)
                for start in range(0, rows, tiling.wave_rows) if node.wave and tiling.columns_first else ():
                    turn = range(start, min(start + tiling.wave_rows, rows))
                    yield from _columns_first(turn, tiling.row_block, columns, width)
                if not (node.wave and tiling.columns_first):
                    yield from _grid(rows, tiling.row_block, columns, width)
            case "heads":
                for row0 in range(0, rows, context):
                    yield from ((row0, context, head * head_dim, head_dim) for head in heads)
            case "weight_tiles":
                tile_rows, tile_columns = tiling.weight_tile(rows, columns)
                yield from _grid(rows, tile_rows, columns, tile_columns)
            case "table_rows":
                yield from _grid(rows, tiling.table_stripe(rows), columns, columns)
            case "stripes":
                yield from _grid(rows, tiling.adamw_stripe(columns), columns, columns)
            case "columns":
                yield from _grid(rows, rows, columns, tiling.decode_tile(columns, self._depth(node)))
            case "decode_heads":
                yield from ((0, rows, head * head_dim, head_dim) for head in heads)
            case "units":
                parts = halves(self.model)
                yield from ((half, parts, head * head_dim, head_dim) for head in heads for half in range(parts))

    def _depth(self, node: Node) -> int:
        """Length of the inner products of a decode node."""
        slot = [access.name for access in OPS[OPCODES[node.op]].accesses].index("w")
        view = node.operands[slot]
        assert view is not None
        return self.graph.buffers[view.buffer].shape[1]

    def _counter_group(self, node: Node, tile: Tile) -> int:
        if node.counter:
            return 0
        if node.split in ("rows", "row_tiles"):
            return tile[0] // self.tiling.row_block
        return tile[0] // (self.model.context * self.tiling.sequences_per_group()) if node.split == "heads" else 0

    def _counter(self, program: str, node: Node, group: int, known: _Counters) -> int:
        if node.counter in known.shared:
            return known.shared[node.counter]
        counter = len(self.counters)
        if node.counter:
            known.shared[node.counter] = counter
            self.counters.append(f"{program}: {node.counter}")
        elif node.split in ("rows", "row_tiles", "heads"):
            self.counters.append(f"{program}: {node.name}[{group}]")
        else:
            self.counters.append(f"{program}: {node.name}")
        known.ancestors[counter] = 0
        return counter

    # --- waits ---------------------------------------------------------------------------------------------------

    def _derive_waits(
        self, program: str, nodes: list[Node], tasks_of: dict[str, list[_Task]], known: _Counters
    ) -> None:
        written: dict[View, list[tuple[int, int, int]]] = {}  # (first row, end row, counter) of what is complete
        opening = tasks_of[nodes[0].name][0].signal if nodes else 0
        for node in nodes:
            accesses = OPS[OPCODES[node.op]].accesses
            operands = list(zip(accesses, node.operands, strict=True))
            cache: dict[tuple[tuple[int, int], ...], tuple[tuple[Wait, ...], int]] = {}
            for task in tasks_of[node.name]:
                if node.after_previous:
                    before = tasks_of[node.after_previous][0].signal
                    task.waits = ((before, known.produced[before], 1, 1),)
                    continue
                key = tuple(self._rows(access, view, task.tile) if view else (0, 0) for access, view in operands)
                if any("r" in access.mode and self._is_message(view) for access, view in operands):
                    continue
                if key not in cache:
                    needed = self._needed(node, accesses, key, written)
                    if node.joins:
                        needed.add(known.shared[node.joins])
                    cache[key] = self._wait_for(program, task, needed or {opening}, known)
                task.waits, ancestors = cache[key]
                known.ancestors[task.signal] |= ancestors
            for access, view in operands:
                if view and "w" in access.mode and not self._is_message(view):
                    written[view] = self._completed(access, view, tasks_of[node.name])

    def _rows(self, access: Access, view: View, tile: Tile) -> tuple[int, int]:
        """First and end row of the part of `view` that a task with `tile` touches."""
        spans = REGIONS[access.region].rows(tile, self.graph.buffers[view.buffer].shape[0])
        return min(first for first, _ in spans), max(end for _, end in spans)

    def _needed(self, node: Node, accesses: tuple[Access, ...], rows: tuple[tuple[int, int], ...],
                written: dict[View, list[tuple[int, int, int]]]) -> set[int]:
        needed = set()
        for access, view, (first, end) in zip(accesses, node.operands, rows, strict=True):
            if view and "r" in access.mode:
                needed |= {counter for f, e, counter in written.get(view, ()) if f < end and first < e}
        return needed

    def _completed(self, access: Access, view: View, tasks: list[_Task]) -> list[tuple[int, int, int]]:
        spans: dict[int, tuple[int, int]] = {}
        for task in tasks:
            first, end = self._rows(access, view, task.tile)
            low, high = spans.get(task.signal, (first, end))
            spans[task.signal] = (min(low, first), max(high, end))
        return [(first, end, counter) for counter, (first, end) in spans.items()]

    def _wait_for(self, program: str, task: _Task, needed: set[int], known: _Counters) -> tuple[tuple[Wait, ...], int]:
        """Waits that cover `needed`, and the bit set of all counters complete once they hold."""
        implied = 0
        for counter in needed:
            implied |= known.ancestors[counter]
        waits: list[Wait] = []
        for counter in sorted(c for c in needed if not implied >> c & 1):
            count = known.produced[counter]
            first, same_count, n, _ = waits[-1] if waits else (0, 0, 0, 0)
            if waits and first + n == counter and same_count == count and n < 0xFF:
                waits[-1] = (first, count, n + 1, 0)
            else:
                waits.append((counter, count, 1, 0))
        if len(waits) > abi.MAX_WAITS or any(count > 0xFFFF for _, count, _, _ in waits):
            raise OfaError(f"this model is too large to compile: {program} task {_label(task)} would need waits that a "
                           "task descriptor cannot hold; choose a smaller batch, context or vocabulary")
        for counter in needed:
            implied |= 1 << counter
        return tuple(waits), implied

    # --- descriptors -----------------------------------------------------------------------------------------------

    def _encode(self, nodes: list[Node], ordered: list[_Task]) -> np.ndarray:
        tasks = np.zeros(len(ordered), abi.TASK)
        tasks["opcode"] = [OPCODES[task.node.op] for task in ordered]
        tasks["flags"] = [task.node.flags | self._fences(task.node) for task in ordered]
        tasks["signal"] = [task.signal for task in ordered]
        tasks["tile"] = [task.tile for task in ordered] if ordered else np.zeros((0, 4))
        tasks["n_waits"] = [len(task.waits) for task in ordered]
        operands = {node.name: self._operands(node) for node in nodes}
        if self.target.streamed_decode:
            tasks["lane"] = [self._lane(task) for task in ordered]
        for row, task in zip(tasks, ordered, strict=True):
            row["operands"] = operands[task.node.name]
            for slot, wait in enumerate(task.waits):
                row["waits"][slot] = wait
        return tasks

    def _fences(self, node: Node) -> int:
        if not self.target.copy_engine:
            return 0
        copied = [access for access, view in zip(OPS[OPCODES[node.op]].accesses, node.operands, strict=True)
                  if view and access.copied]
        before = FENCE_BEFORE if copied else 0
        return before | (FENCE_AFTER if any("w" in access.mode for access in copied) else 0)

    def _lane(self, task: _Task) -> int:
        """Neighbouring units and tiles of one weight go to different blocks."""
        row0, rows, col0, cols = task.tile
        match task.node.split:
            case "units":
                return col0 // cols * rows + row0
            case "columns":
                return col0 // tiles.SM90_DECODE_ROWS
            case "single_rows":
                return row0
            case _:
                return 0

    def _operands(self, node: Node) -> list[int]:
        indices = [abi.NONE_U16] * abi.MAX_OPERANDS
        for slot, view in enumerate(node.operands):
            if view is not None:
                if view not in self._operand:
                    if len(self.views) == MOST_VIEWS:
                        raise OfaError(f"this model is too large to compile: it has more than {MOST_VIEWS:,} operands, "
                                       "and a task descriptor cannot name more; choose fewer layers")
                    self._operand[view] = len(self.views)
                    self.views.append(view)
                indices[slot] = self._operand[view]
        return indices


def _grid(rows: int, tile_rows: int, columns: int, tile_columns: int) -> Iterator[Tile]:
    for row0 in range(0, rows, tile_rows):
        for col0 in range(0, columns, tile_columns):
            yield row0, min(tile_rows, rows - row0), col0, min(tile_columns, columns - col0)


def _columns_first(rows: range, tile_rows: int, columns: int, tile_columns: int) -> Iterator[Tile]:
    for col0 in range(0, columns, tile_columns):
        for row0 in range(rows.start, rows.stop, tile_rows):
            yield row0, min(tile_rows, rows.stop - row0), col0, min(tile_columns, columns - col0)


def _claim_order(nodes: list[Node], tasks_of: dict[str, list[_Task]], tiling: Tiling) -> Iterator[_Task]:
    """Node by node, except that the nodes of a wave take turns."""
    position = 0
    while position < len(nodes):
        wave = [nodes[position]]
        while wave[0].wave and position + len(wave) < len(nodes) and nodes[position + len(wave)].wave == wave[0].wave:
            wave.append(nodes[position + len(wave)])
        keyed = [(task.tile[0] // tiling.wave_rows + depth, depth, task)
                 for depth, node in enumerate(wave) for task in tasks_of[node.name]]
        keyed.sort(key=lambda item: item[:2])
        yield from (task for _, _, task in keyed)
        position += len(wave)


def _label(task: _Task) -> str:
    row0, rows, col0, cols = task.tile
    if task.node.split == "once":
        return task.node.name
    if task.node.split == "units":
        return f"{task.node.name} head {col0 // cols} part {row0} of {rows}"
    return f"{task.node.name} rows {row0}-{row0 + rows - 1} columns {col0}-{col0 + cols - 1}"
