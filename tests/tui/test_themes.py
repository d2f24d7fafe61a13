"""The shipped themes: complete, readable, and with roles that everyone can tell apart."""

from __future__ import annotations

import os
from dataclasses import fields
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from colour_vision import DEFICIENCIES, contrast, distance

from ofa_tui import abi, locations
from ofa_tui.errors import OfaError
from ofa_tui.tui.colour import Depth, quantise, xterm_palette
from ofa_tui.tui.panes.sms import ink_on, shade
from ofa_tui.tui.theme import Theme, for_depth, load_themes, read_theme

SHIPPED = sorted(path.stem for path in locations.themes().glob("*.toml"))

OTHER = ("name", "summary", "dark", "faintest")
"""What of a theme is no colour."""
READING = 7.0
"""Contrast of running text (WCAG 2.2, level AAA)."""
WORDS = 4.5
"""Of every other text (level AA)."""
SHAPES = 3.0
"""Of what is no text: bars, curves, cells, the border of the active pane (WCAG 2.2, 1.4.11)."""
HUES_APART = 0.10
"""Distance between two roles' hues in Oklab: five just noticeable steps."""
TEXTS_APART = 0.08
"""Between the roles' texts, which stand beside the role's name or letter."""
FROM_IDLE = 0.20
MARKERS_APART = 0.07
"""Between the held-out markers and the training curve, which differ in shape too."""
WAITING_APART = 0.07
"""Between two roles' cells of SMs that have nothing to do, which are the faintest."""
DISTINCT_HUES_APART, DISTINCT_TEXTS_APART = 0.20, 0.12
"""The same, of the theme made for it."""


@pytest.fixture(autouse=True)
def no_themes_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OFA_TUI_CONFIG", str(tmp_path))


def shown(colour: int, depth: Depth) -> int:
    """What a terminal of this depth makes of the colour."""
    return colour if depth is Depth.TRUECOLOR else int(xterm_palette()[quantise(np.array(colour), depth)])


def nearest(theme: Theme, names: tuple[str, ...], depth: Depth, vision: str) -> float:
    """Least distance between two of the theme's colours."""
    colours = [shown(getattr(theme, name), depth) for name in names]
    return min(distance(one, other, vision) for one, other in combinations(colours, 2))


def test_distances_and_contrasts_are_those_that_are_published() -> None:
    assert contrast(0x000000, 0xFFFFFF) == pytest.approx(21)
    assert contrast(0x777777, 0xFFFFFF) == pytest.approx(4.48, abs=0.005)  # the example known from WCAG's tools
    assert distance(0x000000, 0xFFFFFF) == pytest.approx(1, abs=1e-3)
    for matrix in DEFICIENCIES.values():
        assert matrix.sum(axis=1) == pytest.approx(1, abs=2e-6), "greys stay grey"
    for vision, pair in (
        ("protanopia", (0xC00000, 0x504000)),
        ("deuteranopia", (0xB3261C, 0x8F5600)),
        ("tritanopia", (0x2F7FD6, 0x1A8A3A)),
    ):
        assert distance(*pair, vision) < 0.3 * distance(*pair), "a pair that this deficiency confuses"
    for vision in ("protanopia", "deuteranopia"):
        assert np.linalg.svd(DEFICIENCIES[vision])[1][2] < 1e-6, "a dichromat lacks a dimension"


def test_there_are_themes_for_every_taste_and_the_default_is_first() -> None:
    themes = load_themes()
    assert sorted(themes) == SHIPPED and next(iter(themes)) == "dark"
    assert {"dark", "light", "contrast", "distinct", "ember"} <= themes.keys()
    assert all(theme.summary for theme in themes.values())


@pytest.mark.parametrize("name", SHIPPED)
def test_all_is_readable(name: str) -> None:
    theme = load_themes()[name]
    for ground in (theme.background, theme.panel):
        ratio = {colour: contrast(getattr(theme, colour), ground) for colour in vars(theme) if colour not in (
            "background", "panel", "border", "idle", *OTHER,
        )}  # fmt: skip
        words = {k: v for k, v in ratio.items() if k not in ("train", "serve", "doom", "machine", "border_active")}
        assert min(ratio["text"], ratio["bright"]) >= READING
        assert min(words.values()) >= (READING if name == "contrast" else WORDS), words
        assert min(ratio.values()) >= SHAPES, ratio


@pytest.mark.parametrize("vision", DEFICIENCIES)
@pytest.mark.parametrize("depth", [Depth.TRUECOLOR, Depth.EIGHT_BIT, Depth.FOUR_BIT], ids=lambda depth: depth.value)
@pytest.mark.parametrize("name", SHIPPED)
def test_roles_can_be_told_apart(name: str, depth: Depth, vision: str) -> None:
    theme = for_depth(load_themes()[name], depth)
    hues, texts = ("train", "serve", "doom"), ("train_text", "serve_text", "doom_text")
    special = name == "distinct" and depth is not Depth.FOUR_BIT
    assert nearest(theme, hues, depth, vision) >= (DISTINCT_HUES_APART if special else HUES_APART)
    if depth is Depth.FOUR_BIT:  # its sixteen have no pastels; what is text there has its role's letter
        return
    assert nearest(theme, texts, depth, vision) >= (DISTINCT_TEXTS_APART if special else TEXTS_APART)
    assert min(nearest(theme, (hue, "idle"), depth, vision) for hue in hues) >= FROM_IDLE
    assert nearest(theme, ("train", "held_out"), depth, vision) >= MARKERS_APART


@pytest.mark.parametrize("depth", [Depth.TRUECOLOR, Depth.EIGHT_BIT, Depth.FOUR_BIT], ids=lambda depth: depth.value)
@pytest.mark.parametrize("name", SHIPPED)
def test_an_sm_that_waits_shows_its_role_and_what_stands_on_it(name: str, depth: Depth) -> None:
    theme = for_depth(load_themes()[name], depth)
    roles = np.array([abi.TRAIN, abi.SERVE, abi.DOOM])
    for busy in (0.0, 0.3, 0.6, 1.0):
        cells = shade(theme, roles, np.full(3, busy))
        hues = [shown(int(cell), depth) for cell in cells]
        assert min(distance(one, other) for one, other in combinations(hues, 2)) >= WAITING_APART
        inks = [shown(int(ink), depth) for ink in ink_on(cells, theme)]
        assert min(contrast(ink, hue) for ink, hue in zip(inks, hues, strict=True)) >= SHAPES


@pytest.mark.parametrize("name", SHIPPED)
def test_without_colours_every_theme_is_ink_on_the_terminals_own_ground(name: str) -> None:
    theme = for_depth(load_themes()[name], Depth.NONE)
    grounds = {theme.background, theme.panel, theme.idle}
    inks = {getattr(theme, f.name) for f in fields(theme) if f.name not in ("background", "panel", "idle", *OTHER)}
    assert grounds == {0x000000} and inks == {0xFFFFFF} and not theme.shaded


def test_a_theme_that_cannot_be_used_is_explained(tmp_path: Path) -> None:
    good = (locations.themes() / "dark.toml").read_text()
    for changed, words in (
        (good.replace('key = "#ffcf70"\n', ""), "lacks key"),
        (good + 'glow = "#ffffff"\n', "knows no colour 'glow'"),
        (good.replace('"#ffcf70"', '"yellow"', 1), "'yellow' is not a colour"),
        (good.replace("dark = true", "dark = 3"), "dark must be true or false"),
        (good.replace("[colours]", "[colors]"), "lacks "),
        (good.replace('name = "dark"', 'name = "da\\u001b[31mrk"'), r"its name is 'da\\x1b\[31mrk', with characters"),
        ("name = ", "theme"),
        ("name = " + "[" * 100_000, "nested too deeply"),
    ):
        path = tmp_path / "mine.toml"
        path.write_text(changed)
        with pytest.raises(OfaError, match=words) as failure:
            read_theme(path)
        assert str(path) in str(failure.value) and str(failure.value).isprintable()
    path.write_text("\ufeff" + good)
    assert read_theme(path).name == "dark"
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(OfaError, match="not a regular file"):
        read_theme(path)
