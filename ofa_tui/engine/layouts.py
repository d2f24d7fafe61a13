"""Where the elements of a buffer lie (abi.LAYOUTS), and bf16, which numpy does not have."""

from __future__ import annotations

import numpy as np


def to_stream(matrix: np.ndarray) -> np.ndarray:
    """`matrix` [rows, cols], both multiples of 16, in stream order: the same elements in an array of the same shape."""
    rows, cols = matrix.shape
    parts = matrix.reshape(rows // 16, 2, 8, cols // 16, 2, 4, 2)  # block, half, row; block, half, pair, column
    return parts.transpose(0, 3, 2, 5, 4, 1, 6).reshape(rows, cols)


def to_bf16(values: np.ndarray) -> np.ndarray:
    """u2: the bits of the bf16 nearest to each f4, ties to even. Values must be finite."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((bits + (0x7FFF + ((bits >> 16) & 1))) >> 16).astype(np.uint16)


def from_bf16(bits: np.ndarray) -> np.ndarray:
    """f4: the numbers whose bf16 bits these are (u2)."""
    return (bits.astype(np.uint32) << 16).view(np.float32)
