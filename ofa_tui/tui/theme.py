"""Themes: named colours read from themes/*.toml, and a user's own from the configuration folder."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields, replace
from pathlib import Path

from ofa_tui import abi, locations
from ofa_tui.errors import OfaError
from ofa_tui.tui.colour import Depth, parse_hex


@dataclass(frozen=True)
class Theme:
    """All colours of the UI, packed 0xRRGGBB. `train`, `serve`, `doom`, `idle` are the roles' hues."""

    name: str
    summary: str
    dark: bool
    background: int
    panel: int
    border: int
    border_active: int
    text: int
    muted: int
    bright: int
    key: int
    train: int
    serve: int
    doom: int
    idle: int
    train_text: int
    serve_text: int
    doom_text: int
    held_out: int
    machine: int
    warning: int
    error: int

    def role(self, role: int) -> int:
        """Hue of a role (index into abi.ROLES)."""
        return (self.idle, self.train, self.serve, self.doom)[role if role < len(abi.ROLES) else 0]

    def role_text(self, role: int) -> int:
        """The role's hue, readable as text."""
        return (self.muted, self.train_text, self.serve_text, self.doom_text)[role if role < len(abi.ROLES) else 0]


def for_depth(theme: Theme, depth: Depth) -> Theme:
    """With sixteen colours pastel texts and faint borders fall on greys and black: plain hues take their place."""
    if depth is not Depth.FOUR_BIT:
        return theme
    plain = (0x5C5CFF, 0xFFFF00, 0xFF0000, 0x00FF00) if theme.dark else (0x0000EE, 0xCD00CD, 0xCD0000, 0x000000)
    blue, yellow, red, green = plain
    return replace(
        theme,
        border=0x7F7F7F,
        train=blue,
        train_text=blue,
        serve_text=yellow,
        doom=red,
        doom_text=red,
        key=yellow,
        held_out=green,
    )


def read_theme(path: Path) -> Theme:
    """Raises OfaError for a file that is not a complete theme."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        colours = {name: parse_hex(value) for name, value in data["colours"].items()}
        return Theme(name=data["name"], summary=data.get("summary", ""), dark=bool(data["dark"]), **colours)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        needed = ", ".join(f.name for f in fields(Theme)[3:])
        raise OfaError(f"theme {path} cannot be used ({error}); it needs name, dark and [colours] {needed}") from None


def load_themes() -> dict[str, Theme]:
    """Shipped themes, default first, then the user's own from <config>/themes (same name: theirs wins)."""
    themes: dict[str, Theme] = {}
    shipped = sorted(locations.themes().glob("*.toml"), key=lambda p: (p.stem != "dark", p.stem))
    own = sorted((locations.config() / "themes").glob("*.toml"))
    for path in (*shipped, *own):
        theme = read_theme(path)
        themes[theme.name] = theme
    if not themes:
        raise OfaError(f"no theme in {locations.themes()}; the installation is incomplete, install ofa-tui again")
    return themes


def check_theme(name: str) -> None:
    """Raises OfaError where no theme is called so, or a theme file is damaged."""
    themes = load_themes()
    if name and name not in themes:
        raise OfaError(f"there is no theme {name!r}; choose {', '.join(themes)}")
