"""Builds render_harness.cc once per change of the sources, and gives its functions to the tests."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from ofa_tui.doom.library import HEIGHT, WIDTH, pointer
from ofa_tui.engine.compiler import find_compiler
from tests.doom.golden_demos import ROOT

PLAYER_TYPE, SHADOW = 0, 0x40000


@functools.cache
def library() -> ctypes.CDLL:
    """The compiled harness."""
    sources = [*sorted((ROOT / "cuda").rglob("*.h")), Path(__file__).with_name("render_harness.cc")]
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:20]
    built = Path(tempfile.gettempdir()) / f"ofa-tui-tests-{os.getuid()}" / f"render-{digest}.so"
    if not built.exists():
        built.parent.mkdir(exist_ok=True)
        partial = built.with_suffix(f".{os.getpid()}")
        subprocess.run(
            [*find_compiler().command, "-std=c++20", "-O2", "-march=native", "-fPIC", "-shared", "-Wall",
             "-Wextra", f"-I{ROOT}/cuda", str(sources[-1]), "-o", str(partial)], check=True)
        partial.replace(built)
    lib = ctypes.CDLL(str(built))
    for name in ("game_bytes", "scratch_bytes"):
        getattr(lib, name).restype = ctypes.c_uint64
    return lib


class Scene:
    """One game that is filled from tables and drawn. `blob` u1 [bytes] is a packed WAD."""

    def __init__(self, blob: np.ndarray) -> None:
        self.blob = blob
        self.lib = library()
        self.game = np.zeros(self.lib.game_bytes(), np.uint8)
        self.scratch = np.zeros(self.lib.scratch_bytes(), np.uint8)
        self.frame = np.zeros((HEIGHT, WIDTH), np.uint8)

    def load(self, level: int, sky: int, tics: int) -> None:
        self.lib.load_level(pointer(self.game), pointer(self.blob), level, sky, tics)

    def place(self, sectors: np.ndarray, objects: np.ndarray) -> None:
        """sectors i4 [S, 5], objects i4 [M, 22] as in the golden frames files."""
        sectors, objects = np.ascontiguousarray(sectors), np.ascontiguousarray(objects)
        self.lib.set_sectors(pointer(self.game), pointer(sectors))
        self.lib.set_objects(pointer(self.game), pointer(self.blob), pointer(objects), len(objects))

    def look(self, mobj: int, view_z: int, angle: int, extra_light: int = 0, fixed_colormap: int = 0,
             invisible_tics: int = 0, weapon: np.ndarray | None = None) -> None:
        rows = np.full((2, 4), -1, np.int32) if weapon is None else np.ascontiguousarray(weapon, np.int32)
        self.lib.set_player(pointer(self.game), pointer(self.blob), mobj, int(view_z), ctypes.c_uint32(int(angle)),
                            int(extra_light), int(fixed_colormap), invisible_tics, pointer(rows))

    def status(self, health: int, armor: int, ready: int, face: int, ammo: np.ndarray, max_ammo: list[int],
               weapons: list[int], keys: list[int], cooperative: bool = False, viewed: int = 0) -> None:
        """What the status bar shows; call it after look()."""
        row = np.array([health, armor, ready, face, *ammo, *max_ammo, *weapons, *keys, cooperative, viewed], np.int32)
        self.lib.set_status(pointer(self.game), pointer(row))

    def draw(self, fuzz: int = 0, threads: int = 0) -> np.ndarray:
        """u1 [200, 320]: the picture, drawn over what the frame held before."""
        self.lib.set_fuzz(pointer(self.game), fuzz)
        self.lib.draw(pointer(self.game), pointer(self.blob), pointer(self.scratch), pointer(self.frame), threads)
        return self.frame

    def counts(self) -> dict[str, int]:
        names = ("draw_segs", "planes", "sprites", "columns", "fuzzy", "overlap")
        return {name: self.lib.count(pointer(self.scratch), i) for i, name in enumerate(names)}
