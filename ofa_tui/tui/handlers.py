"""What each action of the table does: `do_<name>` for every name."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from textual.widgets import Input

from ofa_tui import abi, locations
from ofa_tui.engine.protocol import Event, Saved, Snapshot
from ofa_tui.errors import AbortedError, OfaError
from ofa_tui.installation import command
from ofa_tui.record.files import make_folder, make_new_file, write_whole
from ofa_tui.tui.dialogs import HelpScreen, Palette, QuitScreen, RoleScreen
from ofa_tui.tui.doom_handlers import DoomHandlers
from ofa_tui.tui.guide import GuideScreen
from ofa_tui.tui.layout import Box, SizeClass
from ofa_tui.tui.options import Recorder, short_path
from ofa_tui.tui.panes import sms
from ofa_tui.tui.panes.doom import why_no_doom
from ofa_tui.tui.picture import GAMMAS, HALF_BLOCK_COLUMNS
from ofa_tui.tui.remembered import remember_introduction
from ofa_tui.tui.replay_handlers import ReplayHandlers
from ofa_tui.tui.theme import for_depth

if TYPE_CHECKING:
    from ofa_tui.tui.app import OfaApp


ADVICE = "start in a folder that can be written"
LACKS = {
    "live": "a replay goes the way the run went; only a live run can be steered",
    "replay": "a live run goes its own way; only a replay can be moved in time",
    "doom": "",
    "games": "this is the only game; --dooms N runs several",
    "streams": "this is the only stream of text; --streams N tells several",
    "recorder": "only a live run can be recorded",
    "checkpoints": "only a live run writes checkpoints",
}
"""What is said where a run has not what an action needs (Action.needs); of Doom the run itself knows why."""


def say_saved(app: OfaApp, saved: Saved) -> None:
    if saved.error:
        app.say(saved.error, error=True)
        return
    folder = Path(saved.path).parent
    app.saved.append(folder)
    app.say(f"checkpoint of step {saved.step:,} in {short_path(folder)}")


def absorb_news(app: OfaApp) -> Snapshot:
    """Polls the engine; model, footer and recording get what is new, which is returned. Raises OfaError."""
    snapshot = app._take_snapshots()
    for saved in snapshot.saved:
        say_saved(app, saved)
    feed_recorder(app, snapshot)
    return snapshot


def feed_recorder(app: OfaApp, snapshot: Snapshot) -> None:
    """Gives the snapshot, which the model has, to the recording; one that fails is given up and the reason said."""
    recorder = app.recorder
    if recorder is None:
        return
    if app.recorder_is_new:
        app.recorder_is_new = False
        snapshot = replace(snapshot, applied=list(app.model.applied))
    try:
        recorder.write(snapshot)
    except (OfaError, OSError) as error:
        app.recorder = None
        _give_up(app, recorder, error)
        with suppress(OfaError, OSError):  # there may be room for why it ends
            recorder.close("failed", str(error))


def close_recording(app: OfaApp, exit_reason: str, message: str = "") -> None:
    """Ends the recording, if there is one, and says where it is, or why it is not whole."""
    recorder, app.recorder = app.recorder, None
    if recorder is None:
        return
    try:
        recorder.close(exit_reason, message)
        app.say(f"recorded in {short_path(recorder.folder)}")
    except (OfaError, OSError) as error:
        _give_up(app, recorder, error)


def _give_up(app: OfaApp, recorder: Recorder, error: Exception) -> None:
    app.say(f"recording stopped: {error}", error=True)
    app.saved.remove(recorder.folder)
    app.broken.append(recorder.folder)


class Handlers(DoomHandlers, ReplayHandlers):
    """The actions' methods, over the app they act on."""

    def __init__(self, app: OfaApp) -> None:
        self._app = app

    def perform(self, name: str) -> None:
        """Does the action called `name`, if this run has it."""
        action = next(action for action in self._app.actions if action.name == name)
        if missing := self._app.missing(action):
            self._app.say(LACKS[missing] or why_no_doom(self._app.engine.info))
        else:
            getattr(self, f"do_{name}")()

    # --- run ------------------------------------------------------------------------------------------------

    def do_pause(self) -> None:
        app = self._app
        if app.replay is not None:
            self.pause_replay()
            return
        if app.model.games_held:
            app.engine.hold_games(False)
        pause = app.model.state != "paused" and not app.model.games_held
        app.engine.pause(pause)
        app.say(f"paused: {app.key('pause')} goes on" if pause else "going on")

    def _move_sm(self, source: int, target: int) -> None:
        """Moves the last SM of `source` (the first, on the way back to training) to `target`."""
        app = self._app
        found = [int(sm) for sm in (app.model.roles == source).nonzero()[0]]
        names = abi.ROLES
        if not found:
            app.say(f"no SM has the role {names[source]}", error=True)
            return
        sm = found[0] if target == abi.TRAIN else found[-1]
        if app.post(Event("set_role", "step", target=sm, args=(target,))):
            app.say(f"SM {sm}: {names[source]} → {names[target]}, at its next task boundary")

    def do_train_to_serve(self) -> None:
        self._move_sm(abi.TRAIN, abi.SERVE)

    def do_serve_to_train(self) -> None:
        self._move_sm(abi.SERVE, abi.TRAIN)

    def do_train_to_doom(self) -> None:
        self._move_sm(abi.TRAIN, abi.DOOM)

    def do_doom_to_train(self) -> None:
        self._move_sm(abi.DOOM, abi.TRAIN)

    def do_prompt(self) -> None:
        app = self._app
        app.prompting = True
        prompt = app.query_one("#prompt", Input)
        prompt.placeholder = f"prompt{app.to_stream()}: Enter sends, Esc leaves"
        prompt.display = True
        app.screen.set_focus(prompt)
        app.relayout()

    def close_prompt(self) -> None:
        app = self._app
        app.prompting = False
        prompt = app.query_one("#prompt", Input)
        prompt.value = ""
        prompt.display = False
        app.screen.set_focus(None)
        app.relayout()

    def do_record(self) -> None:
        app = self._app
        if app.recorder is not None:
            close_recording(app, "recording stopped")
        else:
            assert app.options.recorder is not None  # else the action is not available
            try:
                app.recorder = app.options.recorder()
                app.recorder_is_new = True
                app.saved.append(app.recorder.folder)
                app.say(f"recording into {app.recorder.folder.name}; {app.key('record')} stops")
            except (OfaError, OSError) as error:
                app.say(f"cannot record: {error}", error=True)
        app.paint("header")

    def do_checkpoint(self) -> None:
        assert self._app.options.checkpoint is not None  # else the action is not available
        self._app.options.checkpoint()
        self._app.say("a checkpoint is written after this step")

    # --- panes ----------------------------------------------------------------------------------------------

    def _zoom(self, pane: str) -> None:
        app = self._app
        if app.kind is SizeClass.SINGLE:
            app.zoom = None
            app.active = pane
        else:
            app.zoom = None if app.zoom == pane else pane
            app.active = pane
        app.relayout()

    def do_zoom_doom(self) -> None:
        self._zoom("doom")

    def do_zoom_sms(self) -> None:
        self._zoom("sms")

    def do_zoom_loss(self) -> None:
        self._zoom("loss")

    def do_zoom_serve(self) -> None:
        self._zoom("serve")

    def do_zoom_player(self) -> None:
        self._zoom("player")

    def do_zoom_log(self) -> None:
        self._zoom("log")

    def select_stream(self, stream: int) -> None:
        app = self._app
        app.model.stream = stream % app.engine.info.streams
        app.paint("serve")

    def do_previous_stream(self) -> None:
        self.select_stream(self._app.model.stream - 1)

    def do_next_stream(self) -> None:
        self.select_stream(self._app.model.stream + 1)

    def _arrow(self, dx: int, dy: int) -> None:
        app = self._app
        if app.active == "sms":
            box = app.sms_box
            count = app.model.info.n_sms
            plan = sms.plan_cells(count, box.width, box.height, app.colours.shaded)
            app.selected_sm = sms.moved(plan, count, app.selected_sm, dx, dy)
            app.paint("sms")
        elif app.active == "loss" and app.model.losses.count:
            first, last = float(app.model.losses.steps[0]), float(app.model.losses.steps[-1])
            if dx:
                app.plot = app.plot.panned(dx / 4, first, last)
            else:
                app.plot = app.plot.zoomed(2.0 if dy > 0 else 0.5, first, last)
            app.paint("loss")
        elif app.active == "serve":
            self.select_stream(app.model.stream + (dx or dy))
        elif app.active == "log":
            app.log_back = min(app.log_most, max(0, app.log_back - dy))
            app.paint("log")
        elif app.active == "doom" and app.games.maps:
            self.pan_map(dx, -dy)

    def do_left(self) -> None:
        self._arrow(-1, 0)

    def do_right(self) -> None:
        self._arrow(1, 0)

    def do_up(self) -> None:
        self._arrow(0, -1)

    def do_down(self) -> None:
        self._arrow(0, 1)

    def do_choose(self) -> None:
        app = self._app
        if app.active != "sms":
            return
        sm = app.selected_sm
        if sm is None or sm >= len(app.model.roles):
            app.say("select an SM with the arrow keys first")
            return
        roles = [abi.TRAIN, abi.SERVE, *([abi.DOOM] if app.engine.info.games else []), abi.IDLE]

        def chosen(role: object) -> None:
            if role == app.model.roles[sm]:
                app.say(f"SM {sm} already has the role {abi.ROLES[int(app.model.roles[sm])]}")
            elif isinstance(role, int) and app.post(Event("set_role", "step", target=sm, args=(role,))):
                app.say(f"SM {sm} → {abi.ROLES[role]}, at its next task boundary")

        app.push_screen(RoleScreen(sm, int(app.model.roles[sm]), roles, app.colours), chosen)

    def do_back(self) -> None:
        """Undoes the nearest of: prompt, selection, loss window, zoom."""
        app = self._app
        if app.prompting:
            self.close_prompt()
        elif app.active == "sms" and app.selected_sm is not None:
            app.selected_sm = None
            app.repaint_all()
        elif app.active == "loss" and app.plot.span:
            app.plot = replace(app.plot, span=0.0, end=0.0)
            app.repaint_all()
        elif app.active == "log" and app.log_back:
            app.log_back = 0
            app.paint("log")
        elif app.zoom:
            app.zoom = None
            app.relayout()

    # --- view -----------------------------------------------------------------------------------------------

    def do_log_y(self) -> None:
        app = self._app
        app.plot = replace(app.plot, log=not app.plot.log)
        app.paint("loss")

    def do_gamma(self) -> None:
        app = self._app
        app.gamma_step = (app.gamma_step + 1) % len(GAMMAS)
        app.say(f"gamma {1 / GAMMAS[app.gamma_step]:.2g}")
        app.paint("doom")

    def do_blocks(self) -> None:
        app = self._app
        box = app.boxes(*app.size).get("doom")
        now = app.quadrants if app.quadrants is not None else box is not None and box.width < HALF_BLOCK_COLUMNS
        app.quadrants = not now
        app.say("quarter blocks" if app.quadrants else "half blocks")
        app.paint("doom")

    def do_theme(self) -> None:
        app = self._app
        names = list(app.themes)
        self.use_theme(names[(names.index(app.colours.name) + 1) % len(names)])

    def use_theme(self, name: str) -> None:
        app = self._app
        app.colours = for_depth(app.themes[name], app.depth)
        app.apply_theme()
        app.say(f"theme {name}")
        app.repaint_all(everything=True)

    # --- program --------------------------------------------------------------------------------------------

    def do_screenshot(self) -> None:
        from ofa_tui.tui.screenshot import encode_png, screen_grid  # Pillow: 90 ms, which no start needs to wait for

        self._save(".png", partial(encode_png, screen_grid(self._app)))

    def do_screenshot_svg(self) -> None:
        text = self._app.export_screenshot(title="ofa-tui", simplify=True)
        self._save(".svg", text.encode)

    def _save(self, suffix: str, encode: Callable[[], bytes]) -> None:
        """Encodes and writes a screenshot in a thread: that takes longer than a frame may."""
        app = self._app
        path = app.options.screenshots / f"ofa-tui-{time.strftime('%Y-%m-%d-%H%M%S')}{suffix}"
        if path in app.saved:  # of this very second
            return
        try:
            make_folder(path.parent, ADVICE)
            path = make_new_file(path, ADVICE)
        except OfaError as error:
            app.say(str(error), error=True)
            return
        # Named at once, for a person who quits at once: the thread ends before the program does.
        app.saved.append(path)
        app.run_worker(self._finish_saving(path, encode))

    async def _finish_saving(self, path: Path, encode: Callable[[], bytes]) -> None:
        app = self._app
        try:
            await asyncio.to_thread(lambda: write_whole(path, encode(), ADVICE))
        except OfaError as error:
            app.saved.remove(path)
            with suppress(OSError):
                path.unlink()
            app.say(str(error), error=True)
        else:
            app.say(f"saved {short_path(path)}")

    def do_help(self) -> None:
        app = self._app
        notes = []
        if app.engine.info.games and not app.model.replay:
            notes.append(
                "While you play: WASD and arrows move and turn, f or space fires, Enter uses, 1-7 choose weapons, "
                f"l latches keys (press again to release), {app.key('automap')} shows the map, "
                "Esc gives the controls back."
            )
        notes.append(
            "fps link: pictures a second that reach this terminal.\n"
            "1 launch: one program, started once, does all the work."
        )
        notes.append(f"Other keys and settings: {locations.preferences()}, see {command()} keys. A slow link: ssh -C.")
        shown = [a for a in app.actions if app.available(a)]
        app.push_screen(HelpScreen(shown, app.colours, notes), lambda again: self.do_guide() if again else None)

    def do_guide(self) -> None:
        app, before = self._app, self._app.active
        app.zoom = None

        def point(pane: str) -> Box | None:
            app.active = pane
            app.relayout()
            return app.boxes(*app.size).get(pane)

        def ended(to_help: object) -> None:
            point(before)
            if to_help:
                self.do_help()

        remember_introduction()
        shown = [a for a in app.actions if app.available(a)]
        app.push_screen(GuideScreen(shown, app.colours, point, replay=app.model.replay), ended)

    def do_palette(self) -> None:
        self._app.push_screen(Palette())

    def do_quit(self) -> None:
        app = self._app
        if app.model.finished:
            self.leave()
            return
        question = "Training is not finished. Stop this run?"
        if app.model.replay:
            question = "The replay is not at its end. Leave it?"
        if app.replay is not None and app.replay.growing:
            question = "Leave? The run itself goes on."
        app.push_screen(QuitScreen(question, app.colours), lambda answer: self.leave() if answer else None)

    def do_suspend(self) -> None:
        app = self._app
        if app.suspension is None:
            app.say("only in a terminal can this program be stopped")
        else:
            app.suspension.stop()

    def do_quit_now(self) -> None:
        self.leave()

    def leave(self) -> None:
        """Ends the app with the run's exit code: 3 after an abort, else 0."""
        self.end(AbortedError.exit_code if self._app.model.state == "aborted" else 0)

    def end(self, code: int) -> None:
        """Ends the app with an exit code, once the terminal has answered what it was asked."""
        app = self._app
        out = partial(app.exit, code, return_code=code)
        if app.suspension is None:
            out()
        else:
            app.suspension.leave(out)
