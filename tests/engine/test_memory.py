"""The arena: places, pointers, sizes, and the layout both sides agree on."""

import itertools

import numpy as np
import pytest
from engine_runs import config, engine, finish

from ofa_tui import abi, abi_header
from ofa_tui.engine.library import check_layout
from ofa_tui.engine.memory import RunMemory
from ofa_tui.errors import OfaError
from ofa_tui.program.lowering import compile_programs


def test_the_kernel_was_compiled_with_this_layout(kernel):
    assert kernel.layout() == abi_header.layout()
    with pytest.raises(OfaError, match="another version"):
        check_layout([*kernel.layout()[:-1], 0], "kernel.so")


def test_structs_have_no_hidden_padding():
    """A dtype without explicit padding could not be laid out alike in C++."""
    for name, dtype in abi.STRUCTS.items():
        end = 0
        for field in dtype.names:
            kind, offset = dtype.fields[field][:2]
            assert offset == end, f"{name}.{field}"
            end += kind.itemsize
        assert end == dtype.itemsize, name


def test_every_array_has_a_place_of_its_own(kernel):
    memory = engine(kernel, config(sms=(2, 1, 0))).memory
    spans = sorted((memory[name].ctypes.data, memory[name].nbytes) for name in memory.arena._places)
    for (start, size), (after, _) in itertools.pairwise(spans):
        assert start % 128 == 0 and start + size <= after
    launch = memory["launch"][0]
    for name in ("losses", "queues", "served", "scratch"):
        assert launch[name] == memory[name].ctypes.data
    for view, operand in zip(memory.programs.views, memory["operands"], strict=True):
        assert operand["base"] == memory.buffer(view.buffer).ctypes.data


def test_a_model_that_does_not_fit_is_refused(kernel):
    run = config()
    programs = compile_programs(run.model, run.train, games=0)
    with pytest.raises(OfaError, match=r"needs .* GB of memory and 0.0 GB are free"):
        RunMemory(programs, run, kernel.scratch_bytes, 0, available_bytes=1_000_000)


def test_weights_are_named_and_read_only_after_the_run(kernel):
    running = engine(kernel, config())
    before = running.weights()
    finish(running)
    after = running.weights()
    assert list(after) == running.memory.programs.parameters
    assert sum(array.size for array in after.values()) == running.info.parameters
    assert all(not np.array_equal(before[name], after[name]) for name in after)
