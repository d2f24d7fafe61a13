"""Tasks and tables that are wrong by themselves are refused."""

import pytest

from ofa_tui import abi
from ofa_tui.program.operands import OPERANDS, contracts
from ofa_tui.program.ops import FENCE_BEFORE, OPS
from tests.program.changes import (
    SM90,
    SMALL,
    Mutants,
    check_mutant,
    on_task,
    on_tasks,
    set_buffer,
    set_field,
    set_operand,
    set_tile,
    tile_moved,
)

MUTANTS: Mutants = {
    "tile outside": ("train", tile_moved(0, 10_000, "layers.1.norm1 rows 0"), "tile", ("layers.1.norm1 rows 0",)),
    "empty tile": ("train", tile_moved(1, -128, "layers.1.norm1 rows 0"), "tile", ("layers.1.norm1 rows 0",)),
    "half a head": ("train", tile_moved(2, 1, "layers.1.attention rows 0"), "tile", ("layers.1.attention rows 0",)),
    "unknown opcode": ("train", on_task("loss", set_field("opcode", 999)), "opcode", ("loss",)),
    "unknown flag": ("train", on_task("embed rows 0", set_field("flags", 1)), "flags", ("embed rows 0",)),
    "operand missing": ("train", on_task("layers.0.fc1 rows 0", set_operand(1, abi.NONE_U16)), "operand",
                        ("layers.0.fc1",)),
    "operand too many": ("train", on_task("loss", set_operand(5, 0)), "operand", ("loss",)),
    "operand out of range": ("train", on_task("loss", set_operand(0, 60_000)), "operand", ("loss",)),
    "operand of another shape": ("train", on_task("layers.0.fc1 rows 0", set_operand(1, 0)), "shape",
                                 ("layers.0.fc1 rows 0",)),
    "two rows of a game": ("doom", on_task("game 1", set_tile(1, 2)), "tile", ("game 1", "rows")),
    "half a decoded head": ("decode", on_task("layers.1.attention", set_tile(3, 8)), "tile",
                            ("layers.1.attention", "one whole head")),
    "two decoded heads": ("decode", on_task("layers.1.attention", set_tile(3, 32)), "tile",
                          ("layers.1.attention", "one whole head")),
    "decoded head of no row": ("decode", on_task("layers.1.attention", set_tile(0, 1)), "tile",
                               ("layers.1.attention", "rows of a pass")),
    "fence where nothing copies": ("train", on_task("head rows 0", set_field("flags", FENCE_BEFORE)), "flags",
                                   ("head rows",)),
    "lane of a task anybody claims": ("train", on_task("head rows 0", set_field("lane", 1)), "lane",
                                      ("head rows 0", "claim")),
    "one copy of a weight": ("train", set_buffer("head", copies=1), "table", ("head",)),
    "programs exchanged": ("sweep", lambda s, p: setattr(p, "name", "decode"), "table", ("sweep",)),
    "moment of another dtype": ("train", set_buffer("head.m", dtype="bf16"), "class", ("head.adamw", "head.m", "bf16")),
    "cache too short": ("train", set_buffer("layers.0.k_cache", shape=(32, 48)), "shape",
                        ("layers.0.attention", "context = 64")),
    "two copies of an activation": ("train", set_buffer("layers.0.in", copies=3), "table", ("layers.0.in", "rotate")),
    **{
        f"unused axis of {label}": (name, on_task(label, set_tile(column, value)), "tile", (label, words))
        for name, label, column, value, words in (
            ("train", "embed rows 128", 2, 1, "columns 1-48"), ("train", "layers.0.norm1 rows 0", 3, 9, "columns 0-8"),
            ("train", "cross_entropy rows 0", 3, 2, "columns 0-1"), ("train", "norm.dx rows 0", 3, 1, "columns 0-0"),
            ("train", "embed.dw rows 0", 2, 8, "columns 8-55"), ("train", "loss", 1, 100, "rows 0-99"),
            ("train", "norm.adamw", 3, 24, "columns 0-23"), ("train", "step_begin", 0, 1, "rows 1-1"),
            ("sweep", "sweep_loss", 0, 7, "rows 7-"), ("decode", "token_begin", 3, 1, "columns 0-0"),
            ("decode", "layers.0.fc1 rows 0", 1, 2, "rows 0-1"), ("decode", "sample", 2, 3, "columns 3-"),
        )
    },
}
SM90_MUTANTS: Mutants = {
    "unit that is none": ("decode", on_task("layers.1.qkv head 1 part 1", set_tile(0, 2)), "tile",
                          ("layers.1.qkv head 1 part 1", "unit")),
    "unit of half a head": ("decode", on_task("layers.1.qkv head 1 part 1", set_tile(3, 32)), "tile",
                            ("layers.1.qkv head 1 part 1", "head")),
    "undivided heads": ("decode", on_tasks("layers.1.qkv", set_tile(1, 1)), "tile",
                        ("layers.1.qkv head 0 part 1", "unit")),
    "statistics between two tiles": ("train", tile_moved(2, 128, "head rows 0-127 columns 0-"), "tile",
                                     ("head rows 0-127 columns 0-255", "statistics")),
    "matrix of another dtype": ("train", set_buffer("layers.0.qkv.y", dtype="f4"), "class", ("layers.0.qkv.y", "f4")),
    "stream in rows": ("train", set_buffer("layers.0.qkv.stream", layout="rows"), "class",
                       ("layers.0.qkv.stream",)),
    "rows in stream order": ("train", set_buffer("layers.0.qkv", layout="stream"), "class", ("layers.0.qkv",)),
    "master that is a moment": ("train", set_buffer("layers.0.qkv.master", kind="moment"), "class",
                                ("layers.0.qkv.dw", "layers.0.qkv.master")),
    "statistics of fewer tiles": ("train", set_buffer("logits.statistics", shape=(256, 6)), "gap",
                                  ("logits.statistics",)),
    "scores for fewer positions": ("decode", set_buffer("decode.scores", shape=(4, 48)), "shape",
                                   ("rows*context = 512",)),
}


def test_every_operand_has_its_row():
    assert set(OPERANDS) == {op.name for op in OPS if op.accesses}
    assert all(contracts(op.name) for op in OPS if op.accesses)


@pytest.mark.parametrize("name", MUTANTS)
def test_wrong_tasks_are_refused_by_name(name):
    check_mutant(SMALL, *MUTANTS[name])


@pytest.mark.parametrize("name", SM90_MUTANTS)
def test_wrong_tasks_are_refused_for_sm90(name):
    check_mutant(SM90, *SM90_MUTANTS[name])
