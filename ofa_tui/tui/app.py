"""The application: polls the engine, hands snapshots to the model, repaints panes as fast as the link takes them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, cast

from rich.console import RenderableType
from textual import events
from textual._context import active_message_pump
from textual.actions import ActionParseResult
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingsMap
from textual.dom import DOMNode
from textual.drivers.linux_driver import LinuxDriver
from textual.screen import ModalScreen, Screen
from textual.theme import Theme as TextualTheme
from textual.widget import Widget
from textual.widgets import Input
from textual.worker import WorkerFailed

from ofa_tui.crash import write_crash_log
from ofa_tui.doom.players import BEHAVIOURS
from ofa_tui.engine.protocol import Engine, Event, Snapshot
from ofa_tui.engine.replay import ReplayEngine
from ofa_tui.errors import AbortedError, OfaError
from ofa_tui.tui import handlers, manual
from ofa_tui.tui.actions import GROUPS, Action
from ofa_tui.tui.board import Board
from ofa_tui.tui.colour import Depth, detect_depth, to_hex
from ofa_tui.tui.dialogs import Commands
from ofa_tui.tui.flow import RATE_WINDOW_S, FrameFlow
from ofa_tui.tui.games import Games
from ofa_tui.tui.grid import Grid
from ofa_tui.tui.keymap import apply_keymap, textual_key
from ofa_tui.tui.layout import (
    HORIZONTAL_BREAKPOINTS,
    MAXIMISED,
    Box,
    Frame,
    SizeClass,
    arrange,
    frame,
    size_class,
    with_footer_of,
)
from ofa_tui.tui.model import RunModel
from ofa_tui.tui.options import Recorder, UiOptions
from ofa_tui.tui.pane import CellPane
from ofa_tui.tui.panes import doom, log, loss, player, replay, serve, sms, status, streams, wall
from ofa_tui.tui.picture import Blocks
from ofa_tui.tui.plot import PlotView
from ofa_tui.tui.replay_handlers import replay_news
from ofa_tui.tui.strips import CellsUpdate, console_for, supported
from ofa_tui.tui.suspend import Suspension
from ofa_tui.tui.task_times import TaskTimes
from ofa_tui.tui.theme import Theme, for_depth, load_themes

POLL_S = 1 / 35
TEXT_EVERY = {"header": 9, "tiles": 9, "footer": 18, "sms": 5, "loss": 9, "serve": 3, "player": 3, "log": 9,
              "replay": 5}  # fmt: skip
"""Polls between two paintings of a pane; the Doom pane is painted with every new frame."""
MESSAGE_S = 5.0
HEARTBEAT_POLLS = 18
ALWAYS = ("quit_now", "suspend")
"""Actions that work whatever is open."""
MODAL_POLLS = 9
"""Under a dialog, which makes Textual draw everything the slow way, panes are painted every so many polls."""


def gamma_for(depth: Depth) -> int:
    """The step of picture.GAMMAS to begin with. The 256-colour cube has no dark browns: brighter frames keep hues."""
    return 1 if depth is Depth.TRUECOLOR else 2


def _in_dialog(node: object) -> bool:
    return isinstance(node, Widget) and any(isinstance(above, ModalScreen) for above in node.ancestors_with_self)


class OfaApp(App[int], inherit_bindings=False):
    """Panes over a running engine. `run()` returns when the person quits; stopping the engine is the caller's."""

    CSS_PATH = "app.tcss"
    TITLE = "ofa-tui"
    HORIZONTAL_BREAKPOINTS = HORIZONTAL_BREAKPOINTS
    ENABLE_COMMAND_PALETTE = True
    COMMANDS = {Commands}  # noqa: RUF012
    COMMAND_PALETTE_BINDING = "f24"
    """Unreachable on purpose: the palette's key is in the action table."""
    ESCAPE_TO_MINIMIZE = False

    def __init__(self, engine: Engine, *, options: UiOptions | None = None) -> None:
        self.options = options or UiOptions()
        self.engine = engine
        self.replay = engine if isinstance(engine, ReplayEngine) else None
        facts = self.options.facts
        self.model = RunModel(
            engine.info, TaskTimes(engine.info.n_sms, facts, self.options.limits) if facts else None)
        self.games = Games(engine.info.games)
        self.depth = self.options.depth or detect_depth()
        self.themes = load_themes()
        name = self.options.theme or ("contrast" if self.depth is Depth.NONE else "dark")
        if name not in self.themes:
            raise OfaError(f"unknown theme {name!r}; choose one of {', '.join(self.themes)}")
        self.colours: Theme = for_depth(self.themes[name], self.depth)
        self.actions = apply_keymap(self.options.keymap)
        self.behaviours = BEHAVIOURS
        super().__init__()
        self.console = console_for(self.depth)
        self.apply_theme()
        self.do = handlers.Handlers(self)
        self.flow = FrameFlow()
        self.holds = manual.KeyHolds()
        self.zoom: str | None = None
        self.active = "doom" if engine.info.games else "loss"
        self.plot = PlotView(log=self.options.log_loss)
        self.gamma_step = gamma_for(self.depth) if self.options.gamma_step is None else self.options.gamma_step
        self.quadrants = self.options.quadrants
        self.blocks = Blocks.QUARTERS
        self.selected_sm: int | None = None
        self.playing = False
        self.behaviours_before: dict[int, int] = {}
        """By game: what its scripted player did when a person last took its controls."""
        self.prompting = False
        self.recorder: Recorder | None = None
        self.link_fps: float | None = None
        self.link_counts_from = 0.0
        self.recorder_is_new = False
        """Nothing was written yet."""
        self.saved: list[Path] = []
        """Recordings and screenshots made, in order."""
        self.broken: list[Path] = []
        """Recordings that could not be written to their end."""
        self.failure: OfaError | None = None
        """Why the run ended before its time."""
        self.loop: asyncio.AbstractEventLoop | None = None
        self.heartbeat: Callable[[], object] = lambda: None
        """Called twice a second."""
        self.suspension: Suspension | None = None
        """In a terminal."""
        self.sms_box = Box(0, 0, 0, 0)
        self.log_back = self.log_most = 0
        """How many lines of the log are newer than those that show, and may be."""
        self.stream_boxes: dict[int, Box] = {}
        self.sent_command = manual.TicCommand()
        self._message: tuple[str, int] | None = None
        self._message_until = 0.0
        self._polls = 0
        self._drawn_frames: list[int] = []
        self._painted = dict.fromkeys((*TEXT_EVERY, "doom"), -99)
        self._display_due = False
        self._held_back = False
        """Something was due, but the link had enough to do."""
        self._unreported = 0
        """Bytes written since the last request for a report."""
        self._bindings = BindingsMap(self._make_bindings())

    def _handle_exception(self, error: Exception) -> None:
        """A dialog that fails, or what works for one in the background, is ended and the run goes on; what fails
        beneath ends the app."""
        if _in_dialog(active_message_pump.get(None)) or isinstance(error, WorkerFailed):
            self._end_dialogs(error)
        else:
            super()._handle_exception(error)

    async def run_action(
        self,
        action: str | ActionParseResult,
        default_namespace: DOMNode | None = None,
        namespaces: Mapping[str, DOMNode] | None = None,
    ) -> bool:
        """A dialog's keys are looked up by the app, which would end with what they do."""
        try:
            return await super().run_action(action, default_namespace, namespaces)
        except Exception as error:
            if not _in_dialog(default_namespace):
                raise
            self._end_dialogs(error)
            return True

    def _end_dialogs(self, error: Exception) -> None:
        log = write_crash_log(error)
        self.call_later(self._close_dialogs)
        self.say(f"a dialog failed ({type(error).__name__}: {error}) and was closed; please report it with {log}",
                 error=True)  # fmt: skip

    def _close_dialogs(self) -> None:
        while len(self.screen_stack) > 1:
            self.pop_screen()
        self.repaint_all(everything=True)

    def _fatal_error(self) -> None:
        """Textual would print a traceback here; the session raises the error once the terminal is restored."""
        self.on_exit_app()
        self._close_messages_no_wait()

    def on_exit_app(self) -> None:
        """Leaves an empty screen: one without a second, as of the Linux console or of screen, keeps what it shows."""
        if self._driver is not None and not self.is_headless:
            self._driver.write("\x1b[m\x1b[2J\x1b[H")

    # --- set-up ---------------------------------------------------------------------------------------------

    def _make_bindings(self) -> list[Binding]:
        return [
            Binding(
                ",".join(textual_key(key) for key in action.keys),
                f"perform({action.name!r})",
                action.help,
                show=False,
                priority=action.name in ALWAYS,
                id=action.name,
            )
            for action in self.actions
            if action.keys
        ]

    def missing(self, action: Action) -> str:
        """The first of the action's needs that this run has not; empty where the action can do something."""
        offered = {
            "doom": bool(self.engine.info.games),
            "games": self.engine.info.games > 1,
            "streams": self.engine.info.streams > 1,
            "recorder": self.options.recorder is not None,
            "checkpoints": self.options.checkpoint is not None,
            "live": not self.model.replay,
            "replay": self.replay is not None,
        }
        return next((need for need in action.needs if not offered[need]), "")

    def key(self, name: str) -> str:
        """The key of an action as messages name it."""
        keys = next(action.keys for action in self.actions if action.name == name)
        return status.show_key(keys[0]) if keys else f"{name} in the command palette"

    def available(self, action: Action) -> bool:
        """Whether the action can do anything in this run."""
        return not self.missing(action)

    def get_default_screen(self) -> Screen[Any]:
        painters = {
            "header": self._paint_header,
            "tiles": lambda grid: status.paint_tiles(grid, self.model, self.colours, self.kind),
            "doom": self._paint_doom,
            "sms": self._paint_sms,
            "loss": self._paint_loss,
            "serve": self._paint_serve,
            "player": self._paint_player,
            "log": self._paint_log,
            "footer": self._paint_footer,
        }
        if self.replay is not None:
            painters["replay"] = partial(replay.paint_replay, engine=self.replay, colours=lambda: self.colours)
        self.panes = {
            name: CellPane(name, paint, self.depth, lambda: (self.colours.text, self.colours.background))
            for name, paint in painters.items()
        }
        self.panes["doom"].tolerance = lambda: self.flow.tolerance
        prompt = Input(placeholder="prompt: Enter sends, Esc leaves", id="prompt", select_on_focus=False)
        prompt.display = False
        self.board = Board([*self.panes.values(), prompt], self.boxes)
        return self.board

    def on_mount(self) -> None:
        self.loop = asyncio.get_running_loop()
        if isinstance(self._driver, LinuxDriver):
            self.suspension = Suspension(self, self._driver)
        self.start_polling()
        self._request_report()
        if self.options.record_from_start and self.options.recorder:
            self.do.perform("record")
        for note in self.engine.info.notes[:1]:
            self.say(note)
        if self.options.introduce:
            self.call_after_refresh(self.do.perform, "guide")

    def start_polling(self) -> None:
        """Polls the engine and paints, from now on."""
        self.set_interval(POLL_S, self._tick)

    def on_unmount(self) -> None:
        if self.suspension is not None:
            self.suspension.close()

    def apply_theme(self) -> None:
        """Gives Textual's own widgets (dialogs, prompt, palette) the theme's colours."""
        theme = self.colours
        self.register_theme(
            TextualTheme(
                name=f"ofa-{theme.name}",
                primary=to_hex(theme.border_active),
                secondary=to_hex(theme.train),
                accent=to_hex(theme.key),
                foreground=to_hex(theme.text),
                background=to_hex(theme.background),
                surface=to_hex(theme.panel),
                panel=to_hex(theme.panel),
                warning=to_hex(theme.warning),
                error=to_hex(theme.error),
                dark=theme.dark,
            )
        )
        self.theme = f"ofa-{theme.name}"

    # --- geometry -------------------------------------------------------------------------------------------

    @property
    def kind(self) -> SizeClass:
        return size_class(*self.size)

    def boxes(self, width: int, height: int) -> dict[str, Box]:
        """Boxes of all visible panes, and of the prompt line while one is written."""
        bar, games = self.replay is not None, self.engine.info.games > 0
        boxes = arrange(width, height, zoom=self.zoom, single=self.active, bar=bar, games=games)
        boxes = with_footer_of(boxes, len(status.footer_lines(self._footer_message(), width, playing=self.playing)))
        if self.prompting:
            home = boxes.get("serve")
            if home is None:
                boxes["prompt"] = Box(0, max(0, height - 2), width, 1)
            else:
                sides = self._frame("serve").sides
                boxes["prompt"] = Box(home.x + sides, home.y + home.height - 1 - sides, home.width - 2 * sides, 1)
        return boxes

    def _frame(self, pane: str) -> Frame:
        alone = self.zoom == pane or self.kind is SizeClass.SINGLE
        return frame(self.kind, pane, alone)

    def relayout(self) -> None:
        """Places the panes again and paints all."""
        self.board.rearrange()
        self.call_after_refresh(self.repaint_all)

    def repaint_all(self, *, everything: bool = False) -> None:
        self.paint(*self.panes, everything=everything)

    def paint(self, *names: str, everything: bool = False) -> bool:
        """Paints these panes and shows the rows that changed; False if none did."""
        direct = supported() and not self.prompting and len(self.screen_stack) == 1
        boxes = self.boxes(*self.size)
        update, changed = CellsUpdate(), False
        for name in names:
            if name not in self.panes:
                continue
            pane, box = self.panes[name], boxes.get(name)
            rows = pane.repaint(everything=everything)
            if not rows or box is None:
                continue
            changed = True
            if not direct or tuple(pane.size) != (box.width, box.height):
                pane.refresh_rows(rows)
                continue
            update.add(pane.changes(box.x, box.y))
        if update:
            self._unreported += update.size
            self._display(self.screen, cast(RenderableType, update))
        return changed

    # --- the loop -------------------------------------------------------------------------------------------

    def _tick(self) -> None:
        now = time.monotonic()
        self._polls += 1
        before = self.model.state
        try:
            snapshot = handlers.absorb_news(self)
        except OfaError as error:
            self.failure = error
            self.do.end(error.exit_code)
            return
        if snapshot.state == "aborted" and self.failure is None:
            self.failure = AbortedError(snapshot.message or "the kernel stopped itself")
            self._fit_footer()
        if self.replay is not None and (news := replay_news(self.replay, before, snapshot)):
            self.say(news)
        if not self._polls % HEARTBEAT_POLLS:
            self.heartbeat()
        if self.playing:
            self.send_controls(now)
        if self._message and now > self._message_until:
            self.clear_message()
        self._repaint_due(now)

    def _take_snapshots(self) -> Snapshot:
        """Gives the model what is new; the newest snapshot."""
        snapshots = [self.engine.poll()] if self.replay is None else self.replay.passage()
        for snapshot in snapshots:
            self.model.absorb(snapshot)
            self.games.absorb(snapshot)
        return snapshots[-1]

    def show_anew(self) -> None:
        """After a jump in a replay: the panes show what led to where it went, and nothing else."""
        before = self.model
        self.model = RunModel(self.engine.info)
        self.model.show_game(before.game)
        self.model.stream = before.stream
        self.failure = None
        self._take_snapshots()
        self.repaint_all()

    def _repaint_due(self, now: float) -> None:
        """Paints what is due, unless the link still has enough to do: then the newest state waits."""
        modal = len(self.screen_stack) > 1
        if modal and self._polls % MODAL_POLLS:
            return
        away = self.suspension is not None and self.suspension.away
        self._held_back = not self._display_due and not self.flow.ready(now)
        if away or self._display_due or self._held_back:
            return
        slow = 35 if self.options.reduced_motion else 1
        due = [name for name, polls in TEXT_EVERY.items() if self._polls - self._painted[name] >= max(slow, polls)]
        shown = self.model.frames if self.games.wall else [self.model.frame]
        numbers = [frame.number for frame in shown if frame is not None]
        still = numbers == self._drawn_frames
        pause = (3 if self.flow.tolerance else 18) if still else 9 if self.options.reduced_motion else 1
        if self._polls - self._painted["doom"] >= pause:
            self._drawn_frames = numbers
            due.append("doom")
        for name in due:
            self._painted[name] = self._polls
        if self.flow.wants_probe():
            self._request_report()
        self._display_due = True
        if not self.paint(*due):
            self._display_due = False

    def post_display_hook(self) -> None:
        if getattr(self, "_display_due", False):
            self._display_due = False
            self._request_report(self._unreported or None)
            self._unreported = 0

    def _request_report(self, size: int | None = 0) -> None:
        """Asks the terminal to report when it has read all that was written so far, a frame of `size` bytes last.

        None: of as many as Textual makes of it.
        """
        now = time.monotonic()
        self.flow.sent(now, size)
        if self.is_headless or self._driver is None or self.is_web:
            self.flow.acknowledged(now)
        else:
            self._driver.write("\x1b[6n")

    def on_cursor_position(self, _event: events.CursorPosition) -> None:
        now = time.monotonic()
        self.flow.acknowledged(now)
        if self._held_back:
            self._repaint_due(now)

    def say(self, text: str, *, error: bool = False) -> None:
        """Shows a sentence in the footer for a while."""
        self._message = (text, self.colours.error if error else self.colours.warning)
        self._message_until = time.monotonic() + MESSAGE_S
        self.model.log.say(text, self.model.snapshot.seconds if self.model.snapshot else 0.0, error=error)
        if self.is_running and hasattr(self, "panes"):
            self._fit_footer()
            self.paint("footer")

    def clear_message(self) -> None:
        self._message = None
        self._fit_footer()

    def _fit_footer(self) -> None:
        """Gives the footer as many rows as its message takes."""
        footer = self.boxes(*self.size).get("footer")
        if footer is not None and footer.height != self.panes["footer"].size.height:
            self.relayout()

    def post(self, event: Event) -> bool:
        """Hands an event to the engine; what it refuses is said in the footer."""
        try:
            self.engine.post(event)
        except OfaError as error:
            self.say(str(error), error=True)
            return False
        return True

    # --- painting -------------------------------------------------------------------------------------------

    def behaviour(self) -> str:
        """Name of the scripted player's behaviour in the newest frame."""
        picture = self.model.frame
        index = int(picture.status["behaviour"]) if picture is not None else 0
        return self.behaviours[index] if index < len(self.behaviours) else f"behaviour {index}"

    def _is_active(self, pane: str) -> bool:
        return self.active == pane

    def _paint_header(self, grid: Grid) -> None:
        now = time.monotonic()
        still = self.model.state in ("paused", "stopped", "aborted") or self.model.games_held
        still |= self.model.replay and self.model.finished
        if still or len(self.screen_stack) > 1:
            # Few frames are sent now, which says nothing of the link.
            self.link_counts_from = now + RATE_WINDOW_S
        elif now >= self.link_counts_from:
            self.link_fps = self.flow.rate(now)
        origin = self.replay.origin if self.replay is not None else None
        state = status.HeaderState(self.link_fps, self.flow.open_loop, self.recorder is not None, self.playing, origin)
        status.paint_header(grid, self.model, self.colours, self.kind, state)

    def _footer_message(self) -> list[tuple[str, int]]:
        """Coloured pieces of what the footer says in place of keys."""
        if self._message:
            return [self._message]
        if self.model.state == "aborted":
            colours = self.colours
            return [(self.key("quit"), colours.key), (" quits  ", colours.muted), (str(self.failure), colours.error)]
        return []

    def _paint_footer(self, grid: Grid) -> None:
        shown = [a for a in self.actions if a.label and a.keys and self.available(a)]
        status.paint_footer(grid, self.colours, shown, self._footer_message(), playing=self.playing)

    def _paint_doom(self, grid: Grid) -> None:
        style = doom.PictureStyle(self.depth, self.gamma_step, self.quadrants, self.flow.tolerance, self.blocks)
        place, active = self._frame("doom"), self._is_active("doom")
        name = "manual" if self.playing else self.behaviour()
        inner = doom.paint_doom(grid, place, self.model, self.colours, active, style, name)
        if inner is not None and self.games.wall:
            wall.paint_wall(grid, inner, self.model, self.colours, style)
        elif inner is not None:
            doom.paint_picture(grid, inner, self.model, style)

    def _paint_sms(self, grid: Grid) -> None:
        zoomed = self.zoom == "sms" or self.kind is SizeClass.SINGLE
        self.sms_box = sms.paint_sms(
            grid, self._frame("sms"), self.model, self.colours, self._is_active("sms"), self.selected_sm, zoomed
        )

    def _paint_loss(self, grid: Grid) -> None:
        loss.paint_loss(grid, self._frame("loss"), self.model, self.colours, self.plot, self._is_active("loss"))

    def _paint_serve(self, grid: Grid) -> None:
        place, active, rows = self._frame("serve"), self._is_active("serve"), int(self.prompting)
        gap = self.kind is SizeClass.WIDE or self.zoom == "serve"
        if self.engine.info.streams == 1:
            serve.paint_serve(grid, place, self.model, self.colours, active, prompt_rows=rows, gap=gap)
        else:
            self.stream_boxes = streams.paint_streams(
                grid, place, self.model, self.colours, active, prompt_rows=rows, gap=gap)

    def _paint_player(self, grid: Grid) -> None:
        player.paint_player(
            grid,
            self._frame("player"),
            self.model,
            self.colours,
            self._is_active("player"),
            self.behaviour(),
            self.playing,
            self.holds.latch,
        )

    def _paint_log(self, grid: Grid) -> None:
        self.log_most = log.paint_log(
            grid, self._frame("log"), self.model.log, self.colours, self._is_active("log"), self.log_back)

    # --- input ----------------------------------------------------------------------------------------------

    async def action_perform(self, name: str) -> None:
        self.do.perform(name)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys of the table rest while a dialog is open, a prompt is written or a person plays, but for a few."""
        if action != "perform" or parameters[0] in ALWAYS:
            return True
        if len(self.screen_stack) > 1:
            return False
        if self.prompting:
            return parameters == ("back",)
        return not self.playing or any(action.playing for action in self.actions if action.name == parameters[0])

    def on_key(self, event: events.Key) -> None:
        """While a person plays, keys are controls."""
        if not self.playing or len(self.screen_stack) > 1:
            return
        if event.key == "escape":
            self.do.give_controls_back()
        elif not self.holds.press(event.key, time.monotonic()):
            return
        else:
            self.send_controls(time.monotonic())
        event.prevent_default()
        event.stop()

    def send_controls(self, now: float) -> None:
        command = self.holds.command(now)
        if command != self.sent_command:
            self.sent_command = command
            self.post(Event("keys", "tic", target=self.model.game, args=command.as_args()))

    def on_click(self, event: events.Click) -> None:
        """A click makes a pane the active one; on an SM's cell it selects that SM."""
        widget = event.widget
        if not isinstance(widget, CellPane) or widget.id not in MAXIMISED:
            return
        self.active = str(widget.id)
        if widget.id == "sms":
            box = self.sms_box
            plan = sms.plan_cells(self.model.info.n_sms, box.width, box.height, self.colours.shaded)
            x, y = event.x - box.x, event.y - box.y
            if 0 <= x < box.width and 0 <= y < box.height:
                self.selected_sm = sms.cell_at(plan, self.model.info.n_sms, x, y)
        if widget.id == "serve":
            self.model.stream = streams.stream_at(self.stream_boxes, event.x, event.y, self.model.stream)
        self.repaint_all()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        text = event.value
        self.do.close_prompt()
        if text.strip() and self.post(Event("prompt", "token", target=self.model.stream, text=text)):
            self.say(f"prompt sent{self.to_stream()}: its answer starts with the next token")

    def to_stream(self) -> str:
        """Where a prompt goes, as sentences say it."""
        return f" to stream {self.model.stream}" if self.engine.info.streams > 1 else ""

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        for action in sorted(self.actions, key=lambda action: GROUPS.index(action.group)):
            if action.palette and self.available(action):
                yield SystemCommand(action.help, ", ".join(action.keys), partial(self.do.perform, action.name))
        for name in self.themes:
            yield SystemCommand(f"theme {name}", self.themes[name].summary, partial(self.do.use_theme, name))
