"""Every row of the action table, in a run and in a replay: each way to it, and what it does.

Each key of the table, each key of a person's own and each line of the command palette is shown to lead to its action;
and each action, by its key, to have its effect. `EFFECTS` says what is seen once it is done and not before; a row
without an entry fails.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from string import ascii_lowercase, digits
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from app_session import Session, session, steady  # noqa: F401
from replay_session import replaying
from textual.command import CommandList, CommandPalette

from ofa_tui import abi
from ofa_tui.doom.players import BEHAVIOURS
from ofa_tui.engine.protocol import Event
from ofa_tui.tui.actions import ACTIONS, Action
from ofa_tui.tui.colour import Depth
from ofa_tui.tui.dialogs import HelpScreen, QuitScreen, RoleScreen
from ofa_tui.tui.guide import GuideScreen
from ofa_tui.tui.handlers import LACKS
from ofa_tui.tui.keymap import Keymap, textual_key
from ofa_tui.tui.layout import MAXIMISED
from ofa_tui.tui.options import UiOptions
from ofa_tui.tui.replay_handlers import StepScreen

pytestmark = pytest.mark.usefixtures("steady")

Seen = Callable[[Session[Any]], object]


class Effect(NamedTuple):
    seen: Seen
    first: tuple[str, ...] = ()
    """Actions that bring about what this one needs."""


def posts(action: str, *args: int, target: int = 0, at: str = "tic") -> Seen:
    return lambda run: Event(action, at, target=target, args=args) in run.engine.posted


def moves(sm: int, role: int) -> Effect:
    return Effect(posts("set_role", role, target=sm, at="step"))


def shows(kind: type) -> Seen:
    return lambda run: isinstance(run.app.screen, kind)


def saves(suffix: str) -> Effect:
    return Effect(lambda run: [path.suffix for path in run.app.saved] == [suffix])


def maximises(pane: str) -> Effect:
    return Effect(lambda run: run.app.zoom == pane)


def map_posted(run: Session[Any]) -> bool:
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
    "next_stream": Effect(lambda run: run.app.model.stream == 1),
    "previous_stream": Effect(lambda run: run.app.model.stream == 2),
    "wall": Effect(lambda run: run.app.games.wall),
    "theme": Effect(lambda run: run.app.colours is run.app.themes[list(run.app.themes)[1]]),
    **{f"zoom_{pane}": maximises(pane) for pane in MAXIMISED},
    "up": Effect(lambda run: run.app.plot.span, ("zoom_loss",)),
    "down": Effect(lambda run: not run.app.plot.span, ("zoom_loss", "up")),
    "left": Effect(lambda run: run.app.plot.end, ("zoom_loss", "up")),
    "right": Effect(lambda run: not run.app.plot.end, ("zoom_loss", "up", "left")),
    "choose": Effect(shows(RoleScreen), ("zoom_sms", "down")),
    "back": Effect(lambda run: run.app.zoom is None, ("zoom_loss",)),
    "checkpoint": Effect(lambda run: "a checkpoint is written" in run.text("footer")),
    "guide": Effect(shows(GuideScreen)),
    "palette": Effect(shows(CommandPalette)),
}  # fmt: skip

BEFORE_S = 80.0
"""Where a replay is when an action is done in it."""


def moves_to(seconds: float) -> Effect:
    return Effect(lambda run: run.engine.seconds == pytest.approx(seconds))


REPLAY_EFFECTS: dict[str, Effect] = {
    "back_seconds": moves_to(BEFORE_S - 5),
    "forward_seconds": moves_to(BEFORE_S + 5),
    "back_minute": moves_to(BEFORE_S - 60),
    "forward_minute": moves_to(BEFORE_S + 60),
    "slower": Effect(lambda run: run.engine.speed == 0.5),
    "faster": Effect(lambda run: run.engine.speed == 2),
    "go_to_step": Effect(shows(StepScreen)),
    "to_begin": Effect(lambda run: run.engine.seconds == run.engine.begin),
    "to_end": Effect(lambda run: run.engine.at_end),
}
EFFECTS |= REPLAY_EFFECTS

LACKED = {"run": {"replay"}, "replay": {"live", "games", "streams", "recorder", "checkpoints"}}
"""By mode, what actions need (Action.needs) and have not."""


def offered(mode: str) -> list[Action]:
    return [action for action in ACTIONS if not LACKED[mode] & set(action.needs)]


FRESH = [
    *(f"alt+{c}" for c in ascii_lowercase + digits),
    *(f"ctrl+{c}" for c in "abdefgklnopqrstuvwxy"),
    *(f"f{n}" for n in range(1, 13)),
]
OWN: Keymap = {action.name: (key,) for action, key in zip(ACTIONS, FRESH, strict=False)}


def test_no_action_is_forgotten() -> None:
    assert EFFECTS.keys() == OWN.keys() == {action.name for action in ACTIONS}
    assert {action.name for mode in LACKED for action in offered(mode)} == EFFECTS.keys()


@asynccontextmanager
async def started(mode: str, record: Path, folder: Path, keymap: Keymap) -> AsyncIterator[Session[Any]]:
    """A run that has everything an action may need, or a replay in its middle."""
    if mode == "replay":
        options = UiOptions(depth=Depth.TRUECOLOR, screenshots=folder, keymap=keymap)
        async with replaying(record, 80, 24, options=options) as run:
            await run.advance(BEFORE_S - run.engine.seconds)
            yield run
        return
    tape = SimpleNamespace(folder=folder / "tape", write=lambda snapshot: None, close=lambda exit_reason: None)
    options = UiOptions(depth=Depth.TRUECOLOR, screenshots=folder, keymap=keymap, recorder=lambda: tape,
                        checkpoint=lambda: None)  # fmt: skip
    async with session(80, 24, games=2, streams=3, options=options) as run:
        yield run


def hear(run: Session[Any]) -> list[str]:
    """The names of the actions that are called, in place of doing them."""
    called: list[str] = []
    run.app.do.perform = called.append  # type: ignore[method-assign]
    return called


modes = pytest.mark.parametrize("mode", LACKED)


@modes
async def test_every_key_leads_to_its_action(mode: str, long_folder: Path, tmp_path: Path) -> None:
    async with started(mode, long_folder, tmp_path, {}) as run:
        called = hear(run)
        await run.press(*(textual_key(key) for action in ACTIONS for key in action.keys))
        assert called == [action.name for action in ACTIONS for _ in action.keys]


@modes
async def test_every_key_of_the_persons_own_does_and_no_usual_one(mode: str, long_folder: Path, tmp_path: Path) -> None:
    async with started(mode, long_folder, tmp_path, OWN) as run:
        called = hear(run)
        await run.press(*(textual_key(key) for action in ACTIONS for key in action.keys))
        assert not called
        await run.press(*(textual_key(key) for action in ACTIONS for key in OWN[action.name]))
        assert called == [action.name for action in ACTIONS]


@modes
async def test_every_line_of_the_palette_leads_to_its_action(mode: str, long_folder: Path, tmp_path: Path) -> None:
    async with started(mode, long_folder, tmp_path, {}) as run:
        called = hear(run)
        commands = {command.title: command for command in run.app.get_system_commands(run.app.screen)}
        listed = [action for action in ACTIONS if action.help in commands]
        for action in listed:
            assert commands[action.help].help == ", ".join(action.keys)
            commands[action.help].callback()
        assert called == [action.name for action in offered(mode) if action.palette] == [a.name for a in listed]


@modes
async def test_a_line_is_found_by_its_words_and_chosen(mode: str, long_folder: Path, tmp_path: Path) -> None:
    async with started(mode, long_folder, tmp_path, {}) as run:
        await run.press("colon", *"linear")
        found = run.app.screen.query_one(CommandList)
        while found.highlighted is None or not found.option_count:  # until the search is done
            await run.pilot.pause()
        await run.press("enter")
        assert len(run.app.screen_stack) == 1 and EFFECTS["log_y"].seen(run)


@modes
async def test_what_it_has_not_is_said_and_nothing_else_done(mode: str, long_folder: Path, tmp_path: Path) -> None:
    async with started(mode, long_folder, tmp_path, {}) as run:
        before = run.app.engine.seconds if mode == "replay" else run.engine.posted
        for action in set(ACTIONS) - set(offered(mode)):
            run.app.clear_message()
            run.app.do.perform(action.name)
            need = next(need for need in action.needs if need in LACKED[mode])
            assert " ".join(run.text("footer").split()) == LACKS[need]
        assert before == (run.app.engine.seconds if mode == "replay" else run.engine.posted)
        assert len(run.app.screen_stack) == 1 and not run.app.saved and not run.app.playing


@pytest.mark.parametrize(
    ("mode", "action"), [pytest.param(m, a, id=f"{m}-{a.name}") for m in LACKED for a in offered(m)]
)
async def test_the_action_has_its_effect(mode: str, action: Action, long_folder: Path, tmp_path: Path) -> None:
    seen, first = EFFECTS[action.name]
    async with started(mode, long_folder, tmp_path, {}) as run:
        for name in first:
            if name == "tick":
                await run.advance(0.1)
            else:
                run.app.do.perform(name)
                await run.pilot.pause()
        if mode == "run":
            run.engine.posted.clear()
        run.app.clear_message()
        run.app.repaint_all()
        assert not seen(run)
        if action.keys:
            await run.press(textual_key(action.keys[0]))
        else:
            (command,) = (c for c in run.app.get_system_commands(run.app.screen) if c.title == action.help)
            command.callback()
            await run.pilot.pause()
        assert seen(run)
        await run.app.workers.wait_for_complete()


async def test_footer_messages_and_help_name_the_persons_own_keys() -> None:
    own: Keymap = {"pause": ("z",), "help": ("f1",), "serve_to_train": ("+",), "map_in": ()}
    options = UiOptions(depth=Depth.TRUECOLOR, keymap=own)
    async with session(200, 60, options=options) as run:
        footer = run.text("footer")
        assert "z pause" in footer and "space" not in footer and "[ SMs" in footer and "1-6 zoom" in footer
        await run.press("z")
        assert "paused: z goes on" in run.text("footer")
        await run.press("f1")
        assert [line for line in run.text().splitlines() if "│    z  " in line and "pause and go on" in line]
