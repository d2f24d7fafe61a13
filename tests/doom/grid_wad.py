"""WADs of rooms on a grid, made from a random generator: every special and every thing within a few seconds' walk.

A cell of the grid is a sector and a subsector; lines run between neighbours and around the outside; the nodes halve
the grid until one cell is left.
"""

from __future__ import annotations

import random
import struct
from functools import cache

from ofa_tui.doom import tables
from tests.doom.tiny_wad import FLAT, Lump, build, name8, picture, texture_list

MAPS = (("E1M1", "E1M2"), ("E1M8",), ("E2M9",), ("E4M6",), ("MAP01",), ("MAP07",), ("MAP30",), ("MAP31", "MAP32"))
FLATS = ("FLOOR", "NUKAGE1", "NUKAGE2", "NUKAGE3", "F_SKY1")
WALLS = ("-", "PLAIN", "MIXED", "GRATE", "SW1BRCOM", "SW1BRN1", "SLADRIP1")
OUTSIDE = 0xFFFF
NORTH, EAST, SOUTH, WEST = 0x4000, 0, 0xC000, 0x8000
TWO_SIDED, ALL_SKILLS = 4, 7


class Grid:
    """One random level; `lumps()` are its ten."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.columns, self.rows = rng.randint(1, 5), rng.randint(1, 4)
        self.size = rng.choice((64, 96, 128, 192, 320))
        self.left, self.bottom = (rng.choice((0, -256, 1000)) for _ in range(2))
        self.special_share = rng.choice((0.1, 0.4, 0.9))
        self.lines: list[tuple[int, ...]] = []
        self.sides: list[tuple] = []
        self.edge_of: dict[tuple[int, int, int], tuple[int, int]] = {}
        self.segs: list[tuple[int, ...]] = []
        self.nodes: list[tuple[int, ...]] = []

    def vertex(self, column: int, row: int) -> int:
        return row * (self.columns + 1) + column

    def cell(self, column: int, row: int) -> int:
        inside = 0 <= column < self.columns and 0 <= row < self.rows
        return row * self.columns + column if inside else OUTSIDE

    def side(self, sector: int) -> int:
        if sector == OUTSIDE:
            return OUTSIDE
        # Most openings have nothing in their middle; what has is drawn through.
        middle = self.rng.choice(WALLS) if self.rng.random() < 0.3 else "-"
        self.sides.append((self.rng.randint(-8, 8), 0, name8(self.rng.choice(WALLS)), name8(self.rng.choice(WALLS)),
                           name8(middle), sector))
        return len(self.sides) - 1

    def line(self, v1: int, v2: int, right: int, left: int, angle: int) -> None:
        """A line and the wall pieces on both of its sides."""
        if right == OUTSIDE:
            v1, v2, right, left, angle = v2, v1, left, OUTSIDE, angle ^ 0x8000
        flags = self.rng.choice((0, 0, 0, 1, 2, 8, 16, 64)) | (TWO_SIDED if left != OUTSIDE else 1)
        special = self.rng.randrange(142) if self.rng.random() < self.special_share else 0
        number = len(self.lines)
        self.lines.append((v1, v2, flags, special, self.tag(), self.side(right), self.side(left)))
        self.edge_of[right, v1, v2] = number, angle
        if left != OUTSIDE:
            self.edge_of[left, v2, v1] = number, angle ^ 0x8000

    def tag(self) -> int:
        return self.rng.choice((0, 1, 1, 2, 3, 666, 667))

    def draw_lines(self) -> None:
        for row in range(self.rows):
            for column in range(self.columns + 1):
                self.line(self.vertex(column, row), self.vertex(column, row + 1), self.cell(column, row),
                          self.cell(column - 1, row), NORTH)
        for row in range(self.rows + 1):
            for column in range(self.columns):
                self.line(self.vertex(column, row), self.vertex(column + 1, row), self.cell(column, row - 1),
                          self.cell(column, row), EAST)

    def draw_segs(self) -> None:
        for row in range(self.rows):
            for column in range(self.columns):
                low_left, high_left = self.vertex(column, row), self.vertex(column, row + 1)
                low_right, high_right = self.vertex(column + 1, row), self.vertex(column + 1, row + 1)
                cell = self.cell(column, row)
                for v1, v2 in ((low_left, high_left), (high_left, high_right), (high_right, low_right),
                               (low_right, low_left)):
                    number, angle = self.edge_of[cell, v1, v2]
                    self.segs.append((v1, v2, angle, number, int(self.lines[number][0] != v1), 0))

    def split(self, left: int, right: int, low: int, high: int) -> int:
        """Nodes over the cells left..right - 1, low..high - 1; returns the child that stands for them."""
        if right - left == 1 and high - low == 1:
            return 0x8000 | self.cell(left, low)
        if right - left >= high - low:
            middle = (left + right) // 2
            parts = ((middle, right, low, high), (left, middle, low, high))  # east of a line that runs north is right
            line = (self.x(middle), self.y(low), 0, (high - low) * self.size)
        else:
            middle = (low + high) // 2
            parts = ((left, right, low, middle), (left, right, middle, high))
            line = (self.x(left), self.y(middle), (right - left) * self.size, 0)
        children = [self.split(*part) for part in parts]
        boxes = [n for x1, x2, y1, y2 in parts for n in (self.y(y2), self.y(y1), self.x(x1), self.x(x2))]
        self.nodes.append((*line, *boxes, *children))
        return len(self.nodes) - 1

    def x(self, column: int) -> int:
        return self.left + column * self.size

    def y(self, row: int) -> int:
        return self.bottom + row * self.size

    def sector(self) -> bytes:
        floor, height = self.rng.choice((0, 0, 0, 8, 16, 24, -24, 64)), self.rng.choice((128, 128, 96, 72, 40, 0))
        special = self.rng.randrange(18) if self.rng.random() < self.special_share else 0
        return struct.pack("<hh8s8shhh", floor, floor + height, name8(self.rng.choice(FLATS)),
                           name8(self.rng.choice(FLATS)), self.rng.choice((0, 80, 160, 255)), special, self.tag())

    def things(self) -> list[tuple[int, ...]]:
        def place(number: int) -> tuple[int, ...]:
            column, row = self.rng.randrange(self.columns), self.rng.randrange(self.rows)
            inside = [self.rng.randint(20, self.size - 20) for _ in range(2)]
            return (self.x(column) + inside[0], self.y(row) + inside[1], self.rng.randrange(0, 360, 45), number,
                    ALL_SKILLS | self.rng.choice((0, 0, 8, 16)))

        starts = [place(number) for number in (1, 2, 3, 4)]
        kinds = sorted(tables.types_by_number())
        return starts + [place(self.rng.choice(kinds)) for _ in range(self.rng.choice((0, 5, 15, 40)))]

    def lumps(self) -> list[Lump]:
        self.draw_lines()
        self.draw_segs()
        cells = self.columns * self.rows
        if cells > 1:
            self.split(0, self.columns, 0, self.rows)
        vertices = [(self.x(column), self.y(row)) for row in range(self.rows + 1) for column in range(self.columns + 1)]
        return [
            ("THINGS", b"".join(struct.pack("<5h", *thing) for thing in self.things())),
            ("LINEDEFS", b"".join(struct.pack("<HHhhhHH", *line) for line in self.lines)),
            ("SIDEDEFS", b"".join(struct.pack("<hh8s8s8sH", *side) for side in self.sides)),
            ("VERTEXES", b"".join(struct.pack("<hh", *vertex) for vertex in vertices)),
            ("SEGS", b"".join(struct.pack("<HHHHHh", *seg) for seg in self.segs)),
            ("SSECTORS", b"".join(struct.pack("<HH", 4, 4 * cell) for cell in range(cells))),
            ("NODES", b"".join(struct.pack("<12hHH", *node) for node in self.nodes)),
            ("SECTORS", b"".join(self.sector() for _ in range(cells))),
            ("REJECT", self.rng.choice((b"", bytes((cells * cells + 7) // 8)))),
            ("BLOCKMAP", b""),
        ]


@cache
def _pictures() -> dict[str, bytes]:
    solid = [[(0, bytes((x * 7 + y) & 255 for y in range(64)))] for x in range(64)]
    ragged = [[(row, bytes([x + 1] * 5)) for row in range(x % 4, 56, 9)] for x in range(30)]
    small = [[(0, b"\x01\x02\x03\x04")]] * 4
    return {"SOLID": picture(solid, 64), "RAGGED": picture(ragged, 60), "SMALL": picture(small, 4)}


@cache
def _common() -> tuple[Lump, ...]:
    """What all these WADs share: pictures, textures, flats, colours."""
    pictures = _pictures()
    textures = {name: (64, 64, [(0, 0, 0)]) for name in (
        "NONE", "PLAIN", "SKY1", "SKY2", "SKY3", "SKY4", "SW1BRCOM", "SW2BRCOM", "SW1BRN1", "SW2BRN1", "SLADRIP1",
        "SLADRIP2", "SLADRIP3")}
    textures |= {"MIXED": (128, 72, [(0, 0, 0), (40, -5, 1), (64, 10, 0)]), "GRATE": (30, 60, [(0, 0, 1)])}
    sprites = [(f"{name}A0", pictures["RAGGED"]) for name in tables.sprite_names()]
    sprites += [(f"{name}B0", pictures["SMALL"]) for name in ("TROO", "POSS", "BAL1", "PUFF", "TFOG", "PISG", "SHTG")]
    turning = [(f"PLAY{frame}{view}", pictures["SMALL"]) for frame in "CD" for view in ("1", "2A8", "3A7", "4A6", "5")]
    graphics = [(name, pictures["SMALL"]) for name in (
        "STBAR", "STARMS", "STTPRCNT", "WIMAP0", "WIF", "WIENTER", "WISPLAT", "WIURH0", "INTERPIC", "CREDIT",
        *(f"STTNUM{i}" for i in range(10)), *(f"WINUM{i}" for i in range(10)),
        *(f"STCFN{i:03}" for i in range(65, 70)))]
    return (
        ("PLAYPAL", bytes(range(256)) * 42), ("COLORMAP", bytes(range(256)) * 34),
        ("TEXTURE1", texture_list(textures)), ("PNAMES", struct.pack("<i", 2) + name8("SOLID") + name8("RAGGED")),
        ("SOLID", pictures["SOLID"]), ("RAGGED", pictures["RAGGED"]), *graphics,
        ("S_START", b""), *sprites, *turning, ("S_END", b""),
        ("F_START", b""), *((name, FLAT) for name in FLATS), ("F_END", b""),
    )


def lumps(seed: int) -> list[Lump]:
    """All lumps of the WAD with this seed, in order."""
    rng = random.Random(seed)
    levels: list[Lump] = []
    for name in rng.choice(MAPS):
        levels += [(name, b""), *Grid(rng).lumps()]
    return [*levels, *_common()]


def grid_wad(seed: int) -> bytes:
    """The WAD with this seed."""
    return build(lumps(seed))
