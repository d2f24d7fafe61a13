"""Colour depths: how many colours a terminal shows, and the nearest colour it has to a given one.

Colours are packed as 0xRRGGBB in u4 everywhere in the terminal UI.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from enum import Enum
from functools import lru_cache

import numpy as np


class Depth(Enum):
    """What the terminal can show."""

    TRUECOLOR = "truecolor"
    EIGHT_BIT = "256"
    FOUR_BIT = "16"
    NONE = "none"


def detect_depth(environ: Mapping[str, str] = os.environ) -> Depth:
    """The depth the environment announces: NO_COLOR (no-color.org), then COLORTERM, then TERM. What serves the app to
    a browser says TEXTUAL_COLOR_SYSTEM, and its TERM is that of the terminal it was started in."""
    if environ.get("NO_COLOR"):
        return Depth.NONE
    if "truecolor" in (environ.get("COLORTERM", "").lower(), environ.get("TEXTUAL_COLOR_SYSTEM")):
        return Depth.TRUECOLOR
    if environ.get("COLORTERM", "").lower() == "24bit":
        return Depth.TRUECOLOR
    term = environ.get("TERM", "").lower()
    if term.endswith("-direct") or "kitty" in term or "alacritty" in term or "ghostty" in term:
        return Depth.TRUECOLOR
    if "256" in term:
        return Depth.EIGHT_BIT
    if term in ("vt100", "vt102", "vt220") or term.endswith("-m") or term.endswith("-mono"):
        return Depth.NONE
    return Depth.FOUR_BIT


def pack(red: int, green: int, blue: int) -> int:
    return red << 16 | green << 8 | blue


def parse_hex(text: object) -> int:
    """'#rrggbb' as a packed colour. Raises ValueError for anything else."""
    if not isinstance(text, str) or not re.fullmatch("#[0-9a-fA-F]{6}", text):
        raise ValueError(f"{text!r} is not a colour of the form #rrggbb")
    return int(text[1:], 16)


def to_hex(colour: int) -> str:
    return f"#{colour:06x}"


def blend(first: int, second: int, share: float) -> int:
    """`first` with `share` (0..1) of `second` mixed in."""
    share = min(1.0, max(0.0, share))
    mixed = 0
    for shift in (16, 8, 0):
        a, b = first >> shift & 255, second >> shift & 255
        mixed |= round(a + (b - a) * share) << shift
    return mixed


def channels(colours: np.ndarray) -> np.ndarray:
    """u4 [...] packed colours as i4 [..., 3]."""
    values = colours.astype(np.int32)
    return np.stack((values >> 16 & 255, values >> 8 & 255, values & 255), axis=-1)


def luminance(colours: np.ndarray) -> np.ndarray:
    """Brightness 0..255 (Rec. 601 weights) of packed colours, i4 of the same shape."""
    values = colours.astype(np.int32)
    return (77 * (values >> 16 & 255) + 150 * (values >> 8 & 255) + 29 * (values & 255)) >> 8


def light(colours: np.ndarray) -> np.ndarray:
    """Relative luminance 0..1 (WCAG 2.2, with a plain power for its curve) of packed colours, f8 of the same shape."""
    share: np.ndarray = (channels(colours) / 255.0) ** 2.2 @ (0.2126, 0.7152, 0.0722)
    return share


_CUBE_LEVELS = np.array([0, 95, 135, 175, 215, 255], np.int32)

ANSI_16 = np.array(
    [
        0x000000, 0xCD0000, 0x00CD00, 0xCDCD00, 0x0000EE, 0xCD00CD, 0x00CDCD, 0xE5E5E5,
        0x7F7F7F, 0xFF0000, 0x00FF00, 0xFFFF00, 0x5C5CFF, 0xFF00FF, 0x00FFFF, 0xFFFFFF,
    ],
    np.uint32,
)  # fmt: skip
"""xterm's default sixteen."""


@lru_cache(maxsize=1)
def xterm_palette() -> np.ndarray:
    """u4 [256]: xterm's 16 colours, its 6x6x6 cube and its 24 greys."""
    levels = [int(v) for v in _CUBE_LEVELS]
    cube = [pack(r, g, b) for r in levels for g in levels for b in levels]
    greys = [pack(v, v, v) for v in range(8, 248, 10)]
    return np.array([*(int(c) for c in ANSI_16), *cube, *greys], np.uint32)


def _key(colours: np.ndarray) -> np.ndarray:
    """18-bit key: the top six bits of each channel."""
    values = colours.astype(np.uint32)
    return (values >> 18 & 63) << 12 | (values >> 10 & 63) << 6 | (values >> 2 & 63)


@lru_cache(maxsize=2)
def _lookup(depth: Depth) -> np.ndarray:
    """u1 [2**18]: index of the nearest terminal colour for every 6-bit-per-channel colour."""
    steps = (np.arange(64, dtype=np.int32) * 255 + 31) // 63
    red, green, blue = (a.ravel() for a in np.meshgrid(steps, steps, steps, indexing="ij"))
    if depth is Depth.FOUR_BIT:
        best = np.full(red.size, 1 << 30, np.int32)
        index = np.zeros(red.size, np.uint8)
        for number, (r, g, b) in enumerate(channels(ANSI_16)):
            distance = 3 * (red - r) ** 2 + 6 * (green - g) ** 2 + 2 * (blue - b) ** 2
            closer = distance < best
            best[closer] = distance[closer]
            index[closer] = number
        return index
    nearest = np.abs(steps[:, None] - _CUBE_LEVELS).argmin(axis=1)
    quotient = [(c * 63 + 127) // 255 for c in (red, green, blue)]
    r, g, b = (nearest[q] for q in quotient)
    cube_error = sum((c - _CUBE_LEVELS[i]) ** 2 for c, i in zip((red, green, blue), (r, g, b), strict=True))
    grey = np.clip(((red + green + blue) // 3 - 3) // 10, 0, 23)
    grey_error = sum((c - (8 + 10 * grey)) ** 2 for c in (red, green, blue))
    return np.where(grey_error < cube_error, 232 + grey, 16 + 36 * r + 6 * g + b).astype(np.uint8)


def quantise(colours: np.ndarray, depth: Depth) -> np.ndarray:
    """u1, same shape: index of the nearest of the terminal's 256 or 16 colours."""
    return _lookup(depth)[_key(colours)]
