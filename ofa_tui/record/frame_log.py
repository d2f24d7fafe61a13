"""The Doom frames of a run in one file, `frames.zst`: all of game 0, and one a second of each other game.

The file is a sequence of complete zstd frames ("blocks"; `zstd -dc` unpacks it), each decodable by itself, so that a
file cut at any byte loses its last block at most. Unpacked, the file is one line of JSON that describes it, then
records: a RECORD header followed by, for

- PALETTE: 768 bytes, red, green and blue of 256 colours, before the first frame that uses the palette;
- KEY: a status (see the JSON line's `status`) and 64,000 palette indices, row by row;
- DELTA: a status and 64,000 differences (modulo 256) from game 0's frame before. Its first frame in a block is a KEY,
  and so are all frames of other games.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import zstandard

from ofa_tui import abi
from ofa_tui.engine.protocol import Frame

FORMAT = "ofa-tui frames 1"
PALETTE, KEY, DELTA = 1, 2, 3
RECORD = np.dtype(
    [("kind", "u1"), ("palette", "u1"), ("game", "u1"), ("_pad", "u1", (5,)), ("number", "<u8"), ("seconds", "<f8")]
)
BLOCK_FRAMES = 35
"""Frames in a block: a kill loses less than a second of them."""
LEVEL = 3

PIXELS = abi.FRAME_WIDTH * abi.FRAME_HEIGHT
PALETTE_BYTES = 768


@dataclass(frozen=True)
class TimedFrame:
    seconds: float
    frame: Frame


class FrameEncoder:
    """Packs frames; `add` and `flush` return the bytes to append to the file, whole blocks only."""

    def __init__(self) -> None:
        self._compressor = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True)
        description = {
            "format": FORMAT,
            "width": abi.FRAME_WIDTH,
            "height": abi.FRAME_HEIGHT,
            "status": np.lib.format.dtype_to_descr(abi.DOOM_STATUS),
        }
        self._records: list[bytes] = [json.dumps(description).encode() + b"\n"]
        self._frames = 0
        self._before: np.ndarray | None = None
        self._palettes: dict[int, bytes] = {}

    def add(self, frame: Frame, seconds: float) -> bytes:
        palette = np.ascontiguousarray(frame.palette, np.uint8).tobytes()
        if self._palettes.get(frame.palette_index) != palette:
            self._palettes[frame.palette_index] = palette
            self._records += [_header(PALETTE, frame.palette_index, 0, 0, seconds), palette]
        pixels = np.ascontiguousarray(frame.pixels, np.uint8).reshape(PIXELS)
        kind, coded = KEY, pixels
        if self._before is not None and frame.game == 0:
            difference = pixels - self._before
            # Where most of the picture moved, its texture compresses better than the differences.
            if 2 * np.count_nonzero(difference) < PIXELS:
                kind, coded = DELTA, difference
        header = _header(kind, frame.palette_index, frame.game, frame.number, seconds)
        self._records += [header, frame.status.tobytes(), coded.tobytes()]
        if frame.game == 0:
            self._before = pixels.copy()
        self._frames += 1
        return self.flush() if self._frames >= BLOCK_FRAMES else b""

    def flush(self) -> bytes:
        if not self._records:
            return b""
        block = self._compressor.compress(b"".join(self._records))
        self._records, self._frames, self._before = [], 0, None
        return block


def _header(kind: int, palette: int, game: int, number: int, seconds: float) -> bytes:
    return np.array((kind, palette, game, 0, number, seconds), RECORD).tobytes()


def read_frames(path: Path) -> Iterator[TimedFrame]:
    """The frames of a file, in order, up to where it is cut or damaged. No file, no frames."""
    palettes: dict[int, np.ndarray] = {}
    status_dtype: np.dtype | None = None
    for block in _blocks(path):
        at = 0
        if status_dtype is None:
            line, _, _ = block.partition(b"\n")
            status_dtype = _status_dtype(line)
            if status_dtype is None:
                return
            at = len(line) + 1
        yield from _block_frames(block[at:], status_dtype, palettes)


def _status_dtype(line: bytes) -> np.dtype | None:
    try:
        description = json.loads(line)
        if description["format"] != FORMAT:
            return None
        return np.lib.format.descr_to_dtype(_tuples(description["status"]))
    except (ValueError, KeyError, TypeError):
        return None


def _tuples(value: Any) -> Any:
    """A dtype description as numpy wants it: JSON has made lists of its tuples."""
    return [
        tuple(tuple(part) if isinstance(part, list) and index == 2 else part for index, part in enumerate(field))
        for field in value
    ]


def _blocks(path: Path) -> Iterator[bytes]:
    try:
        file = path.open("rb")
    except OSError:
        return
    with file:
        pending = b""
        unpacker, unpacked = zstandard.ZstdDecompressor().decompressobj(), []
        while True:
            if not pending:
                pending = file.read(1 << 16)
                if not pending:
                    return
            try:
                unpacked.append(unpacker.decompress(pending))
            except zstandard.ZstdError:
                return
            pending = b""
            if unpacker.eof:
                pending = unpacker.unused_data
                yield b"".join(unpacked)
                unpacker, unpacked = zstandard.ZstdDecompressor().decompressobj(), []


def _block_frames(block: bytes, status_dtype: np.dtype, palettes: dict[int, np.ndarray]) -> Iterator[TimedFrame]:
    at = 0
    before = np.zeros(PIXELS, np.uint8)
    while at + RECORD.itemsize <= len(block):
        header = np.frombuffer(block, RECORD, 1, at)[0]
        at += RECORD.itemsize
        kind, palette_index, game = int(header["kind"]), int(header["palette"]), int(header["game"])
        if kind == PALETTE:
            palettes[palette_index] = np.frombuffer(block, np.uint8, PALETTE_BYTES, at).reshape(256, 3)
            at += PALETTE_BYTES
            continue
        status = np.frombuffer(block, status_dtype, 1, at)[0]
        at += status_dtype.itemsize
        pixels = np.frombuffer(block, np.uint8, PIXELS, at)
        at += PIXELS
        picture = pixels if kind == KEY else before + pixels
        if game == 0:
            before = picture
        yield TimedFrame(
            float(header["seconds"]),
            Frame(
                number=int(header["number"]),
                pixels=picture.reshape(abi.FRAME_HEIGHT, abi.FRAME_WIDTH),
                palette=palettes[palette_index],
                palette_index=palette_index,
                status=_current_status(status),
                game=game,
            ),
        )


def _current_status(status: np.void) -> np.void:
    """A status of an older recording as today's struct: fields of the same name are kept, new ones are 0."""
    if status.dtype == abi.DOOM_STATUS:
        return status
    current = np.zeros(1, abi.DOOM_STATUS)
    for name in set(status.dtype.names or ()) & set(abi.DOOM_STATUS.names or ()):
        if status.dtype[name] == abi.DOOM_STATUS[name]:
            current[name] = status[name]
    return current[0]
