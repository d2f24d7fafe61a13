"""Where WAD files are looked for: the command line, DOOMWADDIR, DOOMWADPATH, usual folders, the vizdoom package, and
the cache of scripts/fetch_wads.py.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ofa_tui import locations
from ofa_tui.doom.levels import describe_maps, map_names
from ofa_tui.doom.wad import WadError, read_wad
from ofa_tui.installation import how_to_add

GAMES = ("freedoom1.wad", "doom.wad", "doomu.wad", "freedoom2.wad", "doom2.wad", "tnt.wad", "plutonia.wad", "doom1.wad")
"""Main WADs in order of preference inside a folder."""

MORE_FOLDERS = "DOOM_GOLDEN_WADS"
"""Environment variable with folders of WADs that demos and traces were recorded with."""

_SYSTEM_FOLDERS = (
    "/usr/share/games/doom", "/usr/share/doom", "/usr/local/share/games/doom", "/usr/local/share/doom",
    "/usr/share/games/freedoom", "/usr/share/freedoom", "/opt/homebrew/share/games/doom", "/usr/local/games/doom",
)
_HOME_FOLDERS = (
    ".local/share/games/doom", ".local/share/doom", ".doom", ".config/gzdoom", "Library/Application Support/gzdoom",
    "Library/Application Support/doom",
)


@dataclass(frozen=True)
class WadSearch:
    """Result of a search: `found` in order of preference, `tried` the places looked at, in order."""

    found: tuple[Path, ...]
    tried: tuple[str, ...]

    def missing(self) -> str:
        """One sentence for a person who has no WAD."""
        return f"No Doom WAD was found (looked in {', '.join(self.tried)}). {how_to_get()}."


def search(wad: str | None = None) -> WadSearch:
    """Looks for WADs. `wad` is a file, or the bare name of one in the usual places (`freedoom2`), then the only find.

    Raises WadError when `wad` is given and not there. Without `wad`, finding nothing is no error.
    """
    if wad is not None and _exists(path := Path(wad).expanduser()):
        return WadSearch((path,), (wad,))
    if wad is not None and len(Path(wad).parts) > 1:
        raise WadError(f"There is no WAD file {wad}; check the path given with --wad.")
    names = GAMES if wad is None else (wad, f"{wad}.wad")
    found: list[Path] = []
    tried: list[str] = []
    for place, folder in _folders():
        try:
            found += [path for path in _files(folder, names) if path not in found]
            tried.append(place)
        except PermissionError:
            tried.append(f"{place}, which may not be read")
    if wad is not None and not found:
        raise WadError(f"There is no WAD file {wad} here, nor in {', '.join(tried)}; check the name given with --wad.")
    return WadSearch(tuple(found), tuple(tried))


def how_to_get() -> str:
    """What a person without a WAD may do, without a full stop."""
    script = locations.fetching_script()
    getting = shlex.join((sys.executable, str(script))) if script else how_to_add("vizdoom")
    return (f"Get Freedoom, which is free: run {getting}, install the package `freedoom` of your system, or name a "
            "file with --wad")


def _exists(path: Path) -> bool:
    """Raises WadError where that cannot be known."""
    try:
        path.stat()
    except PermissionError as error:
        raise WadError(f"Cannot read the WAD {path}: {error.strerror}; name one that may be read.") from None
    except (OSError, ValueError):
        return False
    return True


def by_sha256() -> dict[str, Path]:
    """WADs on this machine that may be read, by their SHA-256: those of `search`, and all in MORE_FOLDERS."""
    folders = [Path(folder) for folder in os.environ.get(MORE_FOLDERS, "").split(os.pathsep) if folder]
    files = [*(path for folder in folders for path in sorted(folder.rglob("*.wad"))), *search().found]
    found: dict[str, Path] = {}
    for path in files:
        with contextlib.suppress(OSError):
            found[hashlib.sha256(path.read_bytes()).hexdigest()] = path
    return found


def choose(found: WadSearch, map_name: str | None = None) -> Path:
    """The first WAD, or the first that has the map called `map_name`.

    Raises WadError when there is no WAD, or none with that map (naming the maps there are).
    """
    if not found.found:
        raise WadError(found.missing())
    if map_name is None:
        return found.found[0]
    there = []
    for path in found.found:
        maps = tuple(map_names(read_wad(path)))
        if map_name.upper() in maps:
            return path
        there.append(f"{path} has {describe_maps(maps) or 'no maps'}")
    raise WadError(f"No WAD has the map {map_name}: {'; '.join(there)}. Choose one of these maps.")


def _folders() -> Iterator[tuple[str, Path]]:
    """(what to call it, folder), in order."""
    if folder := os.environ.get("DOOMWADDIR"):
        yield f"DOOMWADDIR={folder}", Path(folder)
    for entry in os.environ.get("DOOMWADPATH", "").split(os.pathsep):
        if entry:
            yield f"DOOMWADPATH={entry}", Path(entry)
    yield "the current folder", Path()
    for name in _SYSTEM_FOLDERS:
        yield name, Path(name)
    for name in _HOME_FOLDERS:
        yield f"~/{name}", Path.home() / name
    yield from _vizdoom()
    for version in sorted(_subfolders(locations.fetched_wads()), reverse=True):
        yield f"the cache ({version.name})", version


def _subfolders(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if path.is_dir()]
    except OSError:
        return []


def _vizdoom() -> Iterator[tuple[str, Path]]:
    """The package's folder, found without importing it."""
    try:
        spec = importlib.util.find_spec("vizdoom")
    except (ImportError, ValueError):
        spec = None
    if spec is not None and spec.origin:
        yield "the package vizdoom", Path(spec.origin).parent
    else:
        yield "the package vizdoom (not installed)", Path(os.devnull)


def _files(folder: Path, names: tuple[str, ...]) -> list[Path]:
    """Files of the folder called `names` in any case, in that order; a file in place of a folder is itself.

    Raises PermissionError for a folder that may not be read; one that is not there has no files.
    """
    try:
        if folder.is_file():
            return [folder] if folder.name.lower() in names else []
        present = {path.name.lower(): path for path in folder.iterdir() if path.is_file()}
    except PermissionError:
        raise
    except OSError:
        return []
    return [present[name.lower()] for name in names if name.lower() in present]
