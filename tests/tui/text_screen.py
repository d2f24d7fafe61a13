"""A terminal in miniature: what its screen reads after some bytes, and which of them it did not understand.

Characters and colours, no attributes beyond those. Functions: ECMA-48, and of DEC's and xterm's what full-screen
programs, tmux and screen send to the kind of terminal that TERM promised them.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from rich.cells import cell_len

_CSI = r"\x1b\[(?P<private>[<-?]*)(?P<numbers>[0-9;:]*)(?P<between>[ -/]*)(?P<final>[@-~])"
_STRING = r"\x1b[\]P_^X][^\x07\x1b]*(?:\x07|\x1b\\)"
_TOKEN = re.compile(
    rf"(?P<text>[^\x00-\x1f\x7f\x1b]+)|{_CSI}|(?P<string>{_STRING})|(?P<escape>\x1b[ -/]*[0-Z\\^-~])"
    r"|(?P<control>[\x00-\x1a\x1c-\x1f\x7f])"
)
_LONGEST = 512
"""Characters of a sequence that may still be on its way."""


@dataclass
class TextScreen:
    """`feed` it decoded text. `sgr` counts each kind of rendition parameter, `unknown` what it does not know."""

    columns: int
    lines: int
    unknown: Counter[str] = field(default_factory=Counter)
    sgr: Counter[str] = field(default_factory=Counter)
    second_screen: bool = True
    """Whether it has the alternate screen of xterm (1049)."""
    modes: set[str] = field(default_factory=set)
    """Private modes that are on."""
    seen: set[str] = field(default_factory=set)
    """Characters that were written."""
    alternate: bool = False

    def __post_init__(self) -> None:
        self._rows = self._blank()
        self._main = self._rows
        self._x = self._y = 0
        self._saved = (0, 0)
        self._top, self._bottom = 0, self.lines - 1
        self._rest = ""
        self._wraps = True
        self._last = " "

    def _blank(self) -> list[list[str]]:
        return [[" "] * self.columns for _ in range(self.lines)]

    @property
    def cursor(self) -> tuple[int, int]:
        """(column, row), from 0."""
        return self._x, self._y

    def row(self, y: int) -> str:
        return "".join(self._rows[y])

    def text(self) -> str:
        return "\n".join(self.row(y).rstrip() for y in range(self.lines))

    def feed(self, text: str) -> None:
        text = self._rest + text
        at = 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                if len(text) - at < _LONGEST:
                    break
                self.unknown[text[at : at + 20]] += 1
                at += 1
                continue
            at = match.end()
            if match["text"] is not None:
                self._write(match["text"])
            elif match["final"]:
                self._control_sequence(match)
            elif match["control"]:
                self._control(match["control"])
            elif match["escape"]:
                self._escape(match["escape"])
        self._rest = text[at:]

    # --- characters ---------------------------------------------------------------------------------------------

    def _write(self, text: str) -> None:
        self._last = text[-1]
        self.seen.update(text)
        if self._x + len(text) <= self.columns and (text.isascii() or cell_len(text) == len(text)):
            self._rows[self._y][self._x : self._x + len(text)] = text
            self._x += len(text)
            return
        for character in text:
            width = cell_len(character)
            if self._x + width > self.columns:
                if self._wraps:
                    self._x = 0
                    self._line_feed()
                else:
                    self._x = self.columns - width
            self._rows[self._y][self._x : self._x + width] = [character, "", ""][:width]
            self._x += width

    def _control(self, character: str) -> None:
        if character == "\r":
            self._x = 0
        elif character in "\n\v\f":
            self._line_feed()
        elif character == "\b":
            self._x = max(0, min(self._x, self.columns - 1) - 1)
        elif character == "\t":
            self._x = min(self.columns - 1, self._x // 8 * 8 + 8)
        elif character not in "\a\x00\x0e\x0f":
            self.unknown[character] += 1

    def _line_feed(self) -> None:
        if self._y == self._bottom:
            self._scroll(self._top, 1)
        else:
            self._y = min(self.lines - 1, self._y + 1)

    def _scroll(self, top: int, count: int) -> None:
        """Lines from `top` to the margin move up by `count`, or down where it is negative."""
        for _ in range(min(abs(count), self.lines)):
            self._rows.pop(top if count > 0 else self._bottom)
            self._rows.insert(self._bottom if count > 0 else top, [" "] * self.columns)

    def _escape(self, sequence: str) -> None:
        kind = sequence[1]
        if kind == "7":
            self._saved = self._x, self._y
        elif kind == "8":
            self._x, self._y = self._saved
        elif kind == "M":
            if self._y == self._top:
                self._scroll(self._top, -1)
            else:
                self._y = max(0, self._y - 1)
        elif kind == "D":
            self._line_feed()
        elif kind == "E":
            self._x = 0
            self._line_feed()
        elif kind == "c":
            self._rows = self._blank()
        elif kind not in "=>()*+\\#H":
            self.unknown[sequence] += 1

    # --- control sequences --------------------------------------------------------------------------------------

    def _control_sequence(self, match: re.Match[str]) -> None:
        private, final = match["private"], match["final"] if not match["between"] else match["between"] + match["final"]
        if private or match["between"]:
            self._private(private, final, match["numbers"], match[0])
            return
        if final == "m":
            self._rendition(match["numbers"])
            return
        numbers = [int(n) if n else 0 for n in match["numbers"].replace(":", ";").split(";")]
        count = max(1, numbers[0])
        x, y = min(self._x, self.columns - 1), self._y
        row = self._rows[y]
        if final in "Hf":
            self._move(max(1, numbers[1]) - 1 if len(numbers) > 1 else 0, count - 1)
        elif final in "ABCDEFGd`ae":
            self._step(final, x, y, count)
        elif final == "J":
            self._erase_screen(numbers[0], x, y)
        elif final == "K":
            first, end = ((x, self.columns), (0, x + 1), (0, self.columns))[min(numbers[0], 2)]
            row[first:end] = [" "] * (end - first)
        elif final == "X":
            row[x : x + count] = [" "] * min(count, self.columns - x)
        elif final == "P":
            row[x:] = (row[x + count :] + [" "] * self.columns)[: self.columns - x]
        elif final == "@":
            row[x:] = ([" "] * count + row[x:])[: self.columns - x]
        elif final == "b":
            self._write(self._last * count)
        elif final in "LM":
            self._scroll(y, count if final == "M" else -count)
        elif final in "ST":
            self._scroll(self._top, count if final == "S" else -count)
        elif final == "r":
            self._top = count - 1
            self._bottom = (numbers[1] if len(numbers) > 1 and numbers[1] else self.lines) - 1
            self._move(0, 0)
        elif final not in "nchlgt":
            self.unknown[match[0]] += 1

    def _move(self, x: int, y: int) -> None:
        self._x, self._y = max(0, min(x, self.columns - 1)), max(0, min(y, self.lines - 1))

    def _step(self, final: str, x: int, y: int, count: int) -> None:
        across = {"C": count, "a": count, "D": -count}.get(final, 0)
        down = {"A": -count, "B": count, "e": count, "E": count, "F": -count}.get(final, 0)
        if final in "EF":
            x = 0
        self._move(count - 1 if final in "G`" else x + across, count - 1 if final == "d" else y + down)

    def _erase_screen(self, part: int, x: int, y: int) -> None:
        first, end = ((y * self.columns + x, None), (0, y * self.columns + x + 1), (0, None))[min(part, 2)]
        for cell in range(first, end if end is not None else self.lines * self.columns):
            self._rows[cell // self.columns][cell % self.columns] = " "

    def _private(self, private: str, final: str, numbers: str, sequence: str) -> None:
        if private == "?" and final in "hl":
            for mode in numbers.split(";"):
                (self.modes.add if final == "h" else self.modes.discard)(mode)
                if mode == "7":
                    self._wraps = final == "h"
                if mode == "1049" and self.second_screen:
                    self.alternate = final == "h"
                    self._rows = self._blank() if self.alternate else self._main
        elif sequence in ("\x1b[!p",) or final in (" q", "$p", "u", "q", "c", "m", "p", "n"):
            return
        else:
            self.unknown[sequence] += 1

    def _rendition(self, numbers: str) -> None:
        codes = numbers.replace(":", ";").split(";")
        while codes:
            code = codes.pop(0)
            if code in ("38", "48") and codes:
                kind = codes.pop(0)
                self.sgr[f"{code};{kind}"] += 1
                del codes[: 1 if kind == "5" else 3]
            else:
                self.sgr[code or "0"] += 1
