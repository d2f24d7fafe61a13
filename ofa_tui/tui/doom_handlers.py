"""What the actions of the group "Doom" do, over the game that is shown."""

from __future__ import annotations

import time
from datetime import datetime
from typing import TYPE_CHECKING

from ofa_tui.doom.players import DESCRIPTIONS
from ofa_tui.engine.protocol import Event
from ofa_tui.errors import OfaError
from ofa_tui.record.files import make_folder
from ofa_tui.tui import games, manual
from ofa_tui.tui.games import MapView
from ofa_tui.tui.options import short_path
from ofa_tui.tui.panes.doom import map_label

if TYPE_CHECKING:
    from ofa_tui.tui.app import OfaApp

TICS_PER_S = 35


class DoomHandlers:
    """Part of Handlers."""

    _app: OfaApp

    def _post(self, action: str, *args: int) -> bool:
        app = self._app
        return bool(app.post(Event(action, "tic", target=app.model.game, args=args)))

    # --- who plays ------------------------------------------------------------------------------------------

    def _set_behaviour(self, index: int) -> bool:
        return self._post("behaviour", index)

    def _let_play(self, behaviour: str) -> None:
        if self._set_behaviour(self._app.behaviours.index(behaviour)):
            self._app.say(f"{behaviour}: {DESCRIPTIONS[behaviour]}")

    def do_explore(self) -> None:
        self._let_play("explore")

    def do_hunt(self) -> None:
        self._let_play("hunt")

    def do_speedrun(self) -> None:
        self._let_play("speedrun")

    def do_pacifist(self) -> None:
        self._let_play("pacifist")

    def do_berserk(self) -> None:
        self._let_play("berserk")

    def do_camp(self) -> None:
        self._let_play("camp")

    def do_manual(self) -> None:
        app = self._app
        if app.model.frame is None:
            return
        found, manual_player = int(app.model.frame.status["behaviour"]), app.behaviours.index("manual")
        if not self._set_behaviour(manual_player):
            return
        # The frame may be older than the key that gave the controls back.
        if found != manual_player or app.model.game not in app.behaviours_before:
            app.behaviours_before[app.model.game] = found
        app.playing = True
        app.holds = manual.KeyHolds()
        app.sent_command = manual.TicCommand()
        app.clear_message()  # the footer now shows how to play
        app.repaint_all()

    def give_controls_back(self) -> None:
        app = self._app
        app.playing = False
        app.holds.release_all()
        app.send_controls(time.monotonic())
        back = app.behaviours_before[app.model.game]
        self._set_behaviour(back)
        name = app.behaviours[back] if back < len(app.behaviours) else f"behaviour {back}"
        players = " ".join(app.key(action.name) for action in app.actions if action.family == "players")
        nobody = f"{app.key('manual')} takes them, {players} give them to the scripted player"
        app.say(f"nobody has the controls, as before: {nobody}" if name == "manual"
                else f"the scripted player has the controls ({name})")
        app.repaint_all()

    # --- back and forth -------------------------------------------------------------------------------------

    def _hold(self) -> bool:
        """Holds the games where they run. True if they stood still already."""
        app = self._app
        if app.model.games_held or app.model.state == "paused":
            return True
        app.engine.hold_games(True)
        steps = f"{app.key('rewind')} and {app.key('forward')} step by seconds"
        app.say(f"the games are held, the rest goes on: {steps}, {app.key('pause')} goes on")
        return False

    def do_rewind(self) -> None:
        self._hold()
        self._post("rewind", 1)

    def do_forward(self) -> None:
        app = self._app
        if not self._hold():
            return
        if app.model.frame is not None and app.model.frame.status["ahead"]:
            self._post("rewind", -1)
        else:
            app.engine.step_tics(TICS_PER_S)

    # --- the map --------------------------------------------------------------------------------------------

    def _show_map(self, view: MapView) -> None:
        app = self._app
        if self._post("automap", *view.as_args()):
            app.games.maps[app.model.game] = view

    def _map(self) -> MapView:
        return self._app.games.maps[self._app.model.game]

    def do_automap(self) -> None:
        self._show_map(self._map().switched())

    def _change_map(self, changed: MapView) -> None:
        if self._map().mode == games.OFF:
            self._app.say(f"the map is not up: {self._app.key('automap')} shows it")
        else:
            self._show_map(changed)

    def do_map_follow(self) -> None:
        changed = self._map().followed()
        self._change_map(changed)
        if self._map().mode != games.OFF:
            stays = changed.mode == games.STAY
            self._app.say("the map stays: arrows move it" if stays else "the map follows the player")

    def do_map_in(self) -> None:
        self._change_map(self._map().zoomed(1))

    def do_map_out(self) -> None:
        self._change_map(self._map().zoomed(-1))

    def pan_map(self, right: int, up: int) -> None:
        """Moves a map that does not follow."""
        if self._map().mode == games.STAY:
            self._show_map(self._map().panned(right, up))

    # --- demos, and several games ---------------------------------------------------------------------------

    def do_save_demo(self) -> None:
        app, advice = self._app, "start in a folder that can be written"
        try:
            demo = app.games.demo(app.model.game)
            start = map_label(demo.start.episode, demo.start.map, app.model.info.wad) if demo.start else "game"
            path = app.options.screenshots / f"doom-{start}-{datetime.now():%Y-%m-%d-%H%M%S}.lmp"
            make_folder(path.parent, advice)
            path = demo.save_copy(path, advice)
        except OfaError as error:
            app.say(str(error), error=True)
        else:
            app.saved.append(path)
            seconds = demo.tics // TICS_PER_S
            app.say(f"saved {short_path(path)}, {seconds // 60}:{seconds % 60:02} from the game's beginning")

    def do_next_game(self) -> None:
        app = self._app
        app.model.show_game((app.model.game + 1) % app.model.info.games)
        app.paint("doom", "player")

    def do_wall(self) -> None:
        app = self._app
        app.games.wall = not app.games.wall
        app.paint("doom")
