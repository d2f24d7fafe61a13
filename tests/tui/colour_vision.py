"""How far apart two colours look, and to whom: contrast, perceptual distance, colour-vision deficiencies."""

from __future__ import annotations

import numpy as np

from ofa_tui.tui.colour import channels

NORMAL = "normal vision"
DEFICIENCIES = {
    NORMAL: np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
"""On linear RGB, at severity 1.0: G. M. Machado, M. M. Oliveira, L. A. F. Fernandes, "A Physiologically-based Model for
Simulation of Color Vision Deficiency", IEEE TVCG 15(6), 2009, doi 10.1109/TVCG.2009.113, table of its supplement."""

_TO_CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_TO_OKLAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def linear(colour: int) -> np.ndarray:
    """f8 [3], 0..1: linear RGB of a packed sRGB colour (IEC 61966-2-1)."""
    share = channels(np.array(colour)) / 255
    return np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)


def contrast(first: int, second: int) -> float:
    """Contrast ratio 1..21 of WCAG 2.2, "relative luminance"."""
    lights = sorted(float(linear(colour) @ (0.2126, 0.7152, 0.0722)) for colour in (first, second))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


def distance(first: int, second: int, vision: str = NORMAL) -> float:
    """Distance in Oklab (B. Ottosson, 2020; black to white is 1, just noticeable about 0.02) as `vision` sees it."""
    seen = [np.clip(DEFICIENCIES[vision] @ linear(colour), 0, 1) for colour in (first, second)]
    one, other = (_TO_OKLAB @ np.cbrt(_TO_CONES @ colour) for colour in seen)
    return float(np.linalg.norm(one - other))
