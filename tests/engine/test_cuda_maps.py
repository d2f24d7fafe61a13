"""Tensor maps: which operands have them, and what the driver is told."""

import ctypes

import numpy as np
import pytest
from engine_runs import config

from ofa_tui.engine import cuda_maps
from ofa_tui.engine.cuda_library import DriverError, DriverLibrary
from ofa_tui.engine.memory import RunMemory
from ofa_tui.program.lowering import compile_programs
from ofa_tui.program.ops import OPS


class PretendedDriver:
    """A libcuda whose encoder writes its arguments into the map."""

    def cuInit(self, flags):
        return 0

    def cuGetErrorName(self, result, text):
        text._obj.value = b"CUDA_ERROR_INVALID_VALUE"
        return 0

    def cuTensorMapEncodeTiled(self, to, dtype, rank, address, extents, strides, box, steps, interleave, swizzle,
                               promotion, outside):
        if to.value % 64 or address.value % 16 or any(stride % 16 for stride in strides):
            return 1
        size = {7: 4, 9: 2}[dtype.value]
        assert swizzle.value == 3 and list(steps) == [1] * rank.value
        assert box[0] * size <= 128 and all(extent <= 256 for extent in box)
        words = [address.value, rank.value, *extents, *strides, *box, size]
        np.ctypeslib.as_array((ctypes.c_uint64 * 16).from_address(to.value))[: len(words)] = words
        return 0


@pytest.fixture
def memory():
    run = config(width=128, heads=2, feed_forward=256, vocab=512)
    programs = compile_programs(run.model, run.train, games=0, target="sm90")
    memory = RunMemory(programs, run, lambda head: 128, 0, 1 << 33)
    memory.arena.relocate(0x7F0000000000)
    return memory


def test_every_product_finds_the_maps_of_its_operands(memory):
    """Of each copy of each operand, at its address on the GPU, with the box of its use."""
    programs, operands, maps = memory.programs, memory["operands"], memory["tensor_maps"]
    cuda_maps.fill(maps, operands, programs, DriverLibrary(PretendedDriver()))
    looked_at = 0
    for program in programs.programs.values():
        for task in program.tasks:
            for slot, use in cuda_maps.USES.get(OPS[task["opcode"]].name, {}).items():
                operand = operands[task["operands"][slot]]
                rows, cols = int(operand["rows"]), int(operand["cols"])
                for copy in range(operand["copies"]):
                    row = maps[operand["tensor_map"] + use * operand["copies"] + copy].view(np.uint64)
                    assert row[0] == operand["base"] + copy * operand["copy_bytes"] >= 0x7F0000000000
                    assert row[7 if row[1] == 2 else 10] == (4 if use == cuda_maps.MAP_LINES else 2)
                    if use in (cuda_maps.MAP_A_BY_K, cuda_maps.MAP_B_BY_K):
                        assert row[1:7].tolist() == [3, 64, rows, -(-cols // 64), 2 * cols, 128]
                        assert row[7:10].tolist() == [64, 64, 2 if use == cuda_maps.MAP_A_BY_K else 4]
                    elif use == cuda_maps.MAP_LINES:
                        assert row[1:7].tolist() == [2, cols, rows, 4 * cols, 32, 64]
                    else:
                        boxes = {cuda_maps.MAP_A: 128, cuda_maps.MAP_B: 256, cuda_maps.MAP_OUT: 64}
                        assert row[1:7].tolist() == [2, cols, rows, 2 * cols, 64, boxes[use]]
                    looked_at += 1
    assert looked_at > 100


def test_boxes_of_a_stage_are_what_the_loader_expects():
    for use, size in ((cuda_maps.MAP_A, 128), (cuda_maps.MAP_A_BY_K, 128), (cuda_maps.MAP_B, 256),
                      (cuda_maps.MAP_B_BY_K, 256)):
        assert np.prod(cuda_maps.shape_of(use, 4096, 768).box) == size * cuda_maps.TILE_DEPTH
    state = 2 * 3 * 4 * np.prod(cuda_maps.shape_of(cuda_maps.MAP_LINES, 4096, 768).box)
    assert state == 2 * (128 + 256) * cuda_maps.TILE_DEPTH


def test_matrices_in_f4_have_no_maps():
    run = config()
    programs = compile_programs(run.model, run.train, games=0, target="sm90", storage="f4")
    assert cuda_maps.first_maps(programs) == ({}, 0)


def test_the_drivers_no_is_a_sentence():
    with pytest.raises(DriverError, match=r"cuTensorMapEncodeTiled failed: CUDA_ERROR_INVALID_VALUE"):
        cuda_maps.encode(DriverLibrary(PretendedDriver()), 8, cuda_maps.shape_of(cuda_maps.MAP_A, 128, 64))
