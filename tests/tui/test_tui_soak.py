"""The short form of scripts/tui_soak.py: real processes in pseudo-terminals under random keys and sizes."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from tui_soak import Life, slope_of  # noqa: E402


@pytest.mark.slow
@pytest.mark.parametrize("of", ["live", "replay"])
def test_nothing_ends_it_and_nothing_hangs(of: str, tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "scripts" / "tui_soak.py"), "--of", of, "--minutes", "0.7", "--seed", "3",
               "--log", str(tmp_path / "keys.jsonl")]  # fmt: skip
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    frames = re.findall(r"([0-9,]+) frames, ", done.stdout)[-1]
    assert int(frames.replace(",", "")) > 50 and "passed: no exception" in done.stdout


@settings(max_examples=50, deadline=None)
@given(st.floats(-1e6, 1e6), st.floats(0, 1e5), st.lists(st.floats(5e7, 2e8), min_size=1, max_size=3))
def test_the_slope_is_that_of_all_lives_within_its_error(slope: float, noise: float, levels: list[float]) -> None:
    rng = np.random.default_rng(1)
    lives = []
    for number, level in enumerate(levels):
        life = Life(number * 1000.0)
        for second in range(0, 900, 6):
            size = level + slope * second / 60 + noise * rng.standard_normal()
            life.memory.append((number * 1000.0 + second, round(size)))
        lives.append(life)
    found, error, seconds = slope_of(lives, 120.0)
    assert abs(found - slope) <= 5 * error + 10 and seconds > 700 * len(levels)
    assert error < noise + 10


def test_a_short_life_tells_no_slope() -> None:
    assert math.isnan(slope_of([Life(0.0, [(1.0, 5), (2.0, 5)])], 0.0)[0])
