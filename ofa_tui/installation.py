"""How this installation is started and added to, for sentences that say what to type next."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

STARTED_AS = "OFA_TUI_STARTED_AS"
"""The environment variable in which scripts/run says how it was called."""


def command() -> str:
    """What a person typed to start the program: `./scripts/run`, `ofa-tui` or `python -m ofa_tui`."""
    if script := os.environ.get(STARTED_AS):
        return shlex.quote(script)
    if Path(sys.argv[0]).name == "__main__.py":
        return f"{Path(sys.executable).name} -m ofa_tui"
    return "ofa-tui"


def how_to_add(*packages: str) -> str:
    """What to type to have these packages of PyPI beside the program."""
    python = shlex.quote(sys.executable)
    installer = f"{python} -m pip install" if find_spec("pip") else f"{_uv()} pip install --python {python}"
    return f"{installer} {' '.join(packages)}"


def _uv() -> str:
    """The uv on PATH, or the copy that scripts/run keeps beside its environment."""
    private = (Path(sys.prefix).parent / ".uv" / place / "uv" for place in ("bin", "venv/bin"))
    return next((shlex.quote(str(path)) for path in private if path.exists() and not shutil.which("uv")), "uv")
