"""Plays demos on a GPU, a block each, and reads back what happened: whether the game is the same game there."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ofa_tui.doom.library import LOAD, MAX_PLAYERS, NEW_GAME, ROW, new_game
from ofa_tui.doom.lmp import Demo
from ofa_tui.doom.trace import Played
from ofa_tui.engine.cuda_compiler import Cubin
from ofa_tui.engine.cuda_device import Gpu
from ofa_tui.errors import OfaError

DEMO = np.dtype([
    ("wad", "u8"), ("commands", "u8"), ("rows", "u8"), ("loads", "u8"), ("games", "u8"), ("settings", NEW_GAME),
    ("tics", "u4"), ("done", "u4"), ("n_loads", "u4"),
])
"""struct Demo of cuda/doom/gpu/demos.cu."""
BLOCK_THREADS = 256
TICS_PER_LAUNCH = 350
LAUNCH_TIMEOUT_S = 120.0


def play_demos(
    gpu: Gpu, cubin: Cubin, demos: Sequence[tuple[Demo, np.ndarray]],
    on_progress: Callable[[int, int], None] | None = None,
) -> list[Played]:
    """Plays each (demo, packed WAD u1 [bytes]) to its end, all at once. `on_progress` gets tics done and tics in all.

    Raises OfaError where the memory is not there or the GPU fails.
    """
    with gpu.current():
        module = gpu.load(cubin.code)
        sizes = np.zeros(4, np.uint64)
        answers = gpu.allocate(sizes.nbytes)
        module.get_function("demo_sizes")(np.uint64(answers), block=(1, 1, 1), grid=(1, 1), stream=gpu.kernel_stream)
        gpu.finish(gpu.kernel_stream, LAUNCH_TIMEOUT_S)
        gpu.download(sizes, answers)
        if sizes[[0, 2, 3]].tolist() != [DEMO.itemsize, ROW.itemsize, LOAD.itemsize]:
            raise OfaError("the GPU's demo player was compiled for another version of ofa-tui")
        table = np.zeros(len(demos), DEMO)
        blobs: dict[int, int] = {}
        for row, (demo, blob) in zip(table, demos, strict=True):
            if id(blob) not in blobs:
                blobs[id(blob)] = _place(gpu, blob)
            tics = len(demo.commands)
            row["wad"] = blobs[id(blob)]
            row["commands"] = _place(gpu, np.ascontiguousarray(demo.commands))
            row["rows"] = gpu.allocate(tics * ROW.itemsize)
            row["loads"] = gpu.allocate((tics + 1) * LOAD.itemsize)
            row["games"] = gpu.allocate(int(sizes[1]))
            row["settings"] = new_game(demo.settings())[0]
            row["tics"] = tics
            assert demo.commands.shape[1:] == (MAX_PLAYERS,)
        address = _place(gpu, table)
        longest = int(table["tics"].max())
        for first in range(0, longest, TICS_PER_LAUNCH):
            module.get_function("play_demos")(
                np.uint64(address), np.uint32(TICS_PER_LAUNCH), block=(BLOCK_THREADS, 1, 1), grid=(len(demos), 1),
                stream=gpu.kernel_stream)
            gpu.finish(gpu.kernel_stream, LAUNCH_TIMEOUT_S)
            if on_progress:
                on_progress(min(first + TICS_PER_LAUNCH, longest), longest)
        gpu.download(table, address)
        return [_played(gpu, row) for row in table]


def _place(gpu: Gpu, data: np.ndarray) -> int:
    address = gpu.allocate(data.nbytes)
    gpu.upload(address, data)
    return address


def _played(gpu: Gpu, demo: np.void) -> Played:
    rows, loads = np.zeros(int(demo["tics"]), ROW), np.zeros(int(demo["n_loads"]), LOAD)
    gpu.download(rows, int(demo["rows"]))
    if len(loads):
        gpu.download(loads, int(demo["loads"]))
    return Played(rows, loads, {})
