"""The numpy dtypes, the enumerations and the C++ header describe the same blob."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ofa_tui import locations
from ofa_tui.doom import layout, levels, names, navigation, pictures, players, specials, tables

DOOM = locations.cuda_sources() / "doom"
BLOB = (DOOM / "blob.h").read_text("utf-8")
STATE = (DOOM / "state.h").read_text("utf-8")


def enumerators(text: str, name: str) -> dict[str, int]:
    """Enumerator -> value of `enum name` in a header."""
    body = re.search(rf"enum {name}\b[^{{]*{{(.*?)}}", text, re.S)
    assert body, name
    values: dict[str, int] = {}
    following = 0
    for entry in re.sub(r"//[^\n]*", "", body[1]).split(","):
        word, _, value = entry.strip().partition("=")
        if word:
            following = eval(value, {}, dict(values)) if value else following
            values[word.strip()] = following
            following += 1
    return values


def test_structs_have_the_offsets_of_the_header(tmp_path: Path) -> None:
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler on PATH")
    checks = [f"static_assert(sizeof(doom::{struct}) == {dtype.itemsize});" for struct, dtype in layout.STRUCTS.items()]
    for struct, dtype in layout.STRUCTS.items():
        for field, (_, offset, *_) in (dtype.fields or {}).items():
            if not field.startswith("_"):
                checks.append(f"static_assert(offsetof(doom::{struct}, {field}) == {offset}, \"{struct}.{field}\");")
    source = tmp_path / "layout.cpp"
    source.write_text(f'#include <stddef.h>\n#include "{DOOM / "blob.h"}"\n' + "\n".join(checks))
    command = [compiler, "-std=c++20", "-fsyntax-only", f"-I{DOOM.parent}", str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("enum", "prefix", "words"), [
    ("Trigger", "TRIGGER_", tables.TRIGGERS),
    ("SpecialKind", "KIND_", tables.KINDS),
    ("SpecialVariant", "", ("VARIANT_NONE", *tables.VARIANTS[1:])),
    ("Monsters", "MONSTERS_", tables.MONSTERS),
    ("SectorKind", "SECTOR_", tables.SECTOR_KINDS),
])
def test_enumerations_agree(enum: str, prefix: str, words: tuple[str, ...]) -> None:
    assert enumerators(BLOB, enum) == {prefix + word: number for number, word in enumerate(words)}


def test_names_of_numbers_agree() -> None:
    assert enumerators(BLOB, "NavKind") == {
        "NAV_OPEN": navigation.OPEN, "NAV_MOVES": navigation.MOVES, "NAV_TELEPORT": navigation.TELEPORT}
    assert list(enumerators(BLOB, "NavFlag").values()) == [
        navigation.DROP, navigation.DAMAGE, navigation.DOOR, navigation.CROSSES, navigation.TRAP, navigation.FROM_ABOVE]
    assert enumerators(BLOB, "NavNodeFlag") == {"NAV_NARROW": navigation.NARROW}
    assert enumerators(BLOB, "NavUse") == {
        "NAV_BY_CROSSING": specials.USES["CROSS"], "NAV_BY_USING": specials.USES["SWITCH"],
        "NAV_BY_SHOOTING": specials.USES["SHOOT"]}
    flags = enumerators(STATE, "MobjFlag")
    assert [flags[f"MF_{word}"] for word in tables.FLAGS] == [1 << bit for bit in range(len(tables.FLAGS))]
    assert list(enumerators(STATE, "Behaviour"))[:-1] == [f"BEHAVIOUR_{name.upper()}" for name in players.BEHAVIOURS]
    for what, limit in (("SECTORS", "sectors"), ("LINES", "lines"), ("SIDES", "sides"), ("BLOCKS", "blocks")):
        assert f"MAX_{what} = {levels.LIMITS[limit]};" in STATE


@pytest.mark.parametrize("doom2", [False, True])
def test_graphics_stand_where_the_header_says(doom2: bool) -> None:
    places = enumerators(BLOB, "Graphic")
    listed = pictures.graphic_names(doom2)
    assert places.pop("GRAPHICS") == len(listed)
    for word, number in places.items():
        stem = word.removeprefix("GRAPHIC_")
        stem = {"STFACE": "STFST00", "WILV": "CWILV00" if doom2 else "WILV00"}.get(stem, stem)
        assert listed[number].startswith(stem), word


def test_names_header_is_up_to_date() -> None:
    assert (DOOM / "names.h").read_text("utf-8") == names.header(), "run python -m ofa_tui.doom.names"
