"""Every folder and shipped file the project uses, found through this module only."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_cache_path, user_config_path, user_state_path

_PACKAGE = Path(__file__).resolve().parent


def _shipped(name: str) -> Path:
    """`name` inside an installed wheel, else at the top of the checkout."""
    packaged = _PACKAGE / "_data" / name
    return packaged if packaged.is_dir() else _PACKAGE.parent / name


def cuda_sources() -> Path:
    return _shipped("cuda")


def assets() -> Path:
    return _shipped("assets")


def recording() -> Path:
    """A recorded run of an H200, for who has none of their own."""
    return assets() / "recording"


def themes() -> Path:
    return _shipped("themes")


def cache() -> Path:
    """Compiled kernels, tokenised corpora, packed WADs. `OFA_TUI_CACHE` overrides it."""
    override = os.environ.get("OFA_TUI_CACHE")
    return Path(override) if override else user_cache_path("ofa-tui")


def fetched_wads() -> Path:
    """WADs that scripts/fetch_wads.py got, a folder per version."""
    return cache() / "freedoom"


def fetching_script() -> Path | None:
    """What gets those WADs; None in an installed wheel, which has no scripts."""
    script = _PACKAGE.parent / "scripts" / "fetch_wads.py"
    return script if script.is_file() else None


def config() -> Path:
    """Settings and themes of the user. `OFA_TUI_CONFIG` overrides it."""
    override = os.environ.get("OFA_TUI_CONFIG")
    return Path(override) if override else user_config_path("ofa-tui")


def preferences() -> Path:
    """The user's settings and keys; the file need not be there."""
    return config() / "settings.toml"


def state() -> Path:
    """What the program remembers between two runs. `OFA_TUI_STATE` overrides it."""
    override = os.environ.get("OFA_TUI_STATE")
    return Path(override) if override else user_state_path("ofa-tui")
