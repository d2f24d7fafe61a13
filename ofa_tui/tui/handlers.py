"""What each action of the table does: `do_<name>` for every name."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from textual.widgets import Input

from ofa_tui import abi
from ofa_tui.engine.protocol import Event, Snapshot
from ofa_tui.errors import OfaError
from ofa_tui.tui import manual
from ofa_tui.tui.dialogs import HelpScreen, QuitScreen, RoleScreen
from ofa_tui.tui.layout import SizeClass
from ofa_tui.tui.panes import sms
from ofa_tui.tui.picture import GAMMAS
from ofa_tui.tui.screenshot import save_png, save_svg

if TYPE_CHECKING:
    from ofa_tui.tui.app import OfaApp


def behaviour_names() -> tuple[str, ...]:
    """Names of the scripted player's behaviours, by index."""
    try:
        from ofa_tui.doom.players import BEHAVIOURS
    except ImportError:
        return ("explore", "manual")
    return tuple(BEHAVIOURS)


def feed_recorder(app: OfaApp, snapshot: Snapshot) -> None:
    """Gives the snapshot to the recording; one that fails is closed and the reason said."""
    recorder = app.recorder
    if recorder is None:
        return
    try:
        recorder.write(snapshot)
    except (OfaError, OSError) as error:
        app.recorder = None
        app.say(f"recording stopped: {error}", error=True)


class Handlers:
    """Mixed into the app; only its methods here are reached by keys."""

    def perform(self: Any, name: str) -> None:
        """Does the action called `name`."""
        getattr(self, f"do_{name}")()

    # --- run ------------------------------------------------------------------------------------------------

    def do_pause(self: Any) -> None:
        pause = self.model.state != "paused"
        self.engine.pause(pause)
        self.say("paused: space goes on" if pause else "going on")

    def _move_sm(self: Any, source: int, target: int) -> None:
        """Moves the last SM of `source` (the first, on the way back to training) to `target`."""
        found = [int(sm) for sm in (self.model.roles == source).nonzero()[0]]
        names = abi.ROLES
        if not found:
            self.say(f"no SM has the role {names[source]}", error=True)
            return
        sm = found[0] if target == abi.TRAIN else found[-1]
        if self.post(Event("set_role", "step", target=sm, args=(target,))):
            self.say(f"SM {sm}: {names[source]} → {names[target]}, at its next task boundary")

    def do_train_to_serve(self: Any) -> None:
        self._move_sm(abi.TRAIN, abi.SERVE)

    def do_serve_to_train(self: Any) -> None:
        self._move_sm(abi.SERVE, abi.TRAIN)

    def do_train_to_doom(self: Any) -> None:
        if self.engine.info.games:
            self._move_sm(abi.TRAIN, abi.DOOM)

    def do_doom_to_train(self: Any) -> None:
        if self.engine.info.games:
            self._move_sm(abi.DOOM, abi.TRAIN)

    def do_prompt(self: Any) -> None:
        self.prompting = True
        prompt = self.query_one("#prompt", Input)
        prompt.display = True
        prompt.focus()
        self.relayout()

    def close_prompt(self: Any) -> None:
        self.prompting = False
        prompt = self.query_one("#prompt", Input)
        prompt.value = ""
        prompt.display = False
        self.screen.set_focus(None)
        self.relayout()

    def do_record(self: Any) -> None:
        if self.options.recorder is None:
            return
        if self.recorder is not None:
            recorder, self.recorder = self.recorder, None
            try:
                recorder.close()
                self.say("recording closed")
            except (OfaError, OSError) as error:
                self.say(f"recording: {error}", error=True)
        else:
            try:
                self.recorder = self.options.recorder()
                self.say("recording")
            except (OfaError, OSError) as error:
                self.say(f"cannot record: {error}", error=True)
        self.panes["header"].repaint()

    # --- Doom -----------------------------------------------------------------------------------------------

    def _set_behaviour(self: Any, index: int) -> bool:
        return bool(self.post(Event("behaviour", "tic", args=(index,))))

    def do_explore(self: Any) -> None:
        if self.engine.info.games and "explore" in self.behaviours:
            self._set_behaviour(self.behaviours.index("explore"))
            self.say("the scripted player explores")

    def do_manual(self: Any) -> None:
        if not self.engine.info.games or self.model.frame is None:
            return
        self.behaviour_before = int(self.model.frame.status["behaviour"])
        if "manual" in self.behaviours and not self._set_behaviour(self.behaviours.index("manual")):
            return
        self.playing = True
        self.holds = manual.KeyHolds()
        self._sent_command = manual.TicCommand()
        self.say("you play: WASD and arrows, f fires, Enter uses, digits choose weapons, Esc gives the controls back")
        self.repaint_all()

    def give_controls_back(self: Any) -> None:
        self.playing = False
        self.holds.release_all()
        self._send_controls(time.monotonic())
        back = self.behaviour_before
        if back < len(self.behaviours) and self.behaviours[back] == "manual":
            back = 0
        self._set_behaviour(back)
        self.say(f"the scripted player has the controls ({self.behaviours[back]})")
        self.repaint_all()

    # --- panes ----------------------------------------------------------------------------------------------

    def _zoom(self: Any, pane: str) -> None:
        if self.kind is SizeClass.SINGLE:
            self.zoom = None
            self.active = pane
        else:
            self.zoom = None if self.zoom == pane else pane
            self.active = pane
        self.relayout()

    def do_zoom_doom(self: Any) -> None:
        self._zoom("doom")

    def do_zoom_sms(self: Any) -> None:
        self._zoom("sms")

    def do_zoom_loss(self: Any) -> None:
        self._zoom("loss")

    def do_zoom_serve(self: Any) -> None:
        self._zoom("serve")

    def do_zoom_player(self: Any) -> None:
        self._zoom("player")

    def _arrow(self: Any, dx: int, dy: int) -> None:
        if self.active == "sms":
            box = self._sms_box
            count = self.model.info.n_sms
            plan = sms.plan_cells(count, box.width, box.height)
            self.selected_sm = sms.moved(plan, count, self.selected_sm, dx, dy)
            self.panes["sms"].repaint()
        elif self.active == "loss" and self.model.losses.count:
            first, last = float(self.model.losses.steps[0]), float(self.model.losses.steps[-1])
            if dx:
                self.plot = self.plot.panned(dx / 4, first, last)
            else:
                self.plot = self.plot.zoomed(2.0 if dy > 0 else 0.5, first, last)
            self.panes["loss"].repaint()

    def do_left(self: Any) -> None:
        self._arrow(-1, 0)

    def do_right(self: Any) -> None:
        self._arrow(1, 0)

    def do_up(self: Any) -> None:
        self._arrow(0, -1)

    def do_down(self: Any) -> None:
        self._arrow(0, 1)

    def do_choose(self: Any) -> None:
        if self.active != "sms":
            return
        sm = self.selected_sm
        if sm is None or sm >= len(self.model.roles):
            self.say("select an SM with the arrow keys first")
            return
        roles = [abi.TRAIN, abi.SERVE, *([abi.DOOM] if self.engine.info.games else []), abi.IDLE]

        def chosen(role: object) -> None:
            if isinstance(role, int) and self.post(Event("set_role", "step", target=sm, args=(role,))):
                self.say(f"SM {sm} → {abi.ROLES[role]}, at its next task boundary")

        self.push_screen(RoleScreen(sm, int(self.model.roles[sm]), roles, self.colours), chosen)

    def do_back(self: Any) -> None:
        """Undoes the nearest of: prompt, selection, loss window, zoom."""
        if self.prompting:
            self.close_prompt()
        elif self.active == "sms" and self.selected_sm is not None:
            self.selected_sm = None
            self.repaint_all()
        elif self.active == "loss" and self.plot.span:
            self.plot = replace(self.plot, span=0.0, end=0.0)
            self.repaint_all()
        elif self.zoom:
            self.zoom = None
            self.relayout()

    # --- view -----------------------------------------------------------------------------------------------

    def do_log_y(self: Any) -> None:
        self.plot = replace(self.plot, log=not self.plot.log)
        self.panes["loss"].repaint()

    def do_gamma(self: Any) -> None:
        self.gamma_step = (self.gamma_step + 1) % len(GAMMAS)
        self.say(f"gamma {1 / GAMMAS[self.gamma_step]:.2g}")
        self.panes["doom"].repaint()

    def do_theme(self: Any) -> None:
        names = list(self.themes)
        self.use_theme(names[(names.index(self.colours.name) + 1) % len(names)])

    def use_theme(self: Any, name: str) -> None:
        self.colours = self.themes[name]
        self._apply_theme()
        self.say(f"theme {name}")
        self.repaint_all(everything=True)

    # --- program --------------------------------------------------------------------------------------------

    def _save(self: Any, save: Any) -> None:
        try:
            self.say(f"saved {save(self)}")
        except OSError as error:
            self.say(f"cannot save a screenshot in {self.options.screenshots}: {error.strerror}", error=True)

    def do_screenshot(self: Any) -> None:
        self._save(save_png)

    def do_screenshot_svg(self: Any) -> None:
        self._save(save_svg)

    def do_help(self: Any) -> None:
        notes = []
        if self.engine.info.games:
            notes.append("While you play: WASD and arrows move and turn, f or space fires, Enter uses, 1-7 choose")
            notes.append("weapons, l latches keys (press again to release), Esc gives the controls back.")
        notes.append("A slow link? ssh -C sends about an eighth.")
        self.push_screen(HelpScreen([a for a in self.actions if self.available(a)], self.colours, notes))

    def do_palette(self: Any) -> None:
        self.action_command_palette()

    def do_quit(self: Any) -> None:
        if self.model.finished:
            self.leave()
            return
        steps = self.model.snapshot.steps_done if self.model.snapshot else 0
        question = f"Step {steps:,} of {self.engine.info.steps:,}. Stop this run?"
        self.push_screen(QuitScreen(question, self.colours), lambda answer: self.leave() if answer else None)

    def do_quit_now(self: Any) -> None:
        self.leave()

    def leave(self: Any) -> None:
        """Ends the app with the run's exit code: 3 after an abort, else 0."""
        if self.recorder is not None:
            self.do_record()
        self.exit(3 if self.model.state == "aborted" else 0, return_code=3 if self.model.state == "aborted" else 0)
