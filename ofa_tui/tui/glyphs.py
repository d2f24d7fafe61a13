"""Characters for terminals that do not have all of ours: the nearest one that there is, always as wide."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TextIO

from rich.cells import cell_len

ASCII, CONSOLE = "ascii", "cp437"
"""Character sets: of the locale C, and of the font that the Linux console begins with."""

LOOK_ALIKES = {
    "─━╌═╍┄┈▔▁": "─-", "│┃║╎┆▏▕": "│|", "┌┐└┘├┤┬┴┼╔╗╚╝╠╣╦╩╬": "+",
    "╭┏": "┌+", "╮┓": "┐+", "╰┗": "└+", "╯┛": "┘+", "‖": "║|",
    "←◀◂◁◄": "<", "→▶▸▷►": ">", "↑▲△": "^", "↓▼▽": "v", "·∙": ".", "•●◉○◆◇■□": "■*", "…": ".", "–—−‐": "-", "×": "x",
    "°": "°o", "µμ": "µu", "²": "²2", "‘’′": "'", "“”″": '"', "█▉▊▋": "█#", "▌▍▎": "▌|", "▐": "▐|", "▀": '▀"',
    "▂▃": "▄_", "▄": "▄=", "▅▆▇": "█#", "░▒▓": "░:", "▘▝▀": '▀"', "▖▗": "▄_", "▚▞▙▛▜▟": "█%", "✓✔": "v", "✗✘": "x",
}  # fmt: skip
"""Of each group, what stands for it, best first."""
_BY_CHARACTER = {character: found for group, found in LOOK_ALIKES.items() for character in group}
_BRAILLE, _DOTS = range(0x2800, 0x2900), " ..::oo##"


def character_set(environ: Mapping[str, str] = os.environ, encoding: str = "utf-8") -> str:
    """The codec whose characters the terminal shows; "utf-8": all. `encoding` is that of the stream to it.

    Python turns the locale C into UTF-8 for itself (PEP 538, 540), and says so in LC_CTYPE; the terminal's stays C.
    """
    if environ.get("TEXTUAL_DRIVER"):  # a browser
        return "utf-8"
    assumed = ("C.UTF-8", "C.utf8", "UTF-8")
    kind = environ.get("LC_CTYPE", "")
    locale = environ.get("LC_ALL") or (kind if kind not in assumed else "") or environ.get("LANG") or kind
    if locale in ("C", "POSIX"):
        return ASCII
    if encoding.lower().replace("-", "") != "utf8":
        return encoding
    return CONSOLE if environ.get("TERM") == "linux" else "utf-8"


class LookAlikes(dict[int, str]):
    """For str.translate: every character by one that `codec` has and that takes as many cells."""

    def __init__(self, codec: str) -> None:
        super().__init__({code: chr(code) for code in range(0x80)})
        self._codec = codec

    def __missing__(self, code: int) -> str:
        self[code] = found = self._find(chr(code))
        return found

    def _find(self, character: str) -> str:
        if ord(character) in _BRAILLE:
            return _DOTS[(ord(character) - _BRAILLE.start).bit_count()]
        plain = unicodedata.normalize("NFKD", character)[:1]
        for candidate in (character, *_BY_CHARACTER.get(character, ""), plain):
            if self._has(candidate) and cell_len(candidate) == cell_len(character):
                return candidate
        return "?" * cell_len(character)

    def _has(self, character: str) -> bool:
        try:
            return bool(character.encode(self._codec))
        except UnicodeEncodeError:
            return False


def look_alike(text: str, codec: str) -> str:
    """The text with only what the codec has."""
    return text if codec == "utf-8" else text.translate(LookAlikes(codec))


class _Translated:
    """A text stream that is written to in look-alikes."""

    def __init__(self, stream: TextIO, table: LookAlikes) -> None:
        self._stream, self._table = stream, table

    def write(self, text: str) -> int:
        return self._stream.write(text.translate(self._table))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def translated(stream: TextIO, codec: str) -> Iterator[TextIO]:
    """`stream` itself for "utf-8", else one that writes only what the codec has."""
    if codec == "utf-8":
        yield stream
    else:
        yield _Translated(stream, LookAlikes(codec))  # type: ignore[misc]
