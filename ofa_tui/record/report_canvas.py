"""What a report's plots are drawn on: SVG inside its page, and PNG files beside it."""

from __future__ import annotations

import io
from collections.abc import Sequence
from html import escape
from typing import Protocol

from PIL import Image, ImageColor, ImageDraw, ImageFont

from ofa_tui import locations

LIGHT = {
    "paper": "#ffffff", "panel": "#f4f5f7", "grid": "#d9dce1", "text": "#1b1f24", "muted": "#5f6873",
    "train": "#1769c4", "serve": "#a86400", "doom": "#c8372c", "idle": "#8a9099", "held_out": "#1f8a3b",
    "reference": "#7a4fb5", "machine": "#3f6f76",
}  # fmt: skip
DARK = {
    "paper": "#0f1216", "panel": "#181c22", "grid": "#2f353d", "text": "#dfe3e8", "muted": "#98a1ac",
    "train": "#4fa8ff", "serve": "#ffb43c", "doom": "#ff5a4f", "idle": "#767d87", "held_out": "#67d67f",
    "reference": "#bb94f0", "machine": "#7fb9c2",
}  # fmt: skip
"""Colours by name; PNG files use the light ones."""

Point = tuple[float, float]
FONT_SIZE = 12
SCALE = 2
"""Pixels of a PNG for one unit."""
BAND_OPACITY = 0.25


class Canvas(Protocol):
    """Units are CSS pixels, y grows downwards; colours are keys of LIGHT. Text sits on its baseline."""

    def line(self, points: Sequence[Point], colour: str, width: float = 1.0) -> None: ...

    def band(self, points: Sequence[Point], colour: str) -> None:
        """A filled polygon that lets through what is below."""
        ...

    def marker(self, at: Point, colour: str) -> None: ...

    def text(self, at: Point, text: str, colour: str, anchor: str = "start") -> None:
        """`anchor`: "start", "middle" or "end", the part of the text that is at `at`."""
        ...


def _diamond(at: Point) -> list[Point]:
    x, y = at
    return [(x, y - 4), (x + 4, y), (x, y + 4), (x - 4, y)]


class SvgCanvas:
    """Colours are the CSS variables of the page."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self._parts = [f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(title)}">']

    def line(self, points: Sequence[Point], colour: str, width: float = 1.0) -> None:
        style = f"fill:none;stroke:var(--{colour});stroke-width:{width:g}"
        self._parts.append(f'<polyline points="{_points(points)}" style="{style}"/>')

    def band(self, points: Sequence[Point], colour: str) -> None:
        style = f"fill:var(--{colour});fill-opacity:{BAND_OPACITY}"
        self._parts.append(f'<polygon points="{_points(points)}" style="{style}"/>')

    def marker(self, at: Point, colour: str) -> None:
        self._parts.append(f'<polygon points="{_points(_diamond(at))}" style="fill:var(--{colour})"/>')

    def text(self, at: Point, text: str, colour: str, anchor: str = "start") -> None:
        style = f"fill:var(--{colour});text-anchor:{anchor};font-size:{FONT_SIZE}px"
        self._parts.append(f'<text x="{at[0]:.1f}" y="{at[1]:.1f}" style="{style}">{escape(text)}</text>')

    def encode(self) -> str:
        return "".join([*self._parts, "</svg>"])


def _points(points: Sequence[Point]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


class PngCanvas:
    """In the light colours, SCALE pixels a unit."""

    def __init__(self, width: int, height: int) -> None:
        self._image = Image.new("RGB", (width * SCALE, height * SCALE), LIGHT["paper"])
        self._draw = ImageDraw.Draw(self._image, "RGBA")
        path = locations.assets() / "fonts" / "DejaVuSansMono.ttf"
        self._font = ImageFont.truetype(str(path), FONT_SIZE * SCALE - 2)

    def line(self, points: Sequence[Point], colour: str, width: float = 1.0) -> None:
        self._draw.line(_scaled(points), LIGHT[colour], max(1, round(width * SCALE)), joint="curve")

    def band(self, points: Sequence[Point], colour: str) -> None:
        red, green, blue = ImageColor.getrgb(LIGHT[colour])[:3]
        self._draw.polygon(_scaled(points), (red, green, blue, round(255 * BAND_OPACITY)))

    def marker(self, at: Point, colour: str) -> None:
        self._draw.polygon(_scaled(_diamond(at)), LIGHT[colour])

    def text(self, at: Point, text: str, colour: str, anchor: str = "start") -> None:
        place = {"start": "ls", "middle": "ms", "end": "rs"}[anchor]
        self._draw.text(_scaled([at])[0], text, LIGHT[colour], self._font, place)

    def encode(self) -> bytes:
        file = io.BytesIO()
        self._image.save(file, "PNG")
        return file.getvalue()


def _scaled(points: Sequence[Point]) -> list[Point]:
    return [(x * SCALE, y * SCALE) for x, y in points]
