"""One fuzz case: a damaged WAD or demo through reader, packer and engine. It is played, or refused with a sentence."""

from __future__ import annotations

import ctypes
import random
from functools import cache
from pathlib import Path

import numpy as np

from ofa_tui.commands.doom import fit_to_wad
from ofa_tui.doom import layout, library, packer
from ofa_tui.doom.levels import is_doom2, map_names
from ofa_tui.doom.lmp import parse_demo
from ofa_tui.doom.packed import PackedWad
from ofa_tui.doom.players import BEHAVIOURS
from ofa_tui.doom.trace import play_demo
from ofa_tui.doom.wad import parse_wad
from ofa_tui.errors import OfaError
from tests.doom import mutants
from tests.doom.blob_checks import check_indices
from tests.doom.broken_maps import BROKEN_MAPS

KINDS = ("wad", "demo", "player", "broken")
"""By seed: damaged WADs in which all players run about, damaged demos, damaged WADs with a scripted player, the maps of
BROKEN_MAPS by their number."""
GUARD_BYTES = 128
TICS = (3, 10, 20, 60)
PLAYED = "played"


class GuardedBuilder(layout.BlobBuilder):
    """Leaves room around every array, so that a sanitizer sees who reads past an end. `guards`: (offset, bytes)."""

    def __init__(self) -> None:
        super().__init__(layout.BLOB.itemsize)
        self.guards: list[tuple[int, int]] = []

    def add_bytes(self, data: bytes) -> int:
        super().add_bytes(bytes(GUARD_BYTES))
        self.guards.append((self.size - GUARD_BYTES, GUARD_BYTES))
        return super().add_bytes(data)


class Guards:
    """Forbids the guards of a blob to code under AddressSanitizer as long as the context lasts."""

    def __init__(self, blob: np.ndarray, guards: list[tuple[int, int]]) -> None:
        self._blob, self._guards = blob, guards

    def _each(self, name: str) -> None:
        function = getattr(ctypes.CDLL(None), name, None)
        if function is None:
            return
        for offset, size in self._guards:
            function(ctypes.c_void_p(self._blob.ctypes.data + offset), ctypes.c_size_t(size))

    def __enter__(self) -> None:
        self._each("__asan_poison_memory_region")

    def __exit__(self, *_: object) -> None:
        self._each("__asan_unpoison_memory_region")


def random_game(seed: int) -> random.Random:
    """What decides how a case is played."""
    return random.Random(seed)


def run_case(kind: str, seed: int) -> str:
    """`played`, or why it was refused. Raises what nothing may raise."""
    try:
        if kind == "demo":
            return _demo_case(seed)
        return _wad_case(damaged_file(kind, seed), random_game(seed), kind == "player")
    except OfaError as error:
        reason = str(error)
        assert reason.isprintable() and len(reason) < 1000, reason
        return reason


def _wad_case(data: bytes, rng: random.Random, scripted: bool) -> str:
    wad = parse_wad(data, "damaged.wad")
    builder = GuardedBuilder()
    blob = packer.pack(wad, builder)
    check_indices(blob)
    doom2 = is_doom2(wad)
    maps = [name for name in map_names(wad) if name.startswith("MAP") == doom2]
    packed = PackedWad(wad.path, wad.sha256, blob, tuple(maps), doom2)
    with Guards(blob, builder.guards):
        for name in maps[:2]:
            _play(rng, packed, name, scripted)
    return PLAYED


def _play(rng: random.Random, wad: PackedWad, name: str, scripted: bool) -> None:
    episode, number = wad.episode_and_map(name)
    present = rng.choice((1, 1, 1, 3, 15))
    settings = {
        "episode": episode, "map": number, "skill": rng.randrange(5), "present": present,
        "respawn": rng.random() < 0.1, "fast": rng.random() < 0.1, "no_monsters": rng.random() < 0.1,
        "behaviour": rng.randrange(len(BEHAVIOURS)), "seed": rng.randrange(1 << 32),
    }
    lanes = rng.choice((library.SERIAL, library.SERIAL, library.REVERSED))
    with library.TracedGame(wad.blob, lanes, rng.random() < 0.2, **settings) as game:
        game.play(commands(rng, rng.choice(TICS)))
        if scripted:
            game.play_scripted(2 * rng.choice(TICS))


def commands(rng: random.Random, tics: int) -> np.ndarray:
    """COMMAND [tics, MAX_PLAYERS]: all run about, fire, use and change weapons."""
    table = np.zeros((tics, library.MAX_PLAYERS), library.COMMAND)
    for row in table.ravel():
        row["forward"] = rng.choice((50, 50, 50, 25, -50, 127, -127))
        row["side"] = rng.choice((0, 0, 40, -40, 127))
        row["turn"] = rng.choice((0, 0, 2560, -2560, 16384)) if rng.random() < 0.3 else 0
        row["buttons"] = rng.choice((1, 2, 2, 3, 0, 4 | rng.randrange(8) << 3, 1, 2))
    return table


@cache
def _sound_blob(number: int) -> tuple[PackedWad, list[tuple[int, int]]]:
    wad = parse_wad(mutants.sound_wad(number), "sound.wad")
    builder = GuardedBuilder()
    blob = packer.pack(wad, builder)
    return PackedWad(wad.path, wad.sha256, blob, tuple(map_names(wad)), is_doom2(wad)), builder.guards


def _demo_case(seed: int) -> str:
    rng = random_game(seed)
    wad, guards = _sound_blob(rng.randrange(mutants.SOUND_WADS))
    demo = parse_demo(mutants.demo(seed, list(wad.maps)), "damaged.lmp")
    demo = fit_to_wad(demo, "damaged.lmp", wad)
    with Guards(wad.blob, guards):
        play_demo(demo, wad.blob, lanes=rng.choice((library.SERIAL, library.REVERSED)), traced=rng.random() < 0.3)
    return PLAYED


def damaged_file(kind: str, seed: int) -> bytes:
    """What the case reads."""
    if kind == "broken":
        return list(BROKEN_MAPS.values())[seed][0]
    if kind != "demo":
        return mutants.wad(seed)
    wad, _ = _sound_blob(random_game(seed).randrange(mutants.SOUND_WADS))
    return mutants.demo(seed, list(wad.maps))


def keep(kind: str, seed: int, folder: Path) -> Path:
    """Writes the case's file into the folder."""
    path = folder / f"case-{seed}.{'lmp' if kind == 'demo' else 'wad'}"
    path.write_bytes(damaged_file(kind, seed))
    return path
