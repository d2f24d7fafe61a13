"""Themes: named colours read from themes/*.toml, and a user's own from the configuration folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from ofa_tui import abi, locations
from ofa_tui.errors import OfaError
from ofa_tui.tui import toml_file
from ofa_tui.tui.colour import Depth, blend, parse_hex


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
    faintest: float = 0.25
    """Least share of a hue, mixed with the background, that still shows as that hue; 1 where there are no shades."""

    def faded(self, hue: int, share: float) -> int:
        """`share` (0..1) of the hue over the background, but no fainter than it still shows."""
        return blend(self.background, hue, max(share, self.faintest))

    @property
    def shaded(self) -> bool:
        """Whether a hue can be shown in more than one strength."""
        return self.faintest < 1

    def role(self, role: int) -> int:
        """Hue of a role (index into abi.ROLES)."""
        return (self.idle, self.train, self.serve, self.doom)[role if role < len(abi.ROLES) else 0]

    def role_text(self, role: int) -> int:
        """The role's hue, readable as text."""
        return (self.muted, self.train_text, self.serve_text, self.doom_text)[role if role < len(abi.ROLES) else 0]


_NO_COLOURS = ("name", "summary", "dark", "faintest")
_GROUNDS = ("background", "panel", "idle")


def for_depth(theme: Theme, depth: Depth) -> Theme:
    """The theme as a terminal of that depth can show it: as it is, with stronger shades, in plain hues, in one."""
    change = {Depth.EIGHT_BIT: _in_256, Depth.FOUR_BIT: _in_sixteen, Depth.NONE: _in_one}.get(depth)
    return change(theme) if change else theme


def _in_256(theme: Theme) -> Theme:
    """The colour cube has few dark hues: weaker shades would fall on its greys."""
    return replace(theme, faintest=0.6)


def _in_one(theme: Theme) -> Theme:
    """Ink on the terminal's own ground; which of them is the brighter one is not known."""
    names = [f.name for f in fields(Theme) if f.name not in _NO_COLOURS]
    ink = {name: 0x000000 if name in _GROUNDS else 0xFFFFFF for name in names}
    return replace(theme, dark=True, faintest=1.0, **ink)  # type: ignore[arg-type]


def _in_sixteen(theme: Theme) -> Theme:
    """Pastel texts and faint borders would fall on greys and black: plain hues take their place."""
    plain = (0x5C5CFF, 0xFFFF00, 0xFF0000, 0x00FF00) if theme.dark else (0x0000EE, 0xCD00CD, 0xCD0000, 0x000000)
    blue, yellow, red, green = plain
    return replace(
        theme,
        faintest=1.0,
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
        return _theme_of(toml_file.parse(toml_file.read_text(path)))
    except FileNotFoundError:
        raise OfaError(f"theme {path} cannot be used: it is not there; correct or remove it") from None
    except ValueError as error:
        raise OfaError(f"theme {path} cannot be used: {error}; correct or remove it") from None


def _theme_of(data: Mapping[str, Any]) -> Theme:
    """Raises ValueError with what is wrong."""
    colours = data.get("colours", {})
    needed = [f.name for f in fields(Theme) if f.name not in _NO_COLOURS]
    if not isinstance(data.get("name"), str) or not data["name"]:
        raise ValueError("it has no name")
    summary = str(data.get("summary", ""))
    for what, text in (("name", data["name"]), ("summary", summary)):
        if not text.isprintable():
            raise ValueError(f"its {what} is {text!r}, with characters that cannot be printed")
    if not isinstance(data.get("dark"), bool):
        raise ValueError("dark must be true or false")
    if not isinstance(colours, dict):
        raise ValueError("[colours] must be a table")
    if missing := [name for name in needed if name not in colours]:
        raise ValueError(f"[colours] lacks {', '.join(missing)}")
    if unknown := [name for name in colours if name not in needed]:
        raise ValueError(f"[colours] knows no colour {', '.join(map(repr, unknown))}")
    packed = {name: parse_hex(value) for name, value in colours.items()}
    return Theme(name=data["name"], summary=summary, dark=data["dark"], **packed)


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
