"""What the actions of the group "replay" do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.widgets import Input

from ofa_tui.engine.protocol import Snapshot
from ofa_tui.engine.replay import ReplayEngine
from ofa_tui.errors import OfaError
from ofa_tui.tui.dialogs import Dialog

if TYPE_CHECKING:
    from ofa_tui.tui.app import OfaApp

SHORT_S, LONG_S = 5.0, 60.0


def replay_news(replay: ReplayEngine, before: str, snapshot: Snapshot) -> str:
    """What to say of a snapshot that followed one with the state `before`: that it is the end, and what is damaged."""
    parts = []
    if before != snapshot.state and snapshot.state == "broken off":
        parts.append(f"step {snapshot.steps_done:,}, {snapshot.message}")
    elif before != snapshot.state and snapshot.state == "finished" and replay.follow:
        parts.append(f"step {snapshot.steps_done:,}, where the run was finished")
    if damage := replay.new_damage():
        parts.append(damage)
    return "; ".join(parts)


class StepScreen(Dialog):
    """A prompt line for the number of a step: what was written."""

    def compose(self) -> ComposeResult:
        yield Input(placeholder="step: Enter goes there, Esc leaves", id="step", restrict=r"[0-9,_ ]*", max_length=20)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.dismiss(event.value)


class ReplayHandlers:
    """Part of Handlers."""

    _app: OfaApp

    @property
    def _replay(self) -> ReplayEngine:
        assert self._app.replay is not None  # else the action is not available
        return self._app.replay

    def pause_replay(self) -> None:
        replay = self._replay
        replay.pause(not replay.paused)
        if replay.paused:
            self._app.say(f"paused: {self._app.key('pause')} goes on")
        elif replay.at_end and not replay.growing:
            self._app.say(f"this is the end: {self._app.key('to_begin')} goes to the beginning")
        else:
            self._app.say("going on")
        self._app.paint("replay")

    def _jump(self, seconds: float) -> None:
        self._replay.seek_by(seconds)
        self._app.show_anew()

    def do_back_seconds(self) -> None:
        self._jump(-SHORT_S)

    def do_forward_seconds(self) -> None:
        self._jump(SHORT_S)

    def do_back_minute(self) -> None:
        self._jump(-LONG_S)

    def do_forward_minute(self) -> None:
        self._jump(LONG_S)

    def do_to_begin(self) -> None:
        self._replay.seek(self._replay.begin)
        self._app.show_anew()

    def do_to_end(self) -> None:
        self._replay.seek(self._replay.end)
        self._app.show_anew()

    def do_slower(self) -> None:
        self._replay.slower()
        self._say_speed()

    def do_faster(self) -> None:
        self._replay.faster()
        self._say_speed()

    def _say_speed(self) -> None:
        self._app.say(f"{self._replay.speed:g} times the speed of the run")
        self._app.paint("replay")

    def do_go_to_step(self) -> None:
        self._app.push_screen(StepScreen(), self._go_to_step)

    def _go_to_step(self, answer: object) -> None:
        digits = "".join(character for character in str(answer or "") if character.isdigit())
        if not digits:
            return
        try:
            self._replay.seek_step(int(digits))
        except OfaError as error:
            self._app.say(str(error), error=True)
        else:
            self._app.show_anew()
