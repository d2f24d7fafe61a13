"""Keys that only report presses, as tic commands."""

from __future__ import annotations

from ofa_tui.tui.manual import HOLD_S, KeyHolds, TicCommand


def test_a_press_holds_and_repeat_extends_it() -> None:
    holds = KeyHolds()
    assert holds.press("w", 0.0)
    assert holds.command(HOLD_S - 0.01) == TicCommand(forward=50)
    assert holds.command(HOLD_S + 0.01) == TicCommand()
    holds.press("w", 1.0)
    holds.press("w", 1.1)
    assert holds.command(1.1 + HOLD_S - 0.01).forward == 50


def test_keys_combine_and_opposites_replace() -> None:
    holds = KeyHolds()
    for key in ("w", "d", "left", "f"):
        holds.press(key, 0.0)
    command = holds.command(0.05)
    assert (command.forward, command.side, command.turn, command.buttons) == (50, 40, 640, 1)
    holds.press("s", 0.06)
    assert holds.command(0.07).forward == -50


def test_turning_starts_slowly() -> None:
    holds = KeyHolds()
    for press in range(5):
        holds.press("right", press * 0.05)
    assert holds.command(0.1).turn == -640
    assert holds.command(0.25).turn == -1280


def test_latch_keeps_keys_down_until_pressed_again() -> None:
    holds = KeyHolds()
    holds.press("l", 0.0)
    holds.press("w", 0.0)
    assert holds.command(60.0).forward == 50
    holds.press("w", 61.0)
    assert holds.command(61.01).forward == 0
    holds.press("enter", 62.0)
    assert holds.command(62.01).buttons == 2 and holds.command(63.0).buttons == 0


def test_digits_choose_weapons() -> None:
    holds = KeyHolds()
    holds.press("3", 0.0)
    assert holds.command(0.01).buttons == 4 | 2 << 3


def test_other_keys_are_not_ours() -> None:
    assert not KeyHolds().press("q", 0.0)
