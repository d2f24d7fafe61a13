"""What the scripted player can be told to do; number i is the enum Behaviour of cuda/doom/state.h."""

from __future__ import annotations

DESCRIPTIONS = {
    "explore": "visits what it has not seen, opens doors, rides lifts, presses switches, and leaves in the end",
    "hunt": "goes for the nearest monster it can reach, and leaves when none is left",
    "speedrun": "takes the shortest way to the exit and shoots on the run",
    "pacifist": "never fires, keeps away from monsters",
    "berserk": "fists and chainsaw only",
    "camp": "holds a place with few ways in and fires at what comes",
    "manual": "your keys",
}

BEHAVIOURS = tuple(DESCRIPTIONS)
