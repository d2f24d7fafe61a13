"""Every row of the action table, done by its key, by a key of the person's own, and from the command palette.

`EFFECTS` says of each action what is seen once it is done and not before; a row without an entry fails.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from string import ascii_lowercase, digits
from types import SimpleNamespace
from typing import NamedTuple

import pytest
from app_session import Session, session, steady  # noqa: F401
from textual.command import CommandPalette

from ofa_tui import abi
from ofa_tui.doom.players import BEHAVIOURS
from ofa_tui.engine.protocol import Event
from ofa_tui.tui.actions import ACTIONS as ALL_ACTIONS
from ofa_tui.tui.actions import Action
from ofa_tui.tui.colour import Depth
from ofa_tui.tui.dialogs import HelpScreen, QuitScreen, RoleScreen
from ofa_tui.tui.guide import GuideScreen
from ofa_tui.tui.keymap import Keymap, textual_key
from ofa_tui.tui.options import UiOptions

pytestmark = pytest.mark.usefixtures("steady")


class Effect(NamedTuple):
    seen: Callable[[Session], object]
    first: tuple[str, ...] = ()
    """Actions that bring about what this one needs."""


def posts(action: str, *args: int, target: int = 0, at: str = "tic") -> Callable[[Session], object]:
    return lambda run: Event(action, at, target=target, args=args) in run.engine.posted


def moves(sm: int, role: int) -> Effect:
    return Effect(posts("set_role", role, target=sm, at="step"))


def shows(kind: type) -> Callable[[Session], object]:
    return lambda run: isinstance(run.app.screen, kind)


def saves(suffix: str) -> Effect:
    return Effect(lambda run: [path.suffix for path in run.app.saved] == [suffix])


def maximises(pane: str) -> Effect:
    return Effect(lambda run: run.app.zoom == pane)


def map_posted(run: Session) -> bool:
    return [event.action for event in run.engine.posted] == ["automap"]


EFFECTS: dict[str, Effect] = {
    "pause": Effect(lambda run: run.engine.paused),
    **{name: Effect(posts("behaviour", BEHAVIOURS.index(name))) for name in
       ("explore", "hunt", "speedrun", "pacifist", "berserk", "camp")},
    "manual": Effect(lambda run: run.app.playing),
    "train_to_serve": moves(1, abi.SERVE),
    "serve_to_train": moves(2, abi.TRAIN),
    "train_to_doom": moves(1, abi.DOOM),
    "doom_to_train": moves(3, abi.TRAIN),
    "prompt": Effect(lambda run: run.app.prompting and run.app.focused is run.app.query_one("#prompt")),
    "help": Effect(shows(HelpScreen)),
    "quit": Effect(shows(QuitScreen)),
    "suspend": Effect(lambda run: "only in a terminal" in run.text("footer")),
    "quit_now": Effect(lambda run: run.app.return_code == 0),
    "rewind": Effect(lambda run: run.engine.held and posts("rewind", 1)(run)),
    "forward": Effect(lambda run: run.engine.stepped, ("pause", "tick")),
    "automap": Effect(map_posted),
    "map_follow": Effect(map_posted, ("automap",)),
    "map_in": Effect(map_posted, ("automap",)),
    "map_out": Effect(map_posted, ("automap",)),
    "record": Effect(lambda run: run.app.recorder),
    "log_y": Effect(lambda run: "linear" in run.text("loss")),
    "gamma": Effect(lambda run: run.app.gamma_step == 2),
    "blocks": Effect(lambda run: run.app.quadrants is False),
    "screenshot": saves(".png"),
    "screenshot_svg": saves(".svg"),
    "save_demo": saves(".lmp"),
    "next_game": Effect(lambda run: run.app.model.game == 1),
    "wall": Effect(lambda run: run.app.games.wall),
    "theme": Effect(lambda run: run.app.colours is run.app.themes[list(run.app.themes)[1]]),
    **{f"zoom_{pane}": maximises(pane) for pane in ("doom", "sms", "loss", "serve", "player")},
    "up": Effect(lambda run: run.app.plot.span, ("zoom_loss",)),
    "down": Effect(lambda run: not run.app.plot.span, ("zoom_loss", "up")),
    "left": Effect(lambda run: run.app.plot.end, ("zoom_loss", "up")),
    "right": Effect(lambda run: not run.app.plot.end, ("zoom_loss", "up", "left")),
    "choose": Effect(shows(RoleScreen), ("zoom_sms", "down")),
    "back": Effect(lambda run: run.app.zoom is None, ("zoom_loss",)),
    "checkpoint": Effect(lambda run: run.asked),  # type: ignore[attr-defined]
    "guide": Effect(shows(GuideScreen)),
    "palette": Effect(shows(CommandPalette)),
}  # fmt: skip

ACTIONS = [action for action in ALL_ACTIONS if "replay" not in action.needs]
"""Those of a run; test_replay_keys.py has the others."""
FRESH = [
    *(f"alt+{c}" for c in ascii_lowercase + digits),
    *(f"ctrl+{c}" for c in "abdefgklnopqrstuvwxyz"),
    *(f"f{n}" for n in range(1, 13)),
]
OWN: Keymap = {action.name: (key,) for action, key in zip(ACTIONS, FRESH, strict=False)}


def test_no_action_is_forgotten() -> None:
    assert EFFECTS.keys() == {action.name for action in ACTIONS} == OWN.keys()


@asynccontextmanager
async def ready(action: Action, folder: Path, keymap: Keymap) -> AsyncIterator[Session]:
    """A run in which the action can do something and its effect is not seen."""
    asked: list[bool] = []
    tape = SimpleNamespace(folder=folder / "tape", write=lambda snapshot: None, close=lambda: None)
    options = UiOptions(depth=Depth.TRUECOLOR, screenshots=folder, keymap=keymap, recorder=lambda: tape,
                        checkpoint=lambda: asked.append(True))  # fmt: skip
    seen, first = EFFECTS[action.name]
    async with session(80, 24, games=2, options=options) as run:
        run.asked = asked  # type: ignore[attr-defined]
        for name in first:
            if name == "tick":
                await run.advance(0.1)
            else:
                run.app.do.perform(name)
                await run.pilot.pause()
        run.engine.posted.clear()
        run.app.repaint_all()
        assert not seen(run)
        yield run
        assert seen(run)
        await run.app.workers.wait_for_complete()


@pytest.mark.parametrize(
    ("action", "key"), [pytest.param(a, key, id=f"{a.name}-{key}") for a in ACTIONS for key in a.keys]
)
async def test_by_its_key(action: Action, key: str, tmp_path: Path) -> None:
    async with ready(action, tmp_path, {}) as run:
        await run.press(textual_key(key))


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.name)
async def test_by_a_key_of_the_persons_own_and_no_more_by_the_usual_one(action: Action, tmp_path: Path) -> None:
    async with ready(action, tmp_path, OWN) as run:
        await run.press(*map(textual_key, action.keys))
        assert not EFFECTS[action.name].seen(run) and not run.engine.posted and len(run.app.screen_stack) == 1
        await run.press(textual_key(OWN[action.name][0]))


@pytest.mark.parametrize("action", [a for a in ACTIONS if a.palette], ids=lambda action: action.name)
async def test_from_the_palette(action: Action, tmp_path: Path) -> None:
    async with ready(action, tmp_path, {}) as run:
        (command,) = (c for c in run.app.get_system_commands(run.app.screen) if c.title == action.help)
        command.callback()
        await run.pilot.pause()


async def test_footer_messages_and_help_name_the_persons_own_keys() -> None:
    own: Keymap = {"pause": ("z",), "help": ("f1",), "serve_to_train": ("+",), "map_in": ()}
    options = UiOptions(depth=Depth.TRUECOLOR, keymap=own)
    async with session(200, 60, options=options) as run:
        footer = run.text("footer")
        assert "z pause" in footer and "space" not in footer and "[ SMs" in footer and "1-5 zoom" in footer
        await run.press("z")
        assert "paused: z goes on" in run.text("footer")
        await run.press("f1")
        assert [line for line in run.text().splitlines() if "│    z  " in line and "pause and go on" in line]
