#!/usr/bin/env python3
"""Gets the WADs that golden demos belong to: Freedoom 0.13.0 and 0.12.1-2, checked by SHA-256.

What is on this machine already (usual folders, the package vizdoom, folders in DOOM_GOLDEN_WADS) is only named.
The rest goes into the cache folder, where the engine and the tests look: from the Debian package `freedoom` where
there is apt, else from the release archive of the Freedoom project.

    scripts/fetch_wads.py [--version 0.13.0]
"""

from __future__ import annotations

import argparse
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from ofa_tui import locations
from ofa_tui.doom import search
from ofa_tui.errors import OfaError
from ofa_tui.progress import Progress
from ofa_tui.record.files import make_folder, write_whole

RELEASE = "https://github.com/freedoom/freedoom/releases/download/v{0}/freedoom-{0}.zip"
CONNECT_TIMEOUT_S, APT_TIMEOUT_S = 30, 300
MAX_BYTES = 256 << 20
ADVICE = "make room, or set OFA_TUI_CACHE to another folder"
Files = dict[str, bytes]


class CannotFetch(Exception):
    """Why a source does not have it."""


@dataclass(frozen=True)
class Version:
    """A version of Freedoom: its files by SHA-256, and where to get them, best first."""

    name: str
    files: dict[str, str]
    sources: tuple[tuple[str, Callable[[], Files]], ...]


def from_release(version: str) -> Files:
    """The WADs in the project's release archive."""
    progress = Progress(f"downloading Freedoom {version}")
    try:
        with urllib.request.urlopen(RELEASE.format(version), timeout=CONNECT_TIMEOUT_S) as answer:
            progress.total = float(answer.headers.get("Content-Length") or 0)
            data = bytearray()
            while part := answer.read(1 << 16):
                data += part
                progress.update(len(data), f"{len(data) >> 20} MB")
                if len(data) > MAX_BYTES:
                    raise CannotFetch("the archive is far too large")
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return {Path(name).name: archive.read(name) for name in archive.namelist() if name.endswith(".wad")}
    except (OSError, urllib.error.URLError, zipfile.BadZipFile) as error:
        raise CannotFetch(str(getattr(error, "reason", error))) from None


def from_debian(version: str) -> Files:
    """The WADs in the Debian package; nothing is installed, and no privileges are needed."""
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        raise CannotFetch("there is no apt here")
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        if _apt(folder, "download", f"freedoom={version}"):
            # The machine's package lists may be missing or old: private ones, in the scratch folder.
            for part in ("lists/partial", "cache/archives/partial"):
                (folder / part).mkdir(parents=True)
            private = ["-o", f"Dir::State::lists={folder}/lists", "-o", f"Dir::Cache={folder}/cache"]
            problem = _apt(folder, *private, "update") or _apt(folder, *private, "download", f"freedoom={version}")
            if problem:
                raise CannotFetch(problem)
        packages = list(folder.glob("*.deb"))
        if not packages:
            raise CannotFetch("apt-get wrote no package")
        unpacked = subprocess.run(["dpkg-deb", "--fsys-tarfile", str(packages[0])], capture_output=True)
        if unpacked.returncode:
            raise CannotFetch(unpacked.stderr.decode(errors="replace").strip())
        with tarfile.open(fileobj=io.BytesIO(unpacked.stdout)) as archive:
            wads = [member for member in archive.getmembers() if member.isfile() and member.name.endswith(".wad")]
            return {Path(member.name).name: _read(archive, member) for member in wads}


def _read(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    assert file is not None
    return file.read()


def _apt(folder: Path, *arguments: str) -> str:
    """Runs apt-get in a folder; what it complains of, or nothing."""
    try:
        done = subprocess.run(["apt-get", "-q", *arguments], cwd=folder, capture_output=True, text=True,
                              timeout=APT_TIMEOUT_S, env=os.environ | {"LC_ALL": "C"})
    except subprocess.TimeoutExpired:
        return f"apt-get took longer than {APT_TIMEOUT_S} s"
    errors = [line for line in done.stderr.splitlines() if line.startswith("E:")]
    return (errors[0] if errors else "apt-get failed") if done.returncode else ""


VERSIONS = (
    Version(
        "0.13.0",
        {
            "freedoom1.wad": "7323bcc168c5a45ff10749b339960e98314740a734c30d4b9f3337001f9e703d",
            "freedoom2.wad": "a8772e088847032510d97ba2312406a6998f21cbab44d4ff10696faa9c0ecd4b",
        },
        (("the release archive", lambda: from_release("0.13.0")),),
    ),
    Version(
        "0.12.1-2",
        {
            "freedoom1.wad": "84c3a912f2973892a8025d09d65f5053b1ee2304968a5a172526d683a185b885",
            "freedoom2.wad": "c72de2af7e2d0c17f6213e751a167e2f1913278aaf37ae6957854fe3cd6588ca",
        },
        (
            ("the Debian package", lambda: from_debian("0.12.1-2")),
            ("the release archive", lambda: from_release("0.12.1")),
        ),
    ),
)


def fetch(version: Version) -> list[str]:
    """Puts a version's WADs into the cache; returns why each source failed, or nothing."""
    problems = []
    for source, get in version.sources:
        try:
            files = get()
        except CannotFetch as problem:
            problems.append(f"{source}: {problem}")
            continue
        right = {name: files[name] for name, sha256 in version.files.items()
                 if name in files and hashlib.sha256(files[name]).hexdigest() == sha256}
        if len(right) < len(version.files):
            problems.append(f"{source}: its files are not those of version {version.name}")
            continue
        folder = locations.fetched_wads() / version.name
        make_folder(folder, ADVICE)
        for name, data in right.items():
            write_whole(folder / name, data, ADVICE)
            print(f"Freedoom {version.name}: {folder / name} (from {source})")
        return []
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", choices=[version.name for version in VERSIONS], help="only this one")
    options = parser.parse_args()
    here = search.by_sha256()
    failed = False
    for version in VERSIONS:
        if options.version not in (None, version.name):
            continue
        if all(sha256 in here for sha256 in version.files.values()):
            for sha256 in version.files.values():
                print(f"Freedoom {version.name}: {here[sha256]}")
        elif problems := fetch(version):
            failed = True
            print(f"Freedoom {version.name} could not be fetched ({'; '.join(problems)}). Connect to the network and "
                  f"call this again, or put {' and '.join(version.files)} of version {version.name} into a folder "
                  f"that {search.MORE_FOLDERS} names.", file=sys.stderr)
    return int(failed)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OfaError as error:
        sys.exit(str(error))
