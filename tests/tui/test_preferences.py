"""The person's settings file: what it may say, and that everything else is refused with its name before a start."""

from __future__ import annotations

import errno
import json
import os
import re
import string
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual import keys as textual_keys

from ofa_tui import cli, locations
from ofa_tui.errors import OfaError
from ofa_tui.tui.actions import ACTIONS
from ofa_tui.tui.colour import Depth
from ofa_tui.tui.keymap import apply_keymap, is_key, textual_key
from ofa_tui.tui.options import UiOptions
from ofa_tui.tui.picture import GAMMAS
from ofa_tui.tui.preferences import (
    CHOICES,
    SETTINGS,
    Preferences,
    file_to_begin_with,
    parse_preferences,
    read_preferences,
)
from ofa_tui.tui.remembered import remember_introduction

NAMES = [action.name for action in ACTIONS]


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("OFA_TUI_CONFIG", str(tmp_path / "config"))
    monkeypatch.setenv("OFA_TUI_STATE", str(tmp_path / "state"))
    return tmp_path / "config"


def written(text: str) -> Path:
    path = locations.preferences()
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_without_a_file_all_is_as_usual() -> None:
    assert read_preferences() == Preferences()
    assert Preferences().options() == UiOptions(introduce=True)
    remember_introduction()
    assert Preferences().options() == UiOptions()
    assert apply_keymap({}) == ACTIONS


def test_every_setting_reaches_the_ui() -> None:
    written(
        'theme = "ember"\ncolours = "256"\nblocks = "half"\nbrightness = "plain"\nloss_axis = "linear"\n'
        'reduced_motion = true\nscreenshots = "~/shots"\nintroduction = false\n'
        '[keys]\npause = "z"\nquit = ["q", "f10"]\nscreenshot = []\n'
    )
    preferences = read_preferences()
    assert preferences.options() == UiOptions(
        theme="ember", depth=Depth.EIGHT_BIT, quadrants=False, gamma_step=0, log_loss=False, reduced_motion=True,
        screenshots=Path("~/shots").expanduser(), keymap=preferences.keys,
    )  # fmt: skip
    assert all(getattr(preferences, f.name) != getattr(Preferences(), f.name) for f in fields(Preferences))
    actions = {action.name: action.keys for action in apply_keymap(preferences.keys)}
    assert actions["pause"] == ("z",) and actions["quit"] == ("q", "f10") and actions["screenshot"] == ()


def test_a_home_that_nobody_has_is_a_folder_like_others() -> None:
    written('screenshots = "~nobody-has-this-name/shots"\n')
    assert read_preferences().options().screenshots == Path("~nobody-has-this-name/shots")


def test_every_choice_means_something_of_its_own() -> None:
    for name, values in CHOICES.items():
        made = [replace(Preferences(), **{name: value}).options() for value in values]
        assert all(made[i] != made[j] for i in range(len(made)) for j in range(i))
    assert len(CHOICES["brightness"]) == 1 + len(GAMMAS)


def test_the_file_to_begin_with_changes_nothing_until_a_line_is_uncommented() -> None:
    text = file_to_begin_with()
    assert parse_preferences(text) == Preferences()
    live = parse_preferences(re.sub(r"(?m)^# (?=\w+ = )", "", text))
    assert replace(live, keys={}) == Preferences() and list(live.keys) == NAMES
    assert apply_keymap(live.keys) == ACTIONS, "and the footer still shows families of keys"
    for name in SETTINGS:
        assert re.search(rf"(?m)^# {name} = \S+  # \w", text), "explained"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("thème = 1\n", "cannot be read"),
        ('themes = "dark"\n', "no setting 'themes'; choose theme, "),
        ('theme = "pink"\n', "no theme 'pink'; choose dark, "),
        ("theme = 3\n", "theme is 3, but takes a text in quotes"),
        ("reduced_motion = 1\n", "reduced_motion is 1, but takes true or false"),
        ('colours = "8"\n', "colours is '8'; choose auto, truecolor, 256, 16, none"),
        ('screenshots = "a\\u0000b"\n', "screenshots is 'a\\x00b', with characters that cannot be printed"),
        ("keys = 3\n", "keys is a table"),
        ("[keys]\npuase = 'p'\n", "no action 'puase'; did you mean pause? "),
        ("[keys]\n\"\" = 'p'\n", "no action ''; "),
        ("theme = " + "[" * 100_000, "cannot be read: it is nested too deeply; correct or remove it"),
        ("[keys]\npause = 3\n", "pause takes a key or a list"),
        ("[keys]\npause = ['z', 3]\n", "pause takes a key or a list"),
        ("[keys]\npause = 'spce'\n", "pause cannot have the key 'spce'"),
        ("[keys]\npause = ''\n", "pause cannot have the key ''"),
        ("[keys]\npause = 'ctrl+i'\n", "pause cannot have the key 'ctrl+i'"),
        ("[keys]\npause = 'q'\n", "'q' is both pause and quit"),
        ("[keys]\nautomap = 'w'\nwall = 'v'\n", "automap works while a person plays, and 'w' is a control then"),
        ("[keys]\nquit_now = 'v'\n", "quit_now is heard while a prompt is written"),
        ("[keys]\nquit_now = []\nquit = []\n", "neither quit nor quit_now has a key"),
    ],
)
def test_what_there_is_not_is_refused_in_one_sentence_with_the_file(
    text: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(text)
    with pytest.raises(OfaError, match=re.escape(words)) as failure:
        read_preferences()
    assert str(path) in str(failure.value)
    for command in (["keys"], ["--steps", "1"]):
        assert cli.main(command) == 2
        out, err = capsys.readouterr()
        assert err.rstrip("\n").splitlines() == [f"ofa-tui: {failure.value}"]
        assert command != ["keys"] or all(action.help in out for action in ACTIONS), "the table to choose from"


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    written('\ufefftheme = "ember"\n')
    assert read_preferences().theme == "ember"


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_what_is_no_file_is_said(make: Callable[[Path], None], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    path = locations.preferences()
    make(path)
    with pytest.raises(OfaError) as failure:
        read_preferences()
    assert str(failure.value) == f"{path} cannot be read: it is not a regular file; correct or remove it"


def test_what_the_system_refuses_is_said_with_the_path_once(monkeypatch: pytest.MonkeyPatch) -> None:
    path = written("")

    def refuse(path: Path, **_: object) -> str:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, "read_text", refuse)
    with pytest.raises(OfaError) as failure:
        read_preferences()
    assert str(failure.value) == f"{path} cannot be read: Permission denied; correct or remove it"


def test_a_link_to_nowhere_is_not_written_over(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    path = locations.preferences()
    path.symlink_to(folder / "elsewhere.toml")
    assert cli.main(["keys", "--write"]) == 2
    assert "is there already" in capsys.readouterr().err and path.is_symlink()


def test_a_start_without_a_terminal_needs_no_settings(capsys: pytest.CaptureFixture[str]) -> None:
    written("themes = 1\n")
    assert cli.main(["program", "show", "--preset", "tiny"]) == 0


def test_keys_have_the_names_that_textual_gives_them() -> None:
    for character in string.punctuation + string.ascii_letters + string.digits + "ü":
        assert is_key(character) and textual_key(character) == textual_keys._character_to_key(character)
    named = {key.value for key in textual_keys.Keys}
    possible = [f"{m}{key}" for m in ("", "shift+", "ctrl+") for key in (*named, *string.ascii_lowercase)]
    accepted = {key for key in possible if len(key) > 1 and is_key(key)}
    assert accepted <= named | {"space"} and {"shift+tab", "ctrl+left", "f12", "ctrl+k", "escape"} <= accepted


def toml_table(table: dict[str, list[str]]) -> str:
    return "[keys]\n" + "".join(f"{name} = {json.dumps(keys)}\n" for name, keys in table.items())


some_keys = st.lists(st.sampled_from([*string.printable, "tab", "f5", "ctrl+k", "ctrl+m", "shift+left"]), max_size=3)
FRAGMENTS = ["[keys]\n", "theme", "blocks", "pause", "quit", "other", " = ", '"q"', '"auto"', "[", "]", ",", "1", "\n"]


@given(st.dictionaries(st.sampled_from(NAMES), some_keys, max_size=6))
def test_a_keymap_is_refused_or_makes_a_sound_table(table: dict[str, list[str]]) -> None:
    try:
        preferences = parse_preferences(toml_table(table))
    except OfaError as error:
        assert len(str(error).splitlines()) == 1
        return
    actions = apply_keymap(preferences.keys)
    keys = [key for action in actions for key in action.keys]
    assert len(keys) == len(set(keys)) and all(map(is_key, keys))
    asked = {name: tuple(dict.fromkeys(listed)) for name, listed in table.items()}
    assert [action.keys for action in actions] == [asked.get(action.name, action.keys) for action in ACTIONS]


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=12).map("".join))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        apply_keymap(parse_preferences(text).keys)
    except (OfaError, ValueError) as error:
        assert str(error)


def test_the_command_prints_the_table_and_writes_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    path = locations.preferences()
    assert cli.main(["keys"]) == 0
    shown = capsys.readouterr().out
    for action in ACTIONS:
        row = [" ".join(action.keys) or "none", action.name, action.help]
        assert re.search(r"(?m)^  " + " +".join(map(re.escape, row)) + "$", shown)
    assert "keys --write writes" in shown
    assert cli.main(["keys", "--write"]) == 0 and str(path) in capsys.readouterr().out
    assert read_preferences() == Preferences()
    written('[keys]\npause = "z"\n')
    assert cli.main(["keys"]) == 0
    assert re.search(r"(?m)^  z +pause +pause and go on \(usually space\)$", capsys.readouterr().out)
    assert cli.main(["keys", "--write"]) == 2
    assert "is there already" in capsys.readouterr().err and read_preferences().keys == {"pause": ("z",)}
