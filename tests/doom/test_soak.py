"""The judge of scripts/doom_soak.py on games made up, and the whole script under sanitizers."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.wads import freedoom

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "doom_soak.py"
SECOND = 35


@pytest.fixture(scope="module")
def soak():
    spec = importlib.util.spec_from_file_location("doom_soak", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def standing(soak, seconds: int) -> np.ndarray:
    return np.zeros(seconds * SECOND, soak.MOMENT)


def test_stuck_is_15_seconds_around_one_spot(soak) -> None:
    assert soak.judge(standing(soak, 20)).stuck == 1
    assert soak.judge(standing(soak, 14)).stuck == 0
    to_and_fro = standing(soak, 40)
    for reach, share in ((256, 1), (258, 0)):
        to_and_fro["x"][::2] = reach
        assert soak.judge(to_and_fro).stuck == share


def test_news_deaths_and_exits_end_a_stretch(soak) -> None:
    """Two halves of 14 s each are no stretch of 15 s where something new comes between them."""
    for field, value in (("sector", 7), ("life", 1), ("mode", 1), ("map", 2)):
        game = standing(soak, 28)
        game[field][14 * SECOND:14 * SECOND + 1 if field in ("life", "mode") else None] = value
        assert soak.judge(game).stuck == 0, field
    back_and_forth = standing(soak, 60)
    back_and_forth["sector"][::2] = 7
    assert soak.judge(back_and_forth).stuck > 0.99


def test_counts(soak) -> None:
    game = standing(soak, 10)
    game["kills"] = np.repeat([0, 3, 5, 0, 2], 70)
    game["mode"][210:220] = 1
    game["life"][300:310] = 1
    figures = soak.judge(game)
    assert (figures.kills, figures.levels, figures.deaths, figures.seconds) == (7, 1, 1, 6.0)


@pytest.mark.slow
def test_no_sanitizer_objects() -> None:
    """Every behaviour, some seconds on a few maps, under AddressSanitizer and UBSan."""
    wad = freedoom("freedoom2")
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--sanitize", "--minutes", "0.3", "--wads", wad.path, "--maps",
         "MAP01,MAP11,MAP28", "--behaviours", "explore,hunt,speedrun,pacifist,berserk,camp"],
        capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(" left") == 18
