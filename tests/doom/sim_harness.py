"""Builds sim_harness.cc once per change of the sources, plays demos through it and compares with golden traces."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ofa_tui.doom import packer, search

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT.parent / "shared" / "doom-golden"
MAX_PLAYERS = 4

COMMAND = np.dtype([("forward", "i1"), ("side", "i1"), ("turn", "<i2"), ("buttons", "u1"), ("_pad", "u1")])
NEW_GAME = np.dtype([("episode", "u1"), ("map", "u1"), ("skill", "u1"), ("players", "u1"), ("viewed", "u1"),
                     ("behaviour", "u1"), ("respawn", "u1"), ("fast", "u1"), ("no_monsters", "u1"),
                     ("deathmatch", "u1"), ("_pad", "u1", (2,)), ("seed", "<u4")])
STATUS = np.dtype(
    [("tic", "u8"), ("seed", "u4"), ("leveltime", "u4"), ("episode", "u1"), ("map", "u1"), ("skill", "u1"),
     ("gamestate", "u1"), ("behaviour", "u1"), ("playerstate", "u1"), ("weapon", "u1"), ("health", "i2"),
     ("armor", "i2"), ("ammo", "i2", (4,)), ("ammo_max", "i2", (4,)), ("kills", "i2"), ("items", "i2"),
     ("secrets", "i2"), ("total_kills", "i2"), ("total_items", "i2"), ("total_secrets", "i2"), ("turn", "i2"),
     ("x", "i4"), ("y", "i4"), ("z", "i4"), ("sector", "i4"), ("angle", "u4"), ("sectors_seen", "u4"),
     ("sectors_total", "u4"), ("stuck_tics", "u4"), ("forward", "i1"), ("side", "i1"), ("buttons", "u1"),
     ("keys", "u1"), ("weapons_owned", "u2")], align=True)

SIMULATION_COLUMNS = (
    "leveltime", "gamestate", "episode", "map", "paused", "prnd", "rnd_ns", "x", "y", "z", "momx", "momy", "momz",
    "viewz", "angle", "sector", "health", "armor", "armortype", "ammo:4", "readyweapon", "pendingweapon", "kills",
    "items", "secrets", "playerstate", "nthinkers", "nmobjs", "face_ns", "extralight", "fixedcolormap", "damagecount",
    "bonuscount", "psp:8", "cmd:4")
HASH_COLUMNS = ("mobj_hash", "mobj_hash2", "sector_hash")
MOBJ_FIELDS = (
    "type", "x", "y", "z", "angle", "health", "state", "tics", "momx", "momy", "momz", "flags", "movedir", "movecount",
    "reactiontime", "threshold", "lastlook", "floorz", "ceilingz", "radius", "height", "sector")
SECTOR_FIELDS = ("floorheight", "ceilingheight", "lightlevel", "special", "floorflat")


def compiler() -> str | None:
    """Path of a C++ compiler, None where there is none."""
    for name in (os.environ.get("CXX", ""), "c++", "g++", "clang++"):
        if name and (found := shutil.which(name)):
            return found
    return None


@functools.cache
def library(flags: tuple[str, ...] = ("-O1",)) -> ctypes.CDLL:
    """The compiled harness; `flags` are the optimisation flags. Raises RuntimeError without a compiler."""
    cxx = compiler()
    if cxx is None:
        raise RuntimeError("no C++ compiler on PATH")
    parts = ("doom/*.h", "doom/sim/*.h", "doom/player/*.h", "platform/*.h")
    headers = [header for part in parts for header in (ROOT / "cuda").glob(part)]
    sources = [*sorted(headers), Path(__file__).with_name("sim_harness.cc")]
    digest = hashlib.sha256(repr(flags).encode() + b"".join(s.read_bytes() for s in sources)).hexdigest()[:20]
    built = Path(tempfile.gettempdir()) / f"ofa-tui-tests-{os.getuid()}" / f"sim-{digest}.so"
    if not built.exists():
        built.parent.mkdir(exist_ok=True)
        partial = built.with_suffix(f".{os.getpid()}")
        subprocess.run(
            [cxx, "-std=c++20", *flags, "-fPIC", "-shared", "-fno-exceptions", "-fno-rtti", "-Wall", "-Wextra",
             f"-I{ROOT}/cuda", str(sources[-1]), "-o", str(partial)], check=True)
        partial.replace(built)
    lib = ctypes.CDLL(str(built))
    for name in ("game_bytes", "status_bytes", "mobj_hash", "sector_hash"):
        getattr(lib, name).restype = ctypes.c_uint64
    assert lib.status_bytes() == STATUS.itemsize
    return lib


def pointer(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


class Game:
    """One game. `blob` u1 [bytes] is a packed WAD."""

    def __init__(self, blob: np.ndarray, lib: ctypes.CDLL | None = None) -> None:
        self.blob = blob
        self.lib = lib or library()
        self.state = np.zeros(self.lib.game_bytes(), np.uint8)

    def start(self, present: np.ndarray | None = None, **settings: int) -> None:
        """New game; settings are fields of NEW_GAME, `present` u1 [4] the players of a demo."""
        new = np.zeros(1, NEW_GAME)
        for name, value in {"episode": 1, "map": 1, "skill": 2, "players": 1, **settings}.items():
            new[name] = value
        self.lib.start(pointer(self.state), pointer(self.blob), pointer(new),
                       None if present is None else pointer(present))

    def tic(self, commands: np.ndarray) -> None:
        self.lib.tic(pointer(self.state), pointer(self.blob), pointer(commands))

    def play(self, tics: int) -> np.ndarray:
        """The scripted player plays; returns its commands, COMMAND [tics]."""
        commands = np.zeros(tics, COMMAND)
        self.lib.play(pointer(self.state), pointer(self.blob), tics, pointer(commands))
        return commands

    def status(self) -> np.ndarray:
        out = np.zeros(1, STATUS)
        self.lib.status(pointer(self.state), pointer(out))
        return out[0]

    def row(self) -> dict[str, np.ndarray]:
        widths = [int(name.partition(":")[2] or 1) for name in SIMULATION_COLUMNS]
        values = np.zeros(sum(widths), np.int64)
        self.lib.row(pointer(self.state), pointer(values))
        parts = np.split(values, np.cumsum(widths)[:-1])
        return {name.partition(":")[0]: part for name, part in zip(SIMULATION_COLUMNS, parts, strict=True)}

    def hashes(self) -> dict[str, int]:
        state = pointer(self.state)
        return {"mobj_hash": self.lib.mobj_hash(state, 0), "mobj_hash2": self.lib.mobj_hash(state, 1),
                "sector_hash": self.lib.sector_hash(state)}

    def mobjs(self) -> np.ndarray:
        table = np.zeros((4096, len(MOBJ_FIELDS)), np.int32)
        return table[:self.lib.mobjs(pointer(self.state), pointer(table))]

    def sectors(self) -> np.ndarray:
        table = np.zeros((self.lib.n_sectors(pointer(self.state)), len(SECTOR_FIELDS)), np.int32)
        self.lib.sectors(pointer(self.state), pointer(table))
        return table


@dataclass(frozen=True)
class Demo:
    """A demo file: `commands` COMMAND [tics, 4]."""

    skill: int
    episode: int
    map: int
    deathmatch: int
    respawn: int
    fast: int
    no_monsters: int
    viewed: int
    present: np.ndarray
    commands: np.ndarray

    def start(self, game: Game) -> None:
        game.start(self.present, skill=self.skill, episode=self.episode, map=self.map, viewed=self.viewed,
                   players=int(self.present.sum()), respawn=self.respawn, fast=self.fast,
                   no_monsters=self.no_monsters, deathmatch=self.deathmatch)


def read_demo(path: Path) -> Demo:
    data = path.read_bytes()
    _, skill, episode, map_, deathmatch, respawn, fast, no_monsters, viewed, *present = data[:13]
    players = [i for i in range(MAX_PLAYERS) if present[i]]
    size = 4 * len(players)
    tics = 0
    while 13 + size * tics < len(data) and data[13 + size * tics] != 0x80:
        tics += 1
    body = np.frombuffer(data, np.uint8, size * tics, 13).reshape(tics, len(players), 4)
    commands = np.zeros((tics, MAX_PLAYERS), COMMAND)
    for column, player in enumerate(players):
        commands["forward"][:, player] = body[:, column, 0].view(np.int8)
        commands["side"][:, player] = body[:, column, 1].view(np.int8)
        commands["turn"][:, player] = (body[:, column, 2].astype(np.uint16) << 8).view(np.int16)
        commands["buttons"][:, player] = body[:, column, 3]
    return Demo(skill, episode, map_, deathmatch, respawn, fast, no_monsters, viewed,
                np.array(present, np.uint8), commands)


@functools.cache
def wads() -> dict[str, Path]:
    """WAD files that can be found, by SHA-256."""
    extra = [Path(p) for p in os.environ.get("DOOM_GOLDEN_WADS", "").split(os.pathsep) if p]
    files = [*search.search().found, *(f for p in extra for f in p.glob("*.wad"))]
    return {hashlib.sha256(Path(f).read_bytes()).hexdigest(): Path(f) for f in files}


@functools.cache
def blob_for(sha256: str) -> np.ndarray | None:
    """The packed WAD with that hash, None if it is not on this machine."""
    path = wads().get(sha256)
    return None if path is None else packer.load(path).blob


def names() -> list[str]:
    return sorted(p.stem for p in GOLDEN.glob("*.lmp"))


@dataclass(frozen=True)
class Difference:
    tic: int
    column: str
    expected: object
    got: object


def differences(row: dict[str, np.ndarray], hashes: dict[str, int], trace: dict[str, np.ndarray],
                tic: int) -> Iterator[Difference]:
    for name, got in row.items():
        expected = trace[name][tic].reshape(-1).astype(np.int64)
        if not np.array_equal(expected, got):
            yield Difference(tic, name, expected.tolist(), got.tolist())
    for name, value in hashes.items():
        if int(trace[name][tic]) != value:
            yield Difference(tic, name, hex(int(trace[name][tic])), hex(value))


def load_trace(name: str) -> dict[str, np.ndarray]:
    with np.load(GOLDEN / f"{name}.npz") as data:
        return {key: data[key] for key in data.files}


def play_demo(name: str, limit: int | None = None) -> tuple[int, list[Difference], Game]:
    """Plays a golden demo until a row differs. Returns tics in sync, differences of the first wrong row, the game."""
    trace = load_trace(name)
    blob = blob_for(str(trace["wad_sha256"]))
    if blob is None:
        raise FileNotFoundError(f"no WAD with SHA-256 {trace['wad_sha256']}")
    demo = read_demo(GOLDEN / f"{name}.lmp")
    game = Game(blob)
    demo.start(game)
    for tic in range(min(len(demo.commands), limit or len(demo.commands))):
        game.tic(demo.commands[tic])
        found = list(differences(game.row(), game.hashes(), trace, tic))
        if found:
            return tic, found, game
    return tic + 1, [], game
