"""HTML from Python values: all text is escaped, and the page refers to nothing outside itself."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Sequence
from html import escape

from ofa_tui.record.report_canvas import DARK, LIGHT

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
"""The browser is told to load nothing, whatever got into the page."""
_UNPRINTABLE = re.compile("[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_STYLE = """
body { background: var(--paper); color: var(--text); font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto;
  max-width: 62rem; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; border-bottom: 1px solid var(--grid); }
table { border-collapse: collapse; margin: .6rem 0; } .wide { overflow-x: auto; }
th, td { text-align: left; vertical-align: top; padding: .15rem 1rem .15rem 0; border-bottom: 1px solid var(--grid);
  overflow-wrap: anywhere; }
tr > td:first-child { white-space: nowrap; }
th { font-weight: 600; color: var(--muted); } td.number { text-align: right; font-variant-numeric: tabular-nums; }
pre { background: var(--panel); padding: .6rem .8rem; white-space: pre-wrap; overflow-wrap: anywhere;
  unicode-bidi: isolate; }
pre b { color: var(--serve); } small, figcaption { color: var(--muted); }
.strip { display: flex; flex-wrap: wrap; gap: .6rem; } figure { margin: 0; }
.strip img { width: 176px; aspect-ratio: 4 / 3; image-rendering: pixelated; display: block; }
svg { display: block; width: 100%; height: auto; margin: .8rem 0; font-family: ui-monospace, monospace; }
"""


class Html(str):
    """Text that is HTML already."""


def text(value: object) -> Html:
    """Escaped; characters that a page cannot hold become U+FFFD."""
    return value if isinstance(value, Html) else Html(escape(_UNPRINTABLE.sub("\ufffd", str(value))))


def element(tag: str, *content: object, **attributes: str) -> Html:
    """An element; `class_` stands for class. Content that is not Html is escaped."""
    named = "".join(f' {name.rstrip("_")}="{text(value)}"' for name, value in attributes.items())
    return Html(f"<{tag}{named}>{joined(content)}</{tag}>")


def joined(parts: Iterable[object]) -> Html:
    return Html("".join(text(part) for part in parts))


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> Html:
    """Under a head numbers are set to the right, but in the first column."""
    body = [element("tr", *(_cell(value, bool(head) and index > 0) for index, value in enumerate(row)))
            for row in rows]
    top = element("thead", element("tr", *(element("th", name) for name in head))) if head else Html("")
    return element("div", element("table", top, element("tbody", *body)), class_="wide")


def _cell(value: object, numeric: bool) -> Html:
    if numeric and re.fullmatch(r"[+-]?[0-9][0-9,.]*( ?%)?", str(value)):
        return element("td", value, class_="number")
    return element("td", value)


def picture(png: bytes, caption: str) -> Html:
    """A PNG file, inside the page."""
    data = base64.b64encode(png).decode("ascii")
    image = Html(f'<img src="data:image/png;base64,{data}" alt="{text(caption)}">')
    return element("figure", image, element("figcaption", caption))


def page(title: str, body: Html) -> bytes:
    """The whole file."""
    style = f":root {{ {_variables(LIGHT)} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {_variables(DARK)} }} }}"
    head = joined([
        Html('<meta charset="utf-8">'),
        Html(f'<meta http-equiv="Content-Security-Policy" content="{text(POLICY)}">'),
        Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        element("title", title),
        Html(f"<style>{style}{_STYLE}</style>"),
    ])
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>{body}</body></html>\n'.encode()


def _variables(colours: dict[str, str]) -> str:
    return " ".join(f"--{name}: {value};" for name, value in colours.items())
