"""Where the elements of a buffer lie (abi.LAYOUTS)."""

from __future__ import annotations

import numpy as np


def to_stream(matrix: np.ndarray) -> np.ndarray:
    """`matrix` [rows, cols], both multiples of 16, in stream order: the same elements in an array of the same shape."""
    rows, cols = matrix.shape
    parts = matrix.reshape(rows // 16, 2, 8, cols // 16, 2, 4, 2)  # block, half, row; block, half, pair, column
    return parts.transpose(0, 3, 2, 5, 4, 1, 6).reshape(rows, cols)
