"""The one table of actions: name, keys, help and place. Bindings, footer, help screen, command palette, a person's own
keys and `ofa-tui keys` all read it; the handler of action `name` is the method `do_<name>` of Handlers."""

from __future__ import annotations

from dataclasses import dataclass

GROUPS = ("run", "replay", "Doom", "panes", "view", "program")


@dataclass(frozen=True)
class Action:
    name: str
    keys: tuple[str, ...]
    """As people write them: "space", "a", "[", "ctrl+c"."""
    help: str
    group: str
    label: str = ""
    """Short word for the footer; empty: not in the footer."""
    footer_keys: str = ""
    """How the footer shows the keys of a family (`1-5`, `[ ]`); empty: the first key."""
    needs: tuple[str, ...] = ()
    """Of "doom", "games" and "streams" (more than one), "recorder", "checkpoints", "live" (a run, not a replay),
    "replay": hidden where one is missing."""
    palette: bool = True
    family: str = ""
    """Actions of one family share a line of the help screen."""
    playing: bool = False
    """Works while a person plays, when most keys are controls."""


FAMILIES = {
    "serve": "move one SM from train to serve, and back",
    "doom": "move one SM from train to Doom, and back",
    "players": "the scripted player explores, hunts, runs for the exit, never fires, uses its fists, camps",
    "wind": "hold the games; then step back and forth by seconds",
    "map": "zoom the automap",
    "scrub": "back and forward by 5 seconds, by a minute, to the beginning and to the end",
    "speed": "half and twice the speed, 0.25 to 32",
    "zoom": "maximise Doom, SMs, loss, serve, player; show the log of the run; and back",
    "streams": "select the previous stream of text, and the next: prompts go there",
    "arrows": "SM pane: select an SM · loss pane: pan and zoom · log: older lines · a map that stays: move it",
}
"""What the help screen says of each family."""


_LIVE = ("live",)
_GAME = ("live", "doom")
_REPLAY = ("replay",)

ACTIONS: tuple[Action, ...] = (
    # Most important first: this is the footer's order.
    Action("pause", ("space",), "pause and go on", "run", "pause"),
    Action("back_seconds", ("j",), "back 5 seconds", "replay", "5 s", "j l", needs=_REPLAY, family="scrub"),
    Action("forward_seconds", ("l",), "forward 5 seconds", "replay", needs=_REPLAY, family="scrub"),
    Action("back_minute", ("J",), "back a minute", "replay", "1 min", "J L", needs=_REPLAY, family="scrub"),
    Action("forward_minute", ("L",), "forward a minute", "replay", needs=_REPLAY, family="scrub"),
    Action("slower", ("<",), "half the speed", "replay", "speed", "< >", needs=_REPLAY, family="speed"),
    Action("faster", (">",), "twice the speed", "replay", needs=_REPLAY, family="speed"),
    Action("go_to_step", ("o",), "go to a step", "replay", "step", needs=_REPLAY),
    Action("to_begin", ("home",), "to the beginning", "replay", needs=_REPLAY, family="scrub"),
    Action("to_end", ("end",), "to the end", "replay", needs=_REPLAY, family="scrub"),
    Action("explore", ("e",), "scripted player: explore", "Doom", "explore", needs=_GAME, family="players"),
    Action("manual", ("m",), "take the controls (Esc gives them back)", "Doom", "play", needs=_GAME),
    Action(
        "train_to_serve", ("[",), "move one SM from train to serve", "run", "SMs", "[ ]", needs=_LIVE, family="serve"
    ),
    Action("zoom_doom", ("1",), "maximise the Doom pane", "panes", "zoom", "1-6", palette=False, family="zoom"),
    Action("prompt", ("/",), "write a prompt for the model", "run", "prompt", needs=_LIVE),
    Action("help", ("?",), "this help", "program", "help"),
    Action("quit", ("q",), "quit (asks if the run is unfinished)", "program", "quit"),
    Action("previous_stream", ("(",), "select the previous stream of text", "panes", "stream", "( )",
           needs=("streams",), family="streams"),
    Action("rewind", (",",), "hold the games and go back a second", "Doom", "rewind", ", .", needs=_GAME,
           family="wind"),
    Action("automap", ("tab",), "automap over the view, and off", "Doom", "map", needs=_GAME, playing=True),
    Action("record", ("r",), "record to a folder, and stop", "run", "rec", needs=("recorder",)),
    Action("log_y", ("y",), "loss axis: logarithmic or linear", "view", "log y"),
    Action("gamma", ("g",), "brighter Doom picture, in steps", "view", "gamma", needs=("doom",)),
    Action("screenshot", ("x",), "screenshot as PNG", "program", "shot"),
    Action("save_demo", ("d",), "save the game so far as a demo (.lmp)", "Doom", "demo", needs=_GAME),
    Action("next_game", ("n",), "show the next game", "Doom", "next game", needs=("doom", "games")),
    Action("wall", ("w",), "show all games at once, and one again", "Doom", "wall", needs=("doom", "games")),
    Action("next_stream", (")",), "select the next stream of text", "panes", needs=("streams",), family="streams"),
    Action("theme", ("t",), "next theme", "view", "theme"),
    Action("serve_to_train", ("]",), "move one SM from serve back to train", "run", needs=_LIVE, family="serve"),
    Action("train_to_doom", ("{",), "move one SM from train to Doom", "run", needs=_GAME, family="doom"),
    Action("doom_to_train", ("}",), "move one SM from Doom back to train", "run", needs=_GAME, family="doom"),
    Action("hunt", ("h",), "scripted player: hunt", "Doom", needs=_GAME, family="players"),
    Action("speedrun", ("s",), "scripted player: speedrun", "Doom", needs=_GAME, family="players"),
    Action("pacifist", ("p",), "scripted player: pacifist", "Doom", needs=_GAME, family="players"),
    Action("berserk", ("b",), "scripted player: berserk", "Doom", needs=_GAME, family="players"),
    Action("camp", ("c",), "scripted player: camp", "Doom", needs=_GAME, family="players"),
    Action("forward", (".",), "hold the games and go forward a second", "Doom", needs=_GAME, family="wind"),
    Action("map_follow", ("f",), "the automap follows the player, or stays", "Doom", needs=_GAME),
    Action("map_in", ("+",), "zoom the automap in", "Doom", needs=_GAME, family="map", playing=True),
    Action("map_out", ("-",), "zoom the automap out", "Doom", needs=_GAME, family="map", playing=True),
    Action("zoom_sms", ("2",), "maximise the SM pane", "panes", palette=False, family="zoom"),
    Action("zoom_loss", ("3",), "maximise the loss pane", "panes", palette=False, family="zoom"),
    Action("zoom_serve", ("4",), "maximise the serve pane", "panes", palette=False, family="zoom"),
    Action("zoom_player", ("5",), "maximise the player pane", "panes", palette=False, family="zoom"),
    Action("zoom_log", ("6",), "the log of the run: steering, held-out losses, checkpoints", "panes", family="zoom"),
    Action("left", ("left",), "SM pane: the SM to the left · loss: pan", "panes", palette=False, family="arrows"),
    Action("right", ("right",), "SM pane: the SM to the right · loss: pan", "panes", palette=False, family="arrows"),
    Action("up", ("up",), "SM pane: the SM above · loss: zoom in", "panes", palette=False, family="arrows"),
    Action("down", ("down",), "SM pane: the SM below · loss: zoom out", "panes", palette=False, family="arrows"),
    Action("choose", ("enter",), "SM pane: give the selected SM a role", "panes", needs=_LIVE, palette=False),
    Action("back", ("escape",), "leave the zoom, the selection, the loss window", "panes", palette=False),
    Action("checkpoint", ("k",), "write a checkpoint after this step", "run", needs=("checkpoints",)),
    Action("blocks", (), "Doom picture in half blocks or in quarter blocks", "view", needs=("doom",)),
    Action("screenshot_svg", (), "screenshot as SVG", "program"),
    Action("guide", (), "what the five panes show, one by one", "program"),
    Action("palette", (":",), "command palette", "program", palette=False),
    Action("suspend", ("ctrl+z",), "stop the program, with its run, until the shell's fg", "program", playing=True),
    Action("quit_now", ("ctrl+c",), "quit at once", "program", palette=False, playing=True),
)
