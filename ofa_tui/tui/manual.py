"""Playing with a keyboard that reports presses only: a press holds for a while, auto-repeat extends it."""

from __future__ import annotations

from dataclasses import dataclass

HOLD_S = 0.18

FORWARD_RUN = 50
SIDE_RUN = 40
TURN_RUN = 1280
TURN_SLOW = 640
"""Values of a 1.9 tic command while running; turning is slow in its first six tics (about HOLD_S)."""
BUTTON_FIRE, BUTTON_USE, BUTTON_WEAPON = 1, 2, 4
WEAPON_SHIFT = 3

KEYS = {
    "w": "forward", "up": "forward", "s": "backward", "down": "backward", "a": "left", "d": "right",
    "left": "turn_left", "right": "turn_right", "f": "fire", "space": "fire", "enter": "use",
    **{str(n): f"weapon{n}" for n in range(1, 8)},
}  # fmt: skip
"""Textual's key names → what is held."""
LATCH_KEY = "l"
_OPPOSITE = {
    "forward": "backward", "backward": "forward", "left": "right", "right": "left",
    "turn_left": "turn_right", "turn_right": "turn_left",
}  # fmt: skip


@dataclass(frozen=True)
class TicCommand:
    """One command, in the units of the demo format: forward and side -127..127, turn in 1/65536 of a circle."""

    forward: int = 0
    side: int = 0
    turn: int = 0
    buttons: int = 0

    def as_args(self) -> tuple[int, int, int, int]:
        return self.forward, self.side, self.turn, self.buttons


class KeyHolds:
    """Which controls are down at a moment, from key presses alone. Times in seconds, monotonic.

    In latch mode a press keeps a control down until it is pressed again (or its opposite is).
    """

    def __init__(self) -> None:
        self.latch = False
        self._until: dict[str, float] = {}
        self._since: dict[str, float] = {}

    def press(self, key: str, now: float) -> bool:
        """True if the key is one of ours."""
        if key == LATCH_KEY:
            self.latch = not self.latch
            self._until.clear()
            return True
        control = KEYS.get(key)
        if control is None:
            return False
        down = self._until.get(control, 0.0) > now
        if self.latch and not control.startswith("weapon") and control != "use":
            if down:
                del self._until[control]
            else:
                self._hold(control, float("inf"), now, down)
        else:
            self._hold(control, now + HOLD_S, now, down)
        return True

    def _hold(self, control: str, until: float, now: float, down: bool) -> None:
        self._until.pop(_OPPOSITE.get(control, ""), None)
        if not down:
            self._since[control] = now
        self._until[control] = until

    def release_all(self) -> None:
        self._until.clear()

    def command(self, now: float) -> TicCommand:
        """The command of a tic at `now`."""
        down = {control for control, until in self._until.items() if until > now}
        turn = 0
        for control, sign in (("turn_left", 1), ("turn_right", -1)):
            if control in down:
                turn += sign * (TURN_RUN if now - self._since[control] >= HOLD_S else TURN_SLOW)
        buttons = BUTTON_FIRE * ("fire" in down) | BUTTON_USE * ("use" in down)
        for number in range(1, 8):
            if f"weapon{number}" in down:
                buttons |= BUTTON_WEAPON | number - 1 << WEAPON_SHIFT
        return TicCommand(
            FORWARD_RUN * (("forward" in down) - ("backward" in down)),
            SIDE_RUN * (("right" in down) - ("left" in down)),
            turn,
            buttons,
        )
