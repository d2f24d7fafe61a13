"""Tasks that do not fit a multiprocessor are refused."""

from dataclasses import replace

import pytest

from ofa_tui.presets import TrainConfig
from ofa_tui.program import lowering, resources, tiles
from ofa_tui.program.lowering import compile_programs
from ofa_tui.program.ops import OPS
from tests.program.changes import SM90, SM90_MODEL, check_refused


@pytest.mark.parametrize(
    ("patched", "value", "sizes", "words"),
    [
        ((tiles, "SM90_TILE"), (256, 256), {}, ("128 x 256", "layers.0.qkv rows 0-255")),
        ((tiles, "SM90_TILE"), (128, 512), {"vocab": 256}, ("128 x 256", "layers.0.qkv rows 0-127 columns 0-383")),
        ((tiles, "SM90_DECODE_ROWS"), 48, {}, ("32 rows", "layers.0.proj")),
        ((tiles, "SM90_DECODE_ROWS"), 24, {}, ("blocks of 16 x 16", "layers.0.proj", "operand w")),
        ((tiles, "SM90_TILE"), (128, 256), {"context": 1024, "width": 256},
         ("layers.0.attention rows 0-1023", "232,448")),
        ((tiles, "SM90_TILE"), (128, 256), {"width": 1024, "context": 8}, ("attention", "256 columns")),
        ((lowering, "BLOCK"), 4, {"width": 24}, ("pieces of rows", "16 bytes", "layers.0.attention", "operand qkv")),
        ((lowering, "BLOCK"), 2, {"width": 20}, ("rows that do not begin", "16 bytes", "operand x")),
    ],
)
def test_what_does_not_fit_a_multiprocessor_is_refused(monkeypatch, patched, value, sizes, words):
    monkeypatch.setattr(*patched, value)
    model = replace(SM90_MODEL, **sizes)
    train = TrainConfig(batch=4, steps=1, learning_rate=1e-3, warmup_steps=0)
    check_refused(compile_programs(model, train, target="sm90"), "resources", words)


@pytest.mark.parametrize("name", [op.name for op in OPS if any(access.copied for access in op.accesses)])
def test_a_copied_task_type_without_a_size_is_refused(monkeypatch, name):
    monkeypatch.delitem(resources.SHARED_BYTES, name)
    check_refused(SM90, "resources", (f"is a {name},", "SHARED_BYTES"))
