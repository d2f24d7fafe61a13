"""scripts/fetch_wads.py takes only files with the right SHA-256, from the first source that has them."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

from ofa_tui.doom import search
from tests.doom.golden_demos import ROOT
from tests.doom.tiny_wad import build, lumps

GOOD = build(lumps())


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setenv("OFA_TUI_CACHE", str(tmp_path / "cache"))
    spec = importlib.util.spec_from_file_location("fetch_wads", ROOT / "scripts" / "fetch_wads.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "fetch_wads", module)
    spec.loader.exec_module(module)
    return module


def test_the_first_source_with_the_right_files_is_taken(script: ModuleType, capsys) -> None:
    def offline() -> dict[str, bytes]:
        raise script.CannotFetch("no network")

    version = script.Version("9.9", {"freedoom1.wad": hashlib.sha256(GOOD).hexdigest()}, (
        ("one", offline),
        ("two", lambda: {"freedoom1.wad": GOOD[:-1]}),
        ("three", lambda: {"other.wad": b"", "freedoom1.wad": GOOD}),
    ))
    assert script.fetch(version) == []
    assert "from three" in capsys.readouterr().out
    found = [path for path in search.search("freedoom1").found if "9.9" in path.parts]
    assert [path.read_bytes() for path in found] == [GOOD]


def test_where_no_source_has_it_the_message_says_what_to_do(script: ModuleType, monkeypatch, capsys) -> None:
    version = script.Version("9.9", {"freedoom1.wad": "0" * 64}, (("the net", lambda: {"freedoom1.wad": GOOD}),))
    monkeypatch.setattr(script, "VERSIONS", (version,))
    monkeypatch.setattr("sys.argv", ["fetch_wads.py"])
    assert script.main() == 1
    said = capsys.readouterr().err
    assert "the net" in said and "DOOM_GOLDEN_WADS" in said and said.count("\n") == 1
    assert not (Path(os.environ["OFA_TUI_CACHE"]) / "freedoom").exists()
