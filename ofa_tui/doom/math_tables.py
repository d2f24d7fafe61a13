"""Integer tables of the engine's arithmetic, computed as the original's own (unused) generator computes them.

Angles go through a single-precision float before the sine or tangent is taken, with pi written as 3.141592657; the
products are cut towards zero. That float shows in the tangent near the vertical (entry 0 is -170910304).
"""

from __future__ import annotations

import numpy as np

FINE_ANGLES = 8192
SLOPE_RANGE = 2048
_PI = 3.141592657


def fine_sine() -> np.ndarray:
    """i4 [10240], 16.16: entry i is the sine of (i + 1/2) / 8192 of a circle; the cosine is 2048 entries further on."""
    angle = ((np.arange(5 * FINE_ANGLES // 4) + 0.5) * _PI * 2 / FINE_ANGLES).astype(np.float32)
    return (65536 * np.sin(angle.astype(np.float64))).astype("<i4")


def fine_tangent() -> np.ndarray:
    """i4 [4096], 16.16: entry i is the tangent of (i - 2048 + 1/2) / 8192 of a circle."""
    angle = ((np.arange(FINE_ANGLES // 2) - FINE_ANGLES // 4 + 0.5) * _PI * 2 / FINE_ANGLES).astype(np.float32)
    return (65536 * np.tan(angle.astype(np.float64))).astype(np.float32).astype("<i4")


def tan_to_angle() -> np.ndarray:
    """u4 [2049]: arctangent of i / 2048 as a binary angle (2^32 = full circle)."""
    slope = (np.arange(SLOPE_RANGE + 1, dtype=np.float32) / np.float32(SLOPE_RANGE)).astype(np.float64)
    turn = (np.arctan(slope) / (_PI * 2)).astype(np.float32)
    return (np.float32(4294967295.0) * turn).astype("<u4")
