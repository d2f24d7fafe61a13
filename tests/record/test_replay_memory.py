"""What a replay keeps of a record does not grow with the pictures that were shown."""

from __future__ import annotations

import gc
import tracemalloc
from pathlib import Path

import numpy as np

from ofa_tui import abi
from ofa_tui.engine.protocol import Frame
from ofa_tui.record.frame_log import UNPACKED_BLOCKS, FrameEncoder, FrameFile

FRAMES, SIDE = 1000, (200, 320)
PICTURE_BYTES = SIDE[0] * SIDE[1]
MOST_OF_A_BLOCK = 40 * PICTURE_BYTES


def test_pictures_that_were_shown_are_not_kept(tmp_path: Path) -> None:
    path, encoder = tmp_path / "frames.zst", FrameEncoder()
    palette, status = np.zeros((256, 3), np.uint8), np.zeros(1, abi.DOOM_STATUS)[0]
    with path.open("wb") as file:
        for number in range(FRAMES):
            file.write(encoder.add(Frame(number, np.full(SIDE, number % 256, np.uint8), palette, 0, status), number))
        file.write(encoder.flush())
    tracemalloc.start()
    try:
        frames = FrameFile(path)
        frames.refresh()
        statuses = [timed.frame.status for timed in frames]
        assert frames.block_at(FRAMES) == frames.blocks - 1
        gc.collect()
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert len(statuses) == FRAMES
    assert kept < UNPACKED_BLOCKS * MOST_OF_A_BLOCK + FRAMES * (abi.DOOM_STATUS.itemsize + 500)
    assert 4 * kept < FRAMES * PICTURE_BYTES, "else this test can tell nothing"
