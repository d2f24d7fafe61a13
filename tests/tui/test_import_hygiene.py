"""Textual is loaded when the UI starts, not before; nothing below the UI imports it; and a start loads no more."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "ofa_tui"


def test_only_the_ui_imports_textual() -> None:
    for path in PACKAGE.rglob("*.py"):
        if PACKAGE / "tui" in path.parents:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not any(name.split(".")[0] == "textual" for name in names), path


def test_importing_the_package_does_not_load_textual() -> None:
    light = "ofa_tui.tui, ofa_tui.tui.options, ofa_tui.tui.terminal, ofa_tui.tui.theme"
    code = f"import sys, {light}; print('textual' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=PACKAGE.parent, check=True)
    assert done.stdout.strip() == "False"


def test_a_run_gets_to_its_first_picture_without_pillow_and_masked_arrays() -> None:
    code = """
import sys
from ofa_tui.commands import watch
from ofa_tui.presets import PRESETS
from ofa_tui.program.lowering import compile_programs
from ofa_tui.program.proved import proof_of
from ofa_tui.tui import session
preset = PRESETS["tiny"]
proof_of(compile_programs(preset.model, preset.train, games=1))
print([name for name in ("PIL", "numpy.ma") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=PACKAGE.parent, check=True)
    assert done.stdout.strip() == "[]"
