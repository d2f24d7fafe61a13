"""What the scripted player can be told to do; number i is the enum Behaviour of cuda/doom/state.h."""

from __future__ import annotations

BEHAVIOURS = ("explore", "manual")

DESCRIPTIONS = {
    "explore": "visits what it has not seen, opens doors, rides lifts, presses switches, and leaves in the end",
    "manual": "your keys",
}
