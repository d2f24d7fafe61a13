"""Memory that is laid out before it is allocated, and can be moved."""

from __future__ import annotations

import math
import struct
from pathlib import Path

import numpy as np

ALIGNMENT = 128
IMAGE_MAGIC = 0x31474D4941464F


class Arena:
    """Named arrays in one allocation, and the pointers between them as offsets, so that it can be moved."""

    def __init__(self) -> None:
        self._places: dict[str, tuple[int, np.dtype, tuple[int, ...]]] = {}
        self._pointers: list[tuple[int, int]] = []
        self._bytes = 0
        self._memory = np.zeros(0, np.uint8)

    def reserve(self, name: str, dtype: np.dtype | type, *shape: int) -> None:
        """Room for an array, zero at first. Only before `allocate`."""
        kind = np.dtype(dtype)
        self._places[name] = (self._bytes, kind, shape)
        self._bytes += -(-max(self.bytes_of(name), 1) // ALIGNMENT) * ALIGNMENT

    @property
    def size(self) -> int:
        return self._bytes

    def allocate(self) -> None:
        raw = np.zeros(self._bytes + ALIGNMENT, np.uint8)
        shift = -raw.ctypes.data % ALIGNMENT
        self._memory = raw[shift : shift + self._bytes]

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
        address = self.address + self.offset(target)
        self._memory[field_offset : field_offset + 8].view(np.uint64)[0] = address

    def save_image(self, path: Path, launch: str) -> None:
        """Writes a relocatable image for cuda/platform/host_main.cpp."""
        header = struct.pack("<4Q", IMAGE_MAGIC, len(self._pointers), self.offset(launch), self._bytes)
        with path.open("wb") as out:
            out.write(header)
            out.write(np.array(self._pointers, np.uint64).tobytes())
            out.write(self._memory.tobytes())
