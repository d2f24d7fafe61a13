"""The app over a frozen engine: keys to events, dialogs, messages, life in one process."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from app_session import session, steady  # noqa: F401
from fake_run import FakeEngine, card_palette
from PIL import Image

from ofa_tui import abi
from ofa_tui.engine.protocol import AppliedEvent, Event, Saved, Snapshot
from ofa_tui.errors import AbortedError, OfaError
from ofa_tui.tui.actions import ACTIONS, GROUPS
from ofa_tui.tui.app import OfaApp
from ofa_tui.tui.colour import Depth
from ofa_tui.tui.dialogs import Commands
from ofa_tui.tui.options import UiOptions
from ofa_tui.tui.screenshot import screen_grid
from ofa_tui.tui.session import closing_line
from ofa_tui.tui.theme import load_themes

pytestmark = pytest.mark.usefixtures("steady")


async def test_the_picture_on_screen_is_the_test_card() -> None:
    async with session(200, 60, sms=132) as run:
        grid = screen_grid(run.app)
    palette = card_palette()
    left, top = 1, 5  # inside the border, below header and tiles
    for x, index in ((7, 26), (22, 32 + 26), (112, 7 * 32 + 26)):
        red, green, blue = np.rint(255 * (palette[index] / 255) ** 0.8).astype(int)
        shown = int(grid.bg[top + 3, left + x])
        assert max(abs((shown >> 16) - red), abs((shown >> 8 & 255) - green), abs((shown & 255) - blue)) <= 4
    assert int(grid.bg[top + 46, left + 10]) == run.app.colours.background, "the border row is not picture"


async def test_doom_is_explained_when_missing() -> None:
    async with session(games=0) as run:
        assert "install the package vizdoom" in " ".join(run.text("doom").replace("│", " ").split())
        assert "explore" not in run.text("footer")
        await run.press("e", "m", "}")
        assert not run.engine.posted


@pytest.mark.parametrize(
    ("keys", "event"),
    [
        (["left_square_bracket"], Event("set_role", "step", target=1, args=(abi.SERVE,))),
        (["right_square_bracket"], Event("set_role", "step", target=2, args=(abi.TRAIN,))),
        (["left_curly_bracket"], Event("set_role", "step", target=1, args=(abi.DOOM,))),
        (["right_curly_bracket"], Event("set_role", "step", target=3, args=(abi.TRAIN,))),
        (["e"], Event("behaviour", "tic", args=(0,))),
        (["slash", "O", "n", "c", "e", "space", "q", "enter"], Event("prompt", "token", text="Once q")),
        (["2", "down", "down", "enter", "down", "enter"], Event("set_role", "step", target=1, args=(abi.SERVE,))),
    ],
)
async def test_keys_become_events(keys: list[str], event: Event) -> None:
    async with session() as run:
        await run.press(*keys)
        assert run.engine.posted == [event]


async def test_a_prompt_goes_to_the_selected_stream() -> None:
    async with session(streams=3, telling=1) as run:
        assert "( stream" in run.text("footer").replace("( )", "(")
        await run.press(")", "slash")
        assert "prompt to stream 1" in run.text()
        await run.press("a", "enter")
        assert run.engine.posted == [Event("prompt", "token", target=1, text="a")]
        assert "prompt sent to stream 1" in run.text("footer")
        await run.press("(", "(", "slash", "b", "enter")
        assert run.engine.posted[1:] == [Event("prompt", "token", target=2, text="b")]
        await run.press("4", "down")
        assert run.app.model.stream == 0
        box = run.app.stream_boxes[1]
        await run.pilot.click("#serve", offset=(box.x + 1, box.y))
        assert run.app.model.stream == 1
    async with session() as run:
        await run.press(")")
        assert "only stream" in run.text("footer") and "( )" not in run.text()


async def test_pause_and_go_on() -> None:
    async with session() as run:
        await run.press("space")
        assert run.engine.paused
        await run.advance(0.1)
        assert "paused" in run.text("header") and "35 fps link" in run.text("header")
        run.app.flow.rate = lambda now: 3.0  # type: ignore[method-assign]
        await run.advance(0.1)
        assert "35 fps link" in run.text("header"), "few pictures are sent, but not for the link's sake"
        await run.press("space")
        assert not run.engine.paused


async def test_a_person_plays_and_gives_the_controls_back() -> None:
    async with session(polling=True) as run:
        await run.press("m")
        manual = run.app.behaviours.index("manual")
        assert run.engine.posted == [Event("behaviour", "tic", args=(manual,))]
        await run.press("w")
        await run.press("q")  # not ours while playing: no quit question
        assert run.engine.posted[1] == Event("keys", "tic", args=(50, 0, 0, 0))
        assert len(run.app.screen_stack) == 1 and run.app.playing
        await run.pilot.pause(0.3)
        assert run.engine.posted[-1] == Event("keys", "tic", args=(0, 0, 0, 0)), "the hold runs out"
        await run.press("escape")
        assert run.engine.posted[-1] == Event("behaviour", "tic", args=(0,)) and not run.app.playing


@pytest.mark.parametrize("columns", [80, 120])
async def test_the_footer_shows_how_to_play_as_long_as_playing_lasts(columns: int) -> None:
    async with session(columns, 24) as run:
        await run.press("m")
        footer = run.text("footer")
        assert footer.startswith(" Esc gives back") and "WASD move" in footer and "l latch" in footer
        run.engine.refuse = "no such key"
        await run.press("w")
        assert run.text("footer").startswith(" Esc gives back  no such key")
        await run.press("escape")
        assert "gives back" not in run.text("footer")


async def test_a_replay_offers_only_what_it_can_do() -> None:
    async with session(200, 60, backend="replay") as run:
        footer = run.text("footer")
        assert "space pause" in footer and not any(word in footer for word in ("explore", "play", "SMs", "prompt"))
        commands = {command.title for command in run.app.get_system_commands(run.app.screen)}
        assert "pause and go on" in commands and "write a prompt for the model" not in commands
        await run.press("e", "m", "left_square_bracket", "2", "down", "enter")
        assert not run.engine.posted and len(run.app.screen_stack) == 1 and not run.app.playing
        assert "only a live run can be steered" in run.text("footer") and "Enter" not in run.text("sms")
        await run.press("question_mark")
        assert "move one SM" not in run.text() and "While you play" not in run.text()


async def test_giving_an_sm_the_role_it_has_says_so() -> None:
    async with session() as run:
        await run.press("2", "down")
        assert "↑↓ select, Enter role" in run.text("sms")
        await run.press("enter", "enter")
        assert not run.engine.posted and "already has the role train" in run.text("footer")


async def test_zoom_and_single_pane() -> None:
    async with session() as run:
        await run.press("3")
        assert run.app.panes["loss"].size == (120, 36) and "1 doom" not in run.text()
        await run.press("3")
        assert run.app.panes["loss"].size == (46, 16)
    async with session(60, 18) as run:
        assert "1 doom" in run.text() and "3 loss" not in run.text()
        await run.press("4")
        assert "4 serve" in run.text() and "1 doom" not in run.text()
        await run.press("4")
        assert "4 serve" in run.text()
    async with session(20, 5) as run:
        await run.press("2")
        assert "2 SMs" in run.text() and "0 T" in run.text()


async def test_resizing_moves_through_all_layouts() -> None:
    async with session(200, 60) as run:
        for columns, rows in ((120, 40), (80, 24), (30, 8), (200, 60)):
            await run.pilot.resize_terminal(columns, rows)
            await run.pilot.pause()
            assert run.app.screen.size == (columns, rows)
            run.app.repaint_all()
        assert run.app.panes["doom"].size == (122, 47)


async def test_loss_keys() -> None:
    async with session() as run:
        assert "linear" not in run.text("loss")
        await run.press("y")
        assert "linear" in run.text("loss")
        await run.press("3", "up", "up")
        assert run.app.plot.span > 0
        await run.press("left")
        assert run.app.plot.end > 0 and "window" in run.text("loss")
        await run.press("escape")
        assert run.app.plot.span == 0


async def test_selecting_an_sm_by_mouse() -> None:
    async with session(200, 60, sms=132) as run:
        box = run.app.sms_box
        await run.pilot.click("#sms", offset=(box.x + 5 * 3 + 1, box.y + 2))
        assert run.app.selected_sm == 2 * 22 + 3
        assert "SM 47" in run.text("sms")


async def test_what_the_engine_refuses_is_said() -> None:
    async with session() as run:
        run.engine.refuse = "SM 1 is the last that trains; keep one"
        await run.press("left_square_bracket")
        assert "the last that trains" in run.text("footer")


async def test_themes_and_help_and_palette() -> None:
    async with session() as run:
        first, *others = load_themes()
        for name in (*others, first):
            await run.press("t")
            assert run.app.colours.name == name and run.app.panes["doom"].grid is not None
            assert int(run.app.panes["header"].grid.bg[0, 60]) == run.app.themes[name].panel, "painted at once"
        await run.press("question_mark")
        help_text = run.text()
        assert "move one SM from train to serve" in help_text and "take the controls" in help_text
        explained = [line for line in help_text.splitlines() if "the scripted player explores" in line]
        assert "c  the scripted player" in explained[0], "keys and what they do stand apart"
        await run.press("escape", "colon")
        assert len(run.app.screen_stack) == 2
        await run.press("escape")
        assert len(run.app.screen_stack) == 1


async def test_the_palette_has_the_order_of_the_help() -> None:
    async with session() as run:
        shown = [hit.text async for hit in Commands(run.app.screen).discover()]
        groups = [action.group for text in shown for action in ACTIONS if action.help == text and action.palette]
        assert [group for group, _ in itertools.groupby(groups)] == ["run", "Doom", "panes", "view", "program"]
        assert groups == sorted(groups, key=GROUPS.index)
        await run.press(":")
        for _ in range(100):
            await run.pilot.pause()
            if shown[0] in run.text():
                break
        lines = [line.strip() for line in run.text().splitlines()]
        assert lines.index(shown[0]) < lines.index(shown[1]) < lines.index(shown[2])
        assert shown[0] == "pause and go on"


async def test_screenshots(tmp_path: Path) -> None:
    async with session(80, 24, options=UiOptions(depth=Depth.TRUECOLOR, screenshots=tmp_path / "shots")) as run:
        await run.press("x")
        run.app.do.perform("screenshot_svg")
        await run.app.workers.wait_for_complete()
        (png,), (svg,) = (tmp_path / "shots").glob("*.png"), (tmp_path / "shots").glob("*.svg")
        assert all(re.fullmatch(r"ofa-tui-\d{4}-\d\d-\d\d-\d{6}", path.stem) for path in (png, svg))
        assert closing_line(run.app.model, run.app.saved).endswith(f" · saved {png}, {svg}")
        assert Image.open(png).size == (800, 480) and "loss" in svg.read_text()
        assert "saved" in run.text("footer")


async def test_an_unwritable_screenshot_folder_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    async with session(options=UiOptions(depth=Depth.TRUECOLOR, screenshots=tmp_path / "file")) as run:
        await run.press("x")
        await run.app.workers.wait_for_complete()
        assert "cannot write" in run.text("footer") and not run.app.saved


class Tape:
    """A recorder that counts, and can fail."""

    def __init__(self) -> None:
        self.folder = Path("runs/ofa-tui-tape")
        self.written, self.closed, self.full = 0, False, False
        self.applied: list[AppliedEvent] = []
        self.ending = ("", "")

    def write(self, snapshot: Snapshot) -> None:
        if self.full:
            raise OfaError("the disk is full")
        self.written += 1
        self.applied += snapshot.applied

    def close(self, exit_reason: str = "recording stopped", message: str = "") -> None:
        self.closed = True
        self.ending = exit_reason, message


async def test_recording_on_and_off_and_failing() -> None:
    tapes: list[Tape] = []

    def recorder() -> Tape:
        tapes.append(Tape())
        return tapes[-1]

    async with session(options=UiOptions(depth=Depth.TRUECOLOR, recorder=recorder)) as run:
        assert "rec" in run.text("footer")
        await run.press("left_square_bracket", "right_square_bracket")
        await run.advance(0.1)
        await run.press("r")
        assert "recording into ofa-tui-tape" in run.text("footer")
        await run.press("e")
        await run.advance(0.1)
        assert [entry.event for entry in tapes[0].applied] == run.engine.posted and len(run.engine.posted) == 3
        assert "REC" in run.text("header") and tapes[0].written
        await run.press("r")
        assert tapes[0].closed and run.app.recorder is None and tapes[0].ending == ("recording stopped", "")
        assert "recorded in runs/ofa-tui-tape" in run.text("footer")
        await run.press("r")
        tapes[1].full = True
        await run.advance(0.1)
        assert run.app.recorder is None and "disk is full" in run.text("footer")
        assert tapes[1].ending == ("failed", "the disk is full")
        assert run.app.saved == [tapes[0].folder] and run.app.broken == [tapes[1].folder]


async def test_a_checkpoint_is_asked_for_and_its_outcome_said(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []
    async with session(options=UiOptions(depth=Depth.TRUECOLOR, checkpoint=lambda: asked.append(True))) as run:
        await run.press("k")
        assert asked == [True] and "checkpoint is written" in run.text("footer")
        poll = run.engine.poll
        outcomes = [Saved(1200, "runs/kept/step-1200.safetensors", 10), Saved(1300, "", error="no room")]
        for outcome, words in zip(outcomes, ("checkpoint of step 1,200 in runs/kept", "no room"), strict=True):
            monkeypatch.setattr(run.engine, "poll", lambda outcome=outcome: replace(poll(), saved=[outcome]))
            run.app._tick()
            await run.pilot.pause()
            assert words in run.text("footer")
        assert set(run.app.saved) == {Path("runs/kept")}
    async with session() as run:
        await run.press("k")
        assert "only a live run writes checkpoints" in run.text("footer")


async def test_quitting_asks_only_for_an_unfinished_run() -> None:
    async with session() as run:
        await run.press("q")
        assert "Stop this run?" in run.text()
        await run.press("n")
        assert run.app.is_running and len(run.app.screen_stack) == 1
        await run.press("q", "y")
        assert run.app.return_code == 0
    async with session() as run:
        await run.advance(1000)
        await run.advance(1)
        assert run.app.model.state == "finished"
        await run.press("q")
        assert run.app.return_code == 0


async def test_an_abort_is_shown_until_the_person_leaves() -> None:
    async with session() as run:
        run.engine.abort = "SM 3 waited 10 s for counter 17"
        await run.advance(0.1)
        assert "SM 3 waited" in run.text("footer") and "aborted" in run.text("header")
        await run.press("q")
        assert run.app.return_code == 3 and isinstance(run.app.failure, AbortedError)


@pytest.mark.parametrize("depth", list(Depth))
async def test_every_depth_draws(depth: Depth) -> None:
    async with session(depth=depth) as run:
        for pane in (pane for name, pane in run.app.panes.items() if name != "log"):  # which shows maximised only
            assert pane.strips and all(s.cell_length == pane.size.width for s in pane.strips)
        # Without colours nothing but bold and reverse is sent.
        sent = "".join(s.render(run.app.console) for s in run.app.panes["sms"].strips)
        assert ("38;" in sent) == (depth in (Depth.TRUECOLOR, Depth.EIGHT_BIT))


async def test_unchanged_panes_are_not_sent_again() -> None:
    async with session() as run:
        assert not any(pane.repaint() for pane in run.app.panes.values())
        strips = list(run.app.panes["player"].strips)
        await run.advance(0.03)
        again = run.app.panes["player"].strips
        assert sum(a is not b for a, b in zip(strips, again, strict=True)) <= 2


async def test_reduced_motion_really_cuts_repaints() -> None:
    painted: dict[bool, int] = {}
    for reduced in (False, True):
        options = UiOptions(depth=Depth.TRUECOLOR, reduced_motion=reduced)
        async with session(options=options, moving=True) as run:
            painted[reduced] = sum(run.tick(1 / 35) for _ in range(70))
    assert painted[False] >= 60 and painted[True] <= 12


async def test_blocks_can_be_chosen() -> None:
    async with session() as run:
        run.app.do.perform("blocks")
        text = run.text("doom")
        assert not set(text) & set("▘▝▖▗▌▐▚▞▛▜▙▟")
        run.app.do.perform("blocks")
        assert set(run.text("doom")) & set("▘▝▖▗▌▐▚▞▛▜▙▟")


def test_unknown_theme_is_explained() -> None:
    with pytest.raises(OfaError, match=re.escape("unknown theme 'pink'")):
        OfaApp(FakeEngine(), options=UiOptions(theme="pink"))


@pytest.mark.parametrize("columns", [80, 120])
async def test_a_long_message_is_said_whole_and_gives_its_rows_back(columns: int) -> None:
    sentence = " ".join(["the games are held and the rest goes on"] * 5) + " /a/path" + "/that/is/long" * 12
    async with session(columns, 40) as run:
        before = run.text()
        run.app.say(sentence)
        await run.advance(0.1)
        assert "".join(run.text("footer").split()) == "".join(sentence.split())
        assert run.app.panes["footer"].size.height == len(run.text("footer").splitlines()) > 1
        await run.press("m", "w", "escape")
        assert "the scripted player has the controls" in run.text("footer")
        run.app._message_until = 0.0
        await run.advance(0.1)
        assert run.app.panes["footer"].size.height == 1
        assert run.text().splitlines()[-1] == before.splitlines()[-1]


async def test_escape_gives_the_controls_back_to_nobody_where_nobody_had_them() -> None:
    async with session(moving=True) as run:
        manual = run.app.behaviours.index("manual")
        run.engine.post(Event("behaviour", "tic", args=(manual,)))
        await run.advance(0.1)
        await run.press("m", "escape")
        assert run.engine.posted[-1] == Event("behaviour", "tic", args=(manual,))
        assert "nobody has the controls" in run.text("footer")


async def test_controls_taken_twice_before_a_frame_shows_it_go_back_to_the_same_player() -> None:
    async with session(moving=True) as run:
        hunt = run.app.behaviours.index("hunt")
        run.engine.post(Event("behaviour", "tic", args=(hunt,)))
        await run.advance(0.1)
        await run.press("m")
        await run.advance(0.1)
        await run.press("escape", "m", "escape")
        assert run.engine.posted[-1] == Event("behaviour", "tic", args=(hunt,))
