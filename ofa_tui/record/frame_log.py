"""The Doom frames of a run in one file, `frames.zst`: all of game 0, and one a second of each other game.

The file is a sequence of complete zstd frames ("blocks"; `zstd -dc` unpacks it), each decodable by itself, so that a
file cut at any byte loses its last block at most. Unpacked, the file is one line of JSON that describes it, then
records: a RECORD header followed by, for

- PALETTE: 768 bytes, red, green and blue of 256 colours, before the first frame of a block that uses the palette
  (records of version 0.1.0 until 2026-11-30: before the first frame of the file);
- KEY: a status (see the JSON line's `status`) and 64,000 palette indices, row by row;
- DELTA: a status and 64,000 differences (modulo 256) from game 0's frame before. Its first frame in a block is a KEY,
  and so are all frames of other games.
"""

from __future__ import annotations

import json
import math
import os
from bisect import bisect_right
from collections import OrderedDict
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
UNPACKED_BLOCKS = 4
"""Blocks of up to 2.3 MB each that a reader keeps at hand."""
MOST_UNPACKED = 1 << 26
NO_PICTURE = np.broadcast_to(np.uint8(0), (abi.FRAME_HEIGHT, abi.FRAME_WIDTH))
NO_PALETTE = np.zeros((256, 3), np.uint8)

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
ZSTD_HEADER_BYTES = 18
ZSTD_RLE_BLOCK, ZSTD_RESERVED_BLOCK = 1, 3


@dataclass(frozen=True)
class TimedFrame:
    seconds: float
    frame: Frame


class FrameEncoder:
    """Packs frames; `add` and `flush` return the bytes to append to the file, whole blocks only."""

    def __init__(self, level: int = LEVEL) -> None:
        """`level` of zstd: 19 makes a file smaller by a sixth and takes a hundred times as long."""
        self._compressor = zstandard.ZstdCompressor(level=level, write_checksum=True)
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
        self._records, self._frames, self._before, self._palettes = [], 0, None, {}
        return block


def _header(kind: int, palette: int, game: int, number: int, seconds: float) -> bytes:
    return np.array((kind, palette, game, 0, number, seconds), RECORD).tobytes()


@dataclass
class FrameFacts:
    """What is known of a frame without its picture."""

    seconds: float
    number: int
    game: int
    palette_index: int
    status: np.void
    kind: int
    at: int
    """Where its pixels begin in the unpacked block."""


class Block:
    """An unpacked block: its frames in order, pictures made when they are asked for."""

    def __init__(self, data: bytes, status_dtype: np.dtype) -> None:
        """Raises ValueError where `data` is not a whole number of records."""
        self.palettes: dict[int, np.ndarray] = {}
        self.facts: list[FrameFacts] = []
        self._data = data
        at = 0
        while at < len(data):
            header = np.frombuffer(data, RECORD, 1, at)[0]
            at += RECORD.itemsize
            kind, palette_index = int(header["kind"]), int(header["palette"])
            if kind == PALETTE:
                self.palettes[palette_index] = np.frombuffer(data, np.uint8, PALETTE_BYTES, at).reshape(256, 3)
                at += PALETTE_BYTES
                continue
            if kind not in (KEY, DELTA):
                raise ValueError(f"record of kind {kind}")
            # A copy: whoever keeps the facts of a frame would keep the block's pictures too.
            status = np.frombuffer(data, status_dtype, 1, at)[0].copy()
            at += status_dtype.itemsize + PIXELS
            if at > len(data):
                raise ValueError("half a frame")
            self.facts.append(FrameFacts(
                float(header["seconds"]), int(header["number"]), int(header["game"]), palette_index,
                _current_status(status), kind, at - PIXELS,
            ))

    def picture(self, index: int) -> np.ndarray:
        """u1 [200, 320] of the frame `facts[index]`."""
        facts = self.facts[index]
        picture = self._pixels(facts)
        while facts.kind == DELTA:
            index = next(before for before in range(index - 1, -1, -1) if self.facts[before].game == 0)
            facts = self.facts[index]
            picture = picture + self._pixels(facts)
        return picture.reshape(abi.FRAME_HEIGHT, abi.FRAME_WIDTH)

    def _pixels(self, facts: FrameFacts) -> np.ndarray:
        return np.frombuffer(self._data, np.uint8, PIXELS, facts.at)


class FrameFile:
    """The frames of a file that may still grow, by their place in it.

    A block that cannot be unpacked has no frames; where the file is no row of zstd frames any more, it ends.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._places: list[tuple[int, int]] = []
        """(offset, bytes) of every whole block."""
        self._end = 0
        self._lost = False
        self._bad: set[int] = set()
        self._status_dtype: np.dtype | None = None
        self._first_seconds: dict[int, float | None] = {}
        self._palettes: dict[int, dict[int, np.ndarray]] = {}
        self._unpacked: OrderedDict[int, Block] = OrderedDict()
        self.torn = False
        """Whether the file ends inside a block."""

    def refresh(self) -> None:
        """Finds the blocks that were appended since."""
        if self._lost:
            return
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return
        try:
            size = os.fstat(descriptor).st_size
            while (length := _block_length(descriptor, self._end, size)) > 0:
                self._places.append((self._end, length))
                self._end += length
            self._lost = length < 0
            self.torn = self._end < size
        except OSError:
            self._lost = True
        finally:
            os.close(descriptor)

    @property
    def damage(self) -> str:
        """What is known to be wrong, as part of a sentence; empty where nothing is."""
        if self._lost:
            return f"{self.path.name} from byte {self._end:,} on"
        return f"{len(self._bad)} of {len(self._places)} blocks of {self.path.name}" if self._bad else ""

    @property
    def blocks(self) -> int:
        return len(self._places)

    def facts(self, block: int) -> list[FrameFacts]:
        """Of the frames of a block, in order."""
        unpacked = self._unpack(block)
        return unpacked.facts if unpacked else []

    def first_seconds(self, block: int) -> float:
        """When the block begins; one without frames begins with the one before it."""
        while block >= 0:
            if block not in self._first_seconds:
                facts = self.facts(block)
                self._first_seconds[block] = facts[0].seconds if facts else None
            if (seconds := self._first_seconds[block]) is not None:
                return seconds
            block -= 1
        return -math.inf

    def block_at(self, seconds: float) -> int:
        """The last block that begins at or before `seconds`; -1: none."""
        return bisect_right(range(self.blocks), seconds, key=self.first_seconds) - 1

    def frame(self, block: int, index: int, picture: bool = True) -> TimedFrame:
        """The frame `facts(block)[index]`; without `picture` all its pixels are 0."""
        facts = self.facts(block)[index]
        unpacked = self._unpack(block) if picture else None
        return TimedFrame(
            facts.seconds,
            Frame(
                number=facts.number,
                pixels=unpacked.picture(index) if unpacked else NO_PICTURE,
                palette=self._palette(block, facts.palette_index) if unpacked else NO_PALETTE,
                palette_index=facts.palette_index,
                status=facts.status,
                game=facts.game,
            ),
        )

    def __iter__(self) -> Iterator[TimedFrame]:
        for block in range(self.blocks):
            for index in range(len(self.facts(block))):
                yield self.frame(block, index)

    def _palette(self, block: int, index: int) -> np.ndarray:
        """Of this block; else (older records) of the block that used it first."""
        for where in (block, *range(block)):
            self.facts(where)
            if index in self._palettes.get(where, {}):
                return self._palettes[where][index]
        return NO_PALETTE

    def _unpack(self, block: int) -> Block | None:
        if block in self._unpacked:
            self._unpacked.move_to_end(block)
            return self._unpacked[block]
        if block in self._bad:
            return None
        try:
            unpacked = self._read(block)
        except (OSError, ValueError, zstandard.ZstdError):
            self._bad.add(block)
            return None
        self._palettes.setdefault(block, {index: colours.copy() for index, colours in unpacked.palettes.items()})
        self._unpacked[block] = unpacked
        while len(self._unpacked) > UNPACKED_BLOCKS:
            self._unpacked.popitem(last=False)
        return unpacked

    def _read(self, block: int) -> Block:
        data = self._decompressed(block)
        if self._status_dtype is None:
            self._status_dtype = _status_dtype((data if block == 0 else self._decompressed(0)).partition(b"\n")[0])
        return Block(data.partition(b"\n")[2] if block == 0 else data, self._status_dtype)

    def _decompressed(self, block: int) -> bytes:
        offset, length = self._places[block]
        with self.path.open("rb") as file:
            file.seek(offset)
            packed = file.read(length)
        # What a header says is allocated before anything is unpacked, whatever `max_output_size` is.
        if zstandard.frame_content_size(packed) > MOST_UNPACKED:
            raise ValueError("a block larger than any that is written")
        return zstandard.ZstdDecompressor().decompress(packed, max_output_size=MOST_UNPACKED)


def read_frames(path: Path) -> Iterator[TimedFrame]:
    """The frames of a file, in order, but for those that are damaged. No file, no frames."""
    file = FrameFile(path)
    file.refresh()
    return iter(file)


def _block_length(descriptor: int, at: int, size: int) -> int:
    """Bytes of the zstd frame (RFC 8878) at `at`; 0: it is not all there yet; -1: there is none."""
    header = os.pread(descriptor, ZSTD_HEADER_BYTES, at)
    if not header:
        return 0
    if not header.startswith(ZSTD_MAGIC[: len(header)]):
        return -1
    try:
        start = at
        at += zstandard.frame_header_size(header)
        has_checksum = zstandard.get_frame_parameters(header).has_checksum
    except zstandard.ZstdError:
        return 0 if len(header) < ZSTD_HEADER_BYTES else -1
    last = False
    while not last:
        word = os.pread(descriptor, 3, at)
        if len(word) < 3:
            return 0
        number = int.from_bytes(word, "little")
        last, kind, length = bool(number & 1), number >> 1 & 3, number >> 3
        if kind == ZSTD_RESERVED_BLOCK:
            return -1
        at += 3 + (1 if kind == ZSTD_RLE_BLOCK else length)
    at += 4 * has_checksum
    return at - start if at <= size else 0


def _status_dtype(line: bytes) -> np.dtype:
    """Raises ValueError for a line that does not describe frames."""
    try:
        description = json.loads(line)
        if description["format"] != FORMAT:
            raise ValueError("another format")
        return np.lib.format.descr_to_dtype(_tuples(description["status"]))
    except (KeyError, TypeError) as error:
        raise ValueError(str(error)) from None


def _tuples(value: Any) -> Any:
    """A dtype description as numpy wants it: JSON has made lists of its tuples."""
    return [
        tuple(tuple(part) if isinstance(part, list) and index == 2 else part for index, part in enumerate(field))
        for field in value
    ]


def _current_status(status: np.void) -> np.void:
    """A status of an older recording as today's struct: fields of the same name are kept, new ones are 0."""
    if status.dtype == abi.DOOM_STATUS:
        return status
    current = np.zeros(1, abi.DOOM_STATUS)
    for name in set(status.dtype.names or ()) & set(abi.DOOM_STATUS.names or ()):
        if status.dtype[name] == abi.DOOM_STATUS[name]:
            current[name] = status[name]
    return current[0]
