"""What a task costs on a machine: a file of measured and estimated figures, and the durations that follow from it.

The files are assets/costs/<machine>.toml. A task's cost is the sum of the terms its table names; every table says where
its figures come from ("measured", "computed" or "estimate", then the source).
"""

from __future__ import annotations

import fnmatch
import math
import random
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ofa_tui import locations
from ofa_tui.errors import OfaError
from ofa_tui.program.ops import OPCODES, OPS
from ofa_tui.program.types import TaskProgram
from ofa_tui.program.work import Work

MOST = 1e12
"""No figure of a cost file may be larger."""
BASES = ("measured", "computed", "estimate")
DEFAULT_FILES = {"host": "host", "sm90": "h200"}


@dataclass(frozen=True)
class TaskCost:
    """Terms of a task's duration; absent ones are 0."""

    source: str
    fixed_clk: float = 0.0
    """Clocks after the main loop: the epilogue of a product."""
    fixed_us: float = 0.0
    k_block_clk: float = 0.0
    """Clocks of a full tile's k-block."""
    flop_per_clk: float = 0.0
    gflop_s: float = 0.0
    elements_of: str = ""
    """Operand of which the task's elements, times bytes_per_element, are what it reads and writes."""
    bytes_per_element: float = 0.0
    memory: str = ""
    """Where those bytes are: "cache", or "shared" for memory whose bandwidth all running tasks share."""

    @property
    def basis(self) -> str:
        return self.source.partition(":")[0]


@dataclass(frozen=True)
class Clock:
    """GHz by the number of SMs at work."""

    source: str
    sms: tuple[float, ...]
    ghz: tuple[float, ...]
    """Two points of a power law: the clock that a power limit leaves to so many SMs."""
    limit_ghz: float
    decode_ghz: float = 0.0

    def at(self, sms: int) -> float:
        (few, many), (fast, slow) = self.sms, self.ghz
        exponent = math.log(fast / slow) / math.log(many / few) if many != few else 0.0
        return min(self.limit_ghz, fast * (few / sms) ** exponent)


@dataclass(frozen=True)
class Tile:
    """A product's tile; smaller ones at an edge cost as much as a full one."""

    source: str
    rows: float
    columns: float
    depth: float


@dataclass(frozen=True)
class Handoff:
    source: str
    signal_ns: float
    """From a task's end to a block that waits for it seeing the counter."""
    message_ns: float
    start_ns: float
    """From there to the first arithmetic: fence, first copies."""
    claim_ns: float
    """A claim, from the request to a task that is known."""


@dataclass(frozen=True)
class Memory:
    source: str
    tasks: tuple[float, ...]
    gb_s: tuple[float, ...]
    """What so many tasks get from shared memory together, in GB/s."""
    cache_gb_s: float
    """What one task gets from the cache."""

    def per_task(self, running: int) -> float:
        """GB/s (bytes a ns) of each of `running` tasks."""
        if running <= self.tasks[0]:
            return self.gb_s[0] / self.tasks[0]
        for (few, low), (many, high) in zip(self._points(), self._points()[1:], strict=False):
            if running <= many:
                return (low + (high - low) * (running - few) / (many - few)) / running
        return self.gb_s[-1] / running

    def _points(self) -> list[tuple[float, float]]:
        return list(zip(self.tasks, self.gb_s, strict=True))


@dataclass(frozen=True)
class Costs:
    name: str
    clock: Clock
    tile: Tile
    handoff: Handoff
    memory: Memory
    tasks: dict[str, TaskCost]

    def of(self, op: str) -> TaskCost:
        if op not in self.tasks:
            raise OfaError(f"the cost file {self.name} has no table [tasks.{op}]; add one")
        return self.tasks[op]


@dataclass(frozen=True)
class Durations:
    """One element a task, in queue order."""

    body_ns: list[float]
    """Time on its SM, without what it takes from shared memory."""
    shared_bytes: list[float]
    """Bytes from and to shared memory, moved before the rest of the body."""
    ahead_ns: list[float]
    """How long before its end its block is free to claim another task: from the last k-block on."""


def task_durations(costs: Costs, program: TaskProgram, works: list[Work], ghz: float) -> Durations:
    """Durations of a program's tasks at a clock of `ghz`. Raises OfaError for a task type without a cost."""
    known: dict[tuple[int, int], tuple[float, float, float]] = {}
    rows = []
    for opcode, work in zip(program.tasks["opcode"].tolist(), works, strict=True):
        key = (opcode, id(work))
        if key not in known:
            known[key] = _duration(costs, OPS[opcode].name, work, ghz)
        rows.append(known[key])
    body, shared, ahead = (list(column) for column in zip(*rows, strict=True)) if rows else ([], [], [])
    return Durations(body, shared, ahead)


def spread_out(durations: Durations, spread: float, seed: int = 0) -> Durations:
    """Durations that differ from the given ones by up to `spread` of each, evenly distributed: no two tasks take
    exactly as long on a machine."""
    chance = random.Random(seed)
    factors = [1 + chance.uniform(-spread, spread) for _ in durations.body_ns]
    scaled = ([value * factor for value, factor in zip(column, factors, strict=True)]
              for column in (durations.body_ns, durations.shared_bytes, durations.ahead_ns))
    return Durations(*scaled)


def moved_bytes(costs: Costs, op: str, work: Work) -> float:
    """Bytes that a task reads and writes by plain loads and stores."""
    cost = costs.of(op)
    if not cost.elements_of:
        return 0.0
    if cost.elements_of not in work.elements:
        raise OfaError(f"[tasks.{op}] of the cost file {costs.name}: elements_of = {cost.elements_of!r} is none of the "
                       f"task's operands, which are {', '.join(work.elements) or 'none'}")
    return cost.bytes_per_element * work.elements[cost.elements_of]


def _duration(costs: Costs, op: str, work: Work, ghz: float) -> tuple[float, float, float]:
    cost = costs.of(op)
    clocks = cost.fixed_clk + cost.k_block_clk * _k_blocks(costs.tile, work)
    if cost.flop_per_clk:
        clocks += work.flops / cost.flop_per_clk
    body_ns = clocks / ghz + 1000 * cost.fixed_us
    if cost.gflop_s:
        body_ns += work.flops / cost.gflop_s
    shared = moved_bytes(costs, op, work)
    if cost.memory == "cache":
        body_ns += shared / costs.memory.cache_gb_s
        shared = 0.0
    hidden_ns = costs.handoff.claim_ns + costs.handoff.start_ns
    ahead_ns = (cost.fixed_clk + cost.k_block_clk) / ghz if cost.k_block_clk else hidden_ns
    return body_ns, shared, min(ahead_ns, body_ns)


def _k_blocks(tile: Tile, work: Work) -> float:
    """Full tiles of the task's product times their k-blocks."""
    if work.product is None:
        return 0.0
    rows, columns, depth = work.product
    return math.ceil(rows / tile.rows) * math.ceil(columns / tile.columns) * math.ceil(depth / tile.depth)


# --- files -------------------------------------------------------------------------------------------------------


def load_costs(name: str, changes: list[str] | None = None) -> Costs:
    """The cost file `name`: a machine in assets/costs or a path. `changes` are like "tasks.attention.fixed_clk=30000".

    Raises OfaError for what cannot be read or does not fit.
    """
    shipped = locations.assets() / "costs" / f"{name}.toml"
    path = shipped if shipped.is_file() else Path(name)
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        known = ", ".join(sorted(file.stem for file in shipped.parent.glob("*.toml")))
        raise OfaError(f"there is no cost file {name!r}; give a path or one of {known}") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise OfaError(f"the cost file {path} cannot be read: {error}") from None
    for change in changes or []:
        _change(table, change)
    return _parse(name, table)


def _change(table: dict[str, Any], change: str) -> None:
    """Sets an entry of a table; in the names of tables * and ? stand for any letters."""
    key, equals, text = change.partition("=")
    *path, entry = key.split(".")
    places = [table]
    for part in path:
        places = [found for place in places for name, found in place.items()
                  if fnmatch.fnmatchcase(name, part) and isinstance(found, dict)]
    if not equals or not path or not places:
        raise OfaError(f"{change!r} changes nothing in the cost file; write it like tasks.attention.fixed_clk=30000")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    for place in places:
        place[entry] = value


def _parse(name: str, table: dict[str, Any]) -> Costs:
    sections = {field.name: field.type for field in fields(Costs) if field.name not in ("name", "tasks")}
    unknown = set(table) - set(sections) - {"tasks"}
    if unknown:
        raise OfaError(f"the cost file {name} has a table [{min(unknown)}], which means nothing")
    kinds = {"clock": Clock, "tile": Tile, "handoff": Handoff, "memory": Memory}
    parts = {key: _section(name, key, kind, table.get(key, {})) for key, kind in kinds.items()}
    tasks = {}
    for op, row in _mapping(name, "tasks", table.get("tasks", {})).items():
        if op not in OPCODES:
            raise OfaError(f"the cost file {name} has a table [tasks.{op}], but there is no such task type")
        tasks[op] = _section(name, f"tasks.{op}", TaskCost, row)
        if tasks[op].memory not in ("", "cache", "shared"):
            raise OfaError(f"[tasks.{op}] of the cost file {name}: memory is \"cache\" or \"shared\"")
    _check_curves(name, parts["clock"], parts["memory"])
    _check_divisors(name, parts["tile"], parts["memory"])
    return Costs(name=name, tasks=tasks, **parts)


def _mapping(name: str, key: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise OfaError(f"the cost file {name}: {key} is no table")
    return value


def _section(name: str, key: str, kind: type, given: object) -> Any:
    values = dict(_mapping(name, key, given))
    kinds = {field.name: field.type for field in fields(kind)}
    for entry, value in values.items():
        if entry not in kinds:
            raise OfaError(f"[{key}] of the cost file {name} has an entry {entry!r}, which means nothing")
        values[entry] = _value(f"[{key}] of the cost file {name}: {entry}", str(kinds[entry]), value)
    try:
        made = kind(**values)
    except TypeError:
        missing = [field for field in kinds if field not in values]
        raise OfaError(f"[{key}] of the cost file {name} lacks an entry; it may be one of "
                       f"{', '.join(missing)}") from None
    if made.source.partition(":")[0] not in BASES:
        raise OfaError(f"[{key}] of the cost file {name}: source has to begin with one of "
                       f"{', '.join(f'{basis}:' for basis in BASES)}")
    return made


def _value(where: str, kind: str, value: object) -> object:
    if kind == "str" and isinstance(value, str):
        return value
    if kind == "float" and _is_figure(value):
        return value
    if kind.startswith("tuple") and isinstance(value, list) and value and all(map(_is_figure, value)):
        return tuple(value)
    wanted = {"str": "a text", "float": "a number"}.get(kind, "a list of numbers")
    span = "" if kind == "str" else f" from 0 to {MOST:g}"
    raise OfaError(f"{where} is {value!r}; it has to be {wanted}{span}")


def _is_figure(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= MOST


def _check_curves(name: str, clock: Clock, memory: Memory) -> None:
    pairs = {"clock": (clock.sms, clock.ghz), "memory": (memory.tasks, memory.gb_s)}
    for key, (at, values) in pairs.items():
        if len(at) != len(values) or list(at) != sorted(set(at)) or min(at + values) <= 0:
            raise OfaError(f"[{key}] of the cost file {name} needs as many values as places, all above 0 and the "
                           "places in rising order")
    if len(clock.sms) != 2:
        raise OfaError(f"[clock] of the cost file {name} needs exactly two points")


def _check_divisors(name: str, tile: Tile, memory: Memory) -> None:
    for key, value in (("tile.rows", tile.rows), ("tile.columns", tile.columns), ("tile.depth", tile.depth),
                       ("memory.cache_gb_s", memory.cache_gb_s)):
        if value <= 0:
            raise OfaError(f"{key} of the cost file {name} is {value:g}; it has to be above 0")
