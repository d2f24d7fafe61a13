"""The command line's options: what is accepted, what is refused, and with which words."""

from __future__ import annotations

import argparse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ofa_tui import abi, settings
from ofa_tui.errors import OfaError
from ofa_tui.http import options as http


def parse(*arguments: str, before: dict[str, object] | None = None) -> settings.Settings:
    parser = argparse.ArgumentParser()
    settings.add_arguments(parser)
    http.add_arguments(parser)
    return settings.from_arguments(parser.parse_args(arguments), before=before)


@given(st.integers(1, 100), st.integers(0, 100), st.integers(0, 56))
def test_sms_round_trip(train: int, serve: int, doom: int) -> None:
    assert settings.parse_sms(f"train={train},serve={serve},doom={doom}") == (train, serve, doom)


@given(st.text(alphabet="train=serve,doom0123456789 -x", max_size=30))
def test_sms_text_is_a_possible_split_or_one_sentence(text: str) -> None:
    try:
        split = settings.parse_sms(text)
    except OfaError as error:
        assert "--sms" in str(error) and "\n" not in str(error)
    else:
        assert split[0] >= 1 and min(split) >= 0 and sum(split) <= abi.MAX_SMS


def test_defaults_are_the_preset() -> None:
    chosen = parse()
    assert chosen.preset.name == "tiny"
    assert chosen.steps == chosen.preset.train.steps
    assert chosen.sms == chosen.preset.sms
    assert chosen.tokenizer == chosen.preset.tokenizer


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--preset", "huge"], "tiny"),
        (["--steps", "0"], "--steps"),
        (["--skill", "6"], "--skill"),
        (["--sms", "train=0"], "train=1"),
        (["--sms", "train=300"], "256"),
        (["--token-rate", "often"], "max"),
        (["--top-p", "0"], "--top-p"),
        (["--streams", "0"], "1 to 8"),
        (["--streams", "9"], "1 to 8"),
        (["--dooms", "0"], "--sms doom=0"),
        (["--dooms", "17"], "1 to 16"),
        (["--data", "no/such/file.txt"], "no/such/file.txt"),
        (["--sweep-every", "-1"], "--sweep-every"),
        (["--sweep-batches", "some"], "or all"),
        (["--checkpoint-every", "0"], "at least 1"),
        (["--keep", "0"], "at least 1"),
        (["--init", "no/such/file"], "no/such/file"),
    ],
)
def test_what_cannot_be_is_one_sentence_with_the_way_out(arguments: list[str], words: str) -> None:
    with pytest.raises(OfaError) as caught:
        parse(*arguments)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_there_is_a_game_per_doom_sm_unless_told_otherwise() -> None:
    assert [parse("--sms", f"doom={n}").dooms for n in (0, 1, 3, 40)] == [1, 1, 3, abi.MAX_GAMES]
    assert parse("--sms", "doom=2", "--dooms", "5").dooms == 5


@pytest.mark.parametrize(
    ("was", "given", "folder", "every", "at_end", "keep"),
    [
        ((), (), None, 0, False, 3),
        (("--checkpoint-every", "5", "--keep", "9"), (), "old/kept", 5, False, 9),
        (("--checkpoint-every", "5"), ("--checkpoint-every", "0"), None, 0, False, 3),
        (("--checkpoint-every", "5"), ("--checkpoint-every", "7", "--keep", "2"), "old/kept", 7, False, 2),
        (("--checkpoint-every", "5"), ("--checkpoints", "new"), "new", 5, True, 3),
        (("--checkpoint-at-end",), (), "old/kept", 0, True, 3),
        (("--checkpoints", "elsewhere"), (), "old/kept", 0, True, 3),
        (("--checkpoint-at-start",), (), None, 0, False, 3),
        ((), ("--checkpoint-at-end",), "old/kept", 0, True, 3),
    ],
)
def test_a_run_that_is_resumed_keeps_writing_checkpoints_unless_told_otherwise(
    was: tuple[str, ...], given: tuple[str, ...], folder: str | None, every: int, at_end: bool, keep: int
) -> None:
    chosen = parse("--resume", "old/kept/step-00000005.safetensors", *given, before=_options(*was))
    assert (str(chosen.checkpoints) if chosen.checkpoints else None, chosen.checkpoint_every) == (folder, every)
    assert (chosen.checkpoint_at_end, chosen.keep) == (at_end, keep) and not chosen.checkpoint_at_start
    assert chosen.writes_checkpoints == (folder is not None)


@pytest.mark.parametrize(
    ("was", "given", "streams", "telling"),
    [
        (None, (), 1, 1),
        (None, ("--streams", "5"), 5, 5),
        (None, ("--http",), settings.HTTP_STREAMS, 1),
        (None, ("--http", "--streams", "1"), 1, 1),
        (None, ("--http", "--streams", "8"), 8, 1),
        ((), (), 1, 1),
        (("--streams", "3"), (), 3, 3),
        (("--streams", "3"), ("--http",), 3, 1),
        (("--http",), (), settings.HTTP_STREAMS, settings.HTTP_STREAMS),
        (("--streams", "3"), ("--streams", "2"), 2, 2),
    ],
)
def test_all_streams_are_the_runs_own_but_with_clients_only_the_first(
    was: tuple[str, ...] | None, given: tuple[str, ...], streams: int, telling: int
) -> None:
    """A run that is resumed has as many as before."""
    before = None if was is None else _options(*was)
    chosen = parse(*given, before=before)
    assert (chosen.streams, chosen.telling) == (streams, telling)


def test_a_checkpoint_from_before_there_were_several_streams_has_one() -> None:
    before = {name: value for name, value in _options().items() if name not in ("streams", "telling")}
    assert parse("--http", before=before).streams == 1


def _options(*arguments: str) -> dict[str, object]:
    """What a checkpoint keeps of a run's options."""
    earlier = parse(*arguments)
    return {**earlier.as_dict(), "preset": earlier.preset.name, "data": [], "valid": []}
