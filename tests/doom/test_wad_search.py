"""WADs are found in the documented places and order, and the messages say what to do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tiny_wad import build, lumps

from ofa_tui.doom import search
from ofa_tui.doom.search import choose
from ofa_tui.doom.wad import WadError


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without WADs; returns an empty folder."""
    monkeypatch.setattr(search, "_SYSTEM_FOLDERS", ())
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OFA_TUI_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("DOOMWADDIR", raising=False)
    monkeypatch.delenv("DOOMWADPATH", raising=False)
    monkeypatch.setattr(search.importlib.util, "find_spec", lambda name: None)
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    return tmp_path


def test_environment_comes_first_and_names_are_ranked(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder, names in (("a", ["DOOM2.WAD", "freedoom1.wad"]), ("b", ["doom.wad", "other.wad"])):
        (nowhere / folder).mkdir()
        for name in names:
            (nowhere / folder / name).write_bytes(build(lumps()))
    monkeypatch.setenv("DOOMWADDIR", str(nowhere / "b"))
    monkeypatch.setenv("DOOMWADPATH", f"{nowhere / 'missing'}:{nowhere / 'a'}")
    found = search.search()
    assert [path.name for path in found.found] == ["doom.wad", "freedoom1.wad", "DOOM2.WAD"]
    assert search.search("other").found == (nowhere / "b" / "other.wad",)
    assert choose(found, "E1M1").name == "doom.wad"
    with pytest.raises(WadError, match=r"No WAD has the map MAP01: .*doom\.wad has E1M1"):
        choose(found, "MAP01")


def test_without_a_wad_the_message_says_how_to_get_one(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = search.search()
    assert found.found == ()
    with pytest.raises(WadError, match=r"run \S+ \S+/scripts/fetch_wads\.py, "):
        choose(found)
    monkeypatch.setattr(search.locations, "_PACKAGE", nowhere / "site-packages" / "ofa_tui")
    with pytest.raises(WadError, match=r"pip install .*vizdoom"):
        choose(found)
    for wanted in ("nothing", "some/where.wad"):
        with pytest.raises(WadError, match="--wad"):
            search.search(wanted)
    with pytest.raises(WadError, match="folder"):
        choose(search.search(str(nowhere / "empty")), "E1M1")


def test_a_folder_that_may_not_be_read_is_named_as_such(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Faked, because root may read everything."""
    locked = nowhere / "locked"
    locked.mkdir()
    (locked / "doom.wad").write_bytes(build(lumps()))
    sound = {name: getattr(Path, name) for name in ("iterdir", "stat")}

    def refuse(path: Path, *arguments: object, **named: object) -> object:
        if path == locked / "doom.wad" or (path == locked and not named and not arguments):
            raise PermissionError(13, "Permission denied", str(path))
        return sound["stat"](path, *arguments, **named)

    monkeypatch.setattr(Path, "iterdir", lambda path: refuse(path) if path == locked else sound["iterdir"](path))
    monkeypatch.setenv("DOOMWADDIR", str(locked))
    with pytest.raises(WadError, match=r"DOOMWADDIR=\S*locked, which may not be read, the current folder"):
        choose(search.search())
    monkeypatch.setattr(Path, "stat", refuse)
    with pytest.raises(WadError, match=r"Cannot read the WAD \S*doom\.wad: Permission denied"):
        search.search(str(locked / "doom.wad"))


def test_the_vizdoom_package_is_found_without_importing_it() -> None:
    code = ("import sys; from ofa_tui.doom import search; found = search.search().found;"
            "assert 'vizdoom' not in sys.modules; print(len(found))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.strip().isdigit(), done.stderr
