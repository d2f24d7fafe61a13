"""Memory that is laid out before it is allocated, and can be moved."""

from __future__ import annotations

import math
import struct
from pathlib import Path

import numpy as np

ALIGNMENT = 128
PAGE = 4096
IMAGE_MAGIC = 0x31474D4941464F


class Arena:
    """Named arrays in one allocation, and the pointers between them as offsets, so that it can be moved."""

    def __init__(self) -> None:
        self._places: dict[str, tuple[int, np.dtype, tuple[int, ...]]] = {}
        self._pointers: list[tuple[int, int]] = []
        self._base = 0
        self._bytes = 0
        self._memory = np.zeros(0, np.uint8)

    def reserve(self, name: str, dtype: np.dtype | type, *shape: int) -> None:
        """Room for an array, zero at first. Only before `allocate`."""
        kind = np.dtype(dtype)
        self._places[name] = (self._bytes, kind, shape)
        self._bytes += -(-max(self.bytes_of(name), 1) // ALIGNMENT) * ALIGNMENT

    def pad_to(self, offset: int) -> None:
        """The next array lies at `offset` or behind it."""
        self._bytes = max(self._bytes, offset)

    def names(self) -> list[str]:
        return list(self._places)

    @property
    def size(self) -> int:
        return self._bytes

    def allocate(self) -> None:
        """Memory of this process, from the beginning of a page on; what nobody writes takes none."""
        raw = np.zeros(self._bytes + PAGE, np.uint8)
        shift = -raw.ctypes.data % PAGE
        self._memory = raw[shift : shift + self._bytes]
        self._base = self.address

    @property
    def address(self) -> int:
        return self._memory.ctypes.data

    def bytes_of(self, name: str) -> int:
        _, dtype, shape = self._places[name]
        return dtype.itemsize * math.prod(shape)

    def offset(self, name: str) -> int:
        return self._places[name][0]

    def __contains__(self, name: str) -> bool:
        return name in self._places

    def __getitem__(self, name: str) -> np.ndarray:
        offset, dtype, shape = self._places[name]
        return self._memory[offset : offset + self.bytes_of(name)].view(dtype).reshape(shape)

    def point(self, field_offset: int, target: str) -> None:
        """Makes the u8 at `field_offset` the address of array `target`."""
        self._pointers.append((field_offset, self.offset(target)))
        self._write_pointer(*self._pointers[-1])

    def _write_pointer(self, field_offset: int, target_offset: int) -> None:
        self._memory[field_offset : field_offset + 8].view(np.uint64)[0] = self._base + target_offset

    def relocate(self, base: int) -> None:
        """Makes all pointers those of a copy of the arena that begins at address `base`, of a GPU for example."""
        self._base = base
        for field_offset, target_offset in self._pointers:
            self._write_pointer(field_offset, target_offset)

    def part(self, first: int, count: int) -> np.ndarray:
        """u1 [count]: the bytes from offset `first` on, not a copy."""
        return self._memory[first : first + count]

    def save_image(self, path: Path, launch: str) -> None:
        """Writes a relocatable image for cuda/platform/host_main.cpp."""
        header = struct.pack("<4Q", IMAGE_MAGIC, len(self._pointers), self.offset(launch), self._bytes)
        with path.open("wb") as out:
            out.write(header)
            out.write(np.array(self._pointers, np.uint64).tobytes())
            out.write(self._memory.tobytes())
