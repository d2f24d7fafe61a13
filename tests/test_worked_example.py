"""The change in docs/adding-a-task-type.md works: applied to a copy, it passes its test and its proof."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from ofa_tui import locations
from ofa_tui.engine.compiler import find_compiler
from ofa_tui.errors import OfaError

ROOT = locations.cuda_sources().parent
MOST_CHANGED_LINES = 100


def the_change() -> str:
    text = (ROOT / "docs" / "adding-a-task-type.md").read_text()
    return re.search(r"```diff\n(.*?)```", text, re.S)[1]


def test_the_example_is_short():
    changed = re.findall(r"^[+-](?![+-])", the_change(), re.M)
    assert 20 < len(changed) < MOST_CHANGED_LINES


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(shutil.which("git") is None, reason="git applies the change, and is not installed")
def test_the_example_works(tmp_path):
    try:
        find_compiler()
    except OfaError as missing:
        pytest.skip(str(missing))
    for part in ("ofa_tui", "cuda", "assets", "themes", "tests"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    subprocess.run(["git", "apply", "-"], input=the_change(), cwd=tmp_path, text=True, check=True)

    def run(*arguments: str) -> str:
        command = [sys.executable, *arguments]
        done = subprocess.run(command, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path), **environment()},
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("-m", "pytest", "-q", "tests/ops/test_z_loss.py")
    proof = "from ofa_tui.cli import main; import sys; sys.exit(main(['program', 'show', '--stage', '{}', *{}]))"
    assert "every tile is written once" in run("-c", proof.format("proof", "[]"))
    task = re.search(r'--task "(cross_entropy_z [^"]+)"', (ROOT / "docs" / "adding-a-task-type.md").read_text())[1]
    assert "logits" in run("-c", proof.format("task", ["--task", task]))


def environment() -> dict[str, str]:
    """This process's variables, less where it looks for modules."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
