"""Demo files (.lmp): the commands of a whole game.

Format of versions 1.4 to 1.9: 13 header bytes (version, skill 0-4, episode, map, deathmatch, respawn, fast, no
monsters, viewed player, four flags for the players there are), then for each tic, for each player there is, 4 bytes:
forward and side move (signed), upper byte of the turn, buttons. A byte 0x80 where a tic would begin ends the demo.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ofa_tui.doom.library import COMMAND, MAX_PLAYERS
from ofa_tui.errors import OfaError

VERSIONS = {104: "1.4", 105: "1.5", 106: "1.666", 107: "1.7", 108: "1.8", 109: "1.9"}
CURRENT_VERSION = 109
HEADER_BYTES, COMMAND_BYTES = 13, 4
END = 0x80
MAX_BYTES = 1 << 30


class DemoError(OfaError):
    """A demo that cannot be read or played."""


@dataclass(frozen=True)
class Demo:
    """A demo: `commands` COMMAND [tics, MAX_PLAYERS], of players who are not there zero."""

    commands: np.ndarray
    skill: int = 2  # 0-4
    episode: int = 1
    map: int = 1
    viewed: int = 0
    present: tuple[bool, ...] = (True, False, False, False)
    deathmatch: int = 0
    respawn: int = 0
    fast: int = 0
    no_monsters: int = 0
    version: int = CURRENT_VERSION
    ended: bool = True
    """False where the file stops without the mark of the end."""

    def settings(self) -> dict[str, int]:
        """The game it is played in, as fields of NEW_GAME."""
        present = sum(1 << player for player, there in enumerate(self.present) if there)
        return {
            "episode": self.episode, "map": self.map, "skill": self.skill, "viewed": self.viewed, "present": present,
            "respawn": self.respawn, "fast": self.fast, "no_monsters": self.no_monsters, "stays_at_end": 1,
        }

    def header(self) -> bytes:
        """Its HEADER_BYTES."""
        return bytes([
            self.version, self.skill, self.episode, self.map, self.deathmatch, self.respawn, self.fast,
            self.no_monsters, self.viewed, *self.present,
        ])

    def encode(self) -> bytes:
        """The whole file."""
        players = [player for player, there in enumerate(self.present) if there]
        return self.header() + encode_commands(self.commands[:, players]) + bytes([END])


def encode_commands(commands: np.ndarray) -> bytes:
    """The bytes of COMMAND [...], in order. Turns lose their lower byte, which is 0 in what a demo can store."""
    body = np.empty((*commands.shape, COMMAND_BYTES), np.uint8)
    body[..., 0] = commands["forward"].view(np.uint8)
    body[..., 1] = commands["side"].view(np.uint8)
    body[..., 2] = (commands["turn"].view(np.uint16) >> 8).astype(np.uint8)
    body[..., 3] = commands["buttons"]
    return body.tobytes()


def read_demo(path: Path) -> Demo:
    """The demo in a file. Raises DemoError."""
    try:
        if not path.is_file():
            raise DemoError(f"there is no demo {path}; give a .lmp file, or the name of one in the WAD such as DEMO1")
        if path.stat().st_size > MAX_BYTES:
            raise DemoError(f"{path} is larger than {MAX_BYTES >> 20} MB, which no demo is; name another file")
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DemoError(f"cannot read the demo {path} ({reason}); check the path") from None
    return parse_demo(data, str(path))


def parse_demo(data: bytes, name: str) -> Demo:
    """The demo in `data`; `name` is what messages call it. Raises DemoError for what cannot be played."""
    version = _version(data, name)
    _, skill, episode, map_, deathmatch, respawn, fast, no_monsters, viewed, *flags = data[:HEADER_BYTES]
    present = tuple(flag != 0 for flag in flags)
    if skill > 4:
        raise DemoError(f"{name} is damaged: it has the skill {skill + 1} of 5; get a fresh copy")
    if viewed >= MAX_PLAYERS or not present[viewed]:
        raise DemoError(f"{name} is damaged: player {viewed + 1}, whose eyes it shows, does not play; get a fresh copy")
    if deathmatch:
        raise DemoError(f"{name} is a deathmatch; play a demo of one player or of a cooperative game")
    commands, ended = _commands(data[HEADER_BYTES:], present)
    if not len(commands):
        raise DemoError(f"{name} ends before its first tic; get a fresh copy")
    return Demo(commands, skill, episode, map_, viewed, present, deathmatch, int(respawn != 0), int(fast != 0),
                int(no_monsters != 0), version, ended)


def _version(data: bytes, name: str) -> int:
    if not data:
        raise DemoError(f"{name} is empty; get a fresh copy")
    if data[0] <= 4:
        raise DemoError(f"{name} is no demo of Doom 1.4 to 1.9 (it may be one of 1.2, which has another format)")
    if data[0] not in VERSIONS:
        raise DemoError(f"{name} is no demo of Doom 1.4 to 1.9 (its first byte is {data[0]}, not 104 to 109)")
    if len(data) < HEADER_BYTES:
        raise DemoError(f"{name} ends inside its header; get a fresh copy")
    return data[0]


def _commands(body: bytes, present: tuple[bool, ...]) -> tuple[np.ndarray, bool]:
    """COMMAND [tics, MAX_PLAYERS], and whether the mark of the end was there."""
    players = [player for player, there in enumerate(present) if there]
    whole = len(body) // (COMMAND_BYTES * len(players))
    raw = np.frombuffer(body, np.uint8)
    table = raw[:whole * len(players) * COMMAND_BYTES].reshape(whole, len(players), COMMAND_BYTES)
    # The mark may stand where too few bytes follow for another tic.
    marks = np.flatnonzero(raw[::COMMAND_BYTES * len(players)] == END)
    tics = int(marks[0]) if len(marks) else whole
    table = table[:tics]
    commands = np.zeros((tics, MAX_PLAYERS), COMMAND)
    commands["forward"][:, players] = table[:, :, 0].view(np.int8)
    commands["side"][:, players] = table[:, :, 1].view(np.int8)
    commands["turn"][:, players] = (table[:, :, 2].astype(np.uint16) << 8).view(np.int16)
    commands["buttons"][:, players] = table[:, :, 3]
    return commands, bool(len(marks))
