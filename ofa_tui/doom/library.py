"""The Doom engine as a library of its own, without the kernel: games that are played as fast as they go.

numpy twins of the structs of cuda/doom/host/library.cpp, and the two kinds of game it has.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Mapping

import numpy as np

from ofa_tui.engine import compiler
from ofa_tui.errors import OfaError

MAX_PLAYERS = 4
WIDTH, HEIGHT, VIEW_HEIGHT = 320, 200, 168
TICS_PER_S = 35

COMMAND = np.dtype([("forward", "i1"), ("side", "i1"), ("turn", "<i2"), ("buttons", "u1"), ("_pad", "u1")])
NEW_GAME = np.dtype([
    *((name, "u1") for name in (
        "episode", "map", "skill", "players", "viewed", "behaviour", "respawn", "fast", "no_monsters", "deathmatch",
        "present", "sounds", "stays_at_end",
    )),
    ("_pad", "u1", (3,)), ("seed", "<u4"),
])
STATUS = np.dtype(
    [("tic", "u8"), ("seed", "u4"), ("leveltime", "u4"), ("episode", "u1"), ("map", "u1"), ("skill", "u1"),
     ("gamestate", "u1"), ("behaviour", "u1"), ("playerstate", "u1"), ("weapon", "u1"), ("health", "i2"),
     ("armor", "i2"), ("ammo", "i2", (4,)), ("ammo_max", "i2", (4,)), ("kills", "i2"), ("items", "i2"),
     ("secrets", "i2"), ("total_kills", "i2"), ("total_items", "i2"), ("total_secrets", "i2"), ("turn", "i2"),
     ("x", "i4"), ("y", "i4"), ("z", "i4"), ("sector", "i4"), ("angle", "u4"), ("sectors_seen", "u4"),
     ("sectors_total", "u4"), ("stuck_tics", "u4"), ("forward", "i1"), ("side", "i1"), ("buttons", "u1"),
     ("keys", "u1"), ("weapons_owned", "u2")], align=True)
ROW = np.dtype([
    *((name, "<u8") for name in (
        "mobj_hash", "mobj_hash2", "sector_hash", "fb_view", "fb_sbar", "fb_sbar_ns", "fb_full")),
    *((name, "<i4") for name in ("tic", "leveltime", "x", "y", "z", "momx", "momy", "momz", "viewz")),
    ("angle", "<u4"), ("psp", "<i4", (2, 4)), ("pl", "<i4", (MAX_PLAYERS, 8)),
    *((name, "<i2") for name in (
        "sector", "health", "armor", "kills", "items", "secrets", "nthinkers", "nmobjs", "damagecount", "bonuscount")),
    ("ammo", "<i2", (4,)), ("cmd", "<i2", (4,)),
    *((name, "i1") for name in (
        "gamestate", "episode", "map", "paused", "armortype", "readyweapon", "pendingweapon", "playerstate", "palette",
        "face", "face_ns", "extralight", "fixedcolormap")),
    *((name, "u1") for name in ("prnd", "rnd", "rnd_ns", "fb_tanoob")), ("_pad", "u1", (3,)),
])
"""A tic; the fields are the columns of a trace."""
LOAD = np.dtype([
    ("mobj_hash", "<u8"), ("mobj_hash2", "<u8"), ("sector_hash", "<u8"),
    *((name, "<i4") for name in (
        "tic", "episode", "map", "skill", "prnd", "rnd", "nthinkers", "nmobjs", "totalkills", "totalitems",
        "totalsecret", "_pad")),
])
"""A level load."""
STRUCTS = (COMMAND, NEW_GAME, STATUS, ROW, LOAD)

MOBJ_FIELDS = (
    "type", "x", "y", "z", "angle", "health", "state", "tics", "momx", "momy", "momz", "flags", "movedir", "movecount",
    "reactiontime", "threshold", "lastlook", "floorz", "ceilingz", "radius", "height", "sector")
"""Columns of a table of objects; the first MOBJ_FIELDS_1 make up mobj_hash, the others mobj_hash2."""
MOBJ_FIELDS_1 = 8
SECTOR_FIELDS = ("floorheight", "ceilingheight", "lightlevel", "special", "floorflat")

SERIAL, REVERSED, MOST_LANES = 1, -1, 64
"""How a frame is drawn: by one thread, by many that run last one first, or by so many at once."""


@functools.cache
def load(on_progress: compiler.OnProgress | None = None) -> ctypes.CDLL:
    """The library, compiled if it is not cached. Raises OfaError without a compiler."""
    path = compiler.build(on_progress, product=compiler.DOOM)
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise OfaError(f"the compiled {path} cannot be loaded ({error}); delete it to compile it again") from error
    library.doom_struct_bytes.restype = ctypes.c_uint64
    for name in ("traced_game", "traced_picture", "traced_frame"):
        getattr(library, name).restype = ctypes.c_void_p
    for index, struct in enumerate(STRUCTS):
        assert library.doom_struct_bytes(index) == struct.itemsize
    return library


def _struct_bytes(index: int) -> int:
    return load().doom_struct_bytes(index)


def pointer(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def new_game(settings: Mapping[str, int]) -> np.ndarray:
    """NEW_GAME [1]: episode 1, map 1, skill 2 (of 0-4), one player, and `settings`, which are its fields."""
    new = np.zeros(1, NEW_GAME)
    for name, value in {"episode": 1, "map": 1, "skill": 2, "players": 1, **settings}.items():
        new[name] = value
    return new


class Game:
    """One game that is played without being drawn. `blob` u1 [bytes] is a packed WAD."""

    def __init__(self, blob: np.ndarray) -> None:
        self.blob = blob
        self.library = load()
        self.state = np.zeros(_struct_bytes(len(STRUCTS)), np.uint8)

    @property
    def address(self) -> ctypes.c_void_p:
        return pointer(self.state)

    def start(self, **settings: int) -> None:
        """New game; see `new_game`."""
        self.library.game_start(self.address, pointer(self.blob), pointer(new_game(settings)))

    def begin_again(self, episode: int, map_: int) -> None:
        """Another game behind this one, as after the last level."""
        self.library.game_begin_again(self.address, pointer(self.blob), episode, map_)

    def tic(self, commands: np.ndarray) -> None:
        """commands COMMAND [MAX_PLAYERS]"""
        self.library.game_tic(self.address, pointer(self.blob), pointer(commands))

    def run(self, commands: np.ndarray) -> None:
        """Many tics, one behind the other: COMMAND [tics, MAX_PLAYERS]."""
        self.library.game_run(self.address, pointer(self.blob), pointer(commands), len(commands))

    def play(self, tics: int) -> np.ndarray:
        """The scripted player plays; returns its commands, COMMAND [tics]."""
        commands = np.zeros(tics, COMMAND)
        self.library.game_play(self.address, pointer(self.blob), tics, pointer(commands))
        return commands

    def set_behaviour(self, behaviour: int) -> None:
        self.library.game_set_behaviour(self.address, behaviour)

    def set_keys(self, forward: int, side: int, turn: int, buttons: int) -> None:
        self.library.game_set_keys(self.address, forward, side, turn, buttons)

    def go_on_from(self, other: Game) -> None:
        """Makes this game a copy of another one of the same WAD, whatever it was before."""
        self.library.game_copy(self.address, other.address)

    @property
    def exhausted(self) -> bool:
        """A pool was full at some time, and something was left out."""
        return bool(self.library.game_exhausted(self.address))

    def status(self) -> np.void:
        """STATUS: the figures that the kernel publishes."""
        status = np.zeros(1, STATUS)
        self.library.game_status(self.address, pointer(status))
        return status[0]

    def row(self) -> np.void:
        """ROW, without what is seen and heard."""
        row = np.zeros(1, ROW)
        self.library.game_trace(self.address, pointer(row))
        return row[0]

    def mobjs(self) -> np.ndarray:
        """i4 [objects, MOBJ_FIELDS] in thinker order."""
        return _mobjs(self.library, self.address)

    def sectors(self) -> np.ndarray:
        """i4 [sectors, SECTOR_FIELDS]"""
        return _sectors(self.library, self.address)


def _mobjs(library: ctypes.CDLL, game: ctypes.c_void_p) -> np.ndarray:
    table = np.zeros((library.game_mobjs(game, None), len(MOBJ_FIELDS)), np.int32)
    library.game_mobjs(game, pointer(table))
    return table


def _sectors(library: ctypes.CDLL, game: ctypes.c_void_p) -> np.ndarray:
    table = np.zeros((library.game_sectors(game, None), len(SECTOR_FIELDS)), np.int32)
    library.game_sectors(game, pointer(table))
    return table


def _pixels(address: int) -> np.ndarray:
    pixels = ctypes.cast(address, ctypes.POINTER(ctypes.c_uint8))
    return np.ctypeslib.as_array(pixels, (HEIGHT, WIDTH)).copy()


class TracedGame:
    """One game that is played, drawn and written down. `lanes`: SERIAL, REVERSED or a number of threads.

    Without `traced` its rows lack hashes and what is heard, and it is faster. Use as a context manager where there are
    threads. Raises OfaError where the system refuses one.
    """

    def __init__(self, blob: np.ndarray, lanes: int = SERIAL, traced: bool = True, **settings: int) -> None:
        self.blob = blob
        self.library = load()
        self._state = np.zeros(_struct_bytes(len(STRUCTS) + 1), np.uint8)
        settings_row = new_game(settings)
        if self.library.traced_start(pointer(self._state), pointer(blob), pointer(settings_row), lanes, traced):
            raise OfaError(f"the system refuses {lanes} threads; use fewer with --lanes")

    def __enter__(self) -> TracedGame:
        return self

    def __exit__(self, *_: object) -> None:
        self.library.traced_stop(pointer(self._state))

    def play(self, commands: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Plays COMMAND [tics, MAX_PLAYERS]; returns ROW [tics] and LOAD [loads]."""
        return self._play(np.ascontiguousarray(commands), False)

    def run(self, commands: np.ndarray) -> None:
        """Plays COMMAND [tics, MAX_PLAYERS] and draws every tic by one thread, as fast as it goes."""
        self.library.drawn_run(pointer(self._state), pointer(self.blob), pointer(commands), len(commands))

    def play_scripted(self, tics: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Lets the scripted player play; returns its commands COMMAND [tics, MAX_PLAYERS], and as `play` does."""
        commands = np.zeros((tics, MAX_PLAYERS), COMMAND)
        return commands, *self._play(commands, True)

    def set_keys(self, forward: int, side: int, turn: int, buttons: int) -> None:
        """As Game.set_keys, for the player of `play_scripted`."""
        self.library.game_set_keys(self._game(), forward, side, turn, buttons)

    def _play(self, commands: np.ndarray, scripted: bool) -> tuple[np.ndarray, np.ndarray]:
        tics = len(commands)
        rows, loads = np.zeros(tics, ROW), np.zeros(tics + 1, LOAD)
        count = self.library.traced_play(
            pointer(self._state), pointer(self.blob), pointer(commands), tics, scripted, pointer(rows),
            pointer(loads))
        return rows, loads[:count].copy()

    def picture(self) -> np.ndarray:
        """u1 [200, 320]: palette indices of the last tic's frame, without text, the bar as without sound."""
        return _pixels(self.library.traced_picture(pointer(self._state)))

    def frame(self) -> np.ndarray:
        """u1 [200, 320]: the same with text; where it is traced, with the bar as with sound."""
        return _pixels(self.library.traced_frame(pointer(self._state)))

    def mobjs(self) -> np.ndarray:
        """As Game.mobjs."""
        return _mobjs(self.library, self._game())

    def sectors(self) -> np.ndarray:
        """As Game.sectors."""
        return _sectors(self.library, self._game())

    def _game(self) -> ctypes.c_void_p:
        return ctypes.c_void_p(self.library.traced_game(pointer(self._state)))
