"""Demo files: what is written reads back, and whatever bytes come is a demo or one clear sentence."""

from __future__ import annotations

import resource
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ofa_tui.cli import main
from ofa_tui.doom.library import COMMAND, MAX_PLAYERS
from ofa_tui.doom.lmp import HEADER_BYTES, Demo, DemoError, parse_demo
from tests.doom.tiny_wad import build, lumps

HEADER = bytes([109, 2, 1, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0])
TIC = bytes([50, 0, 0, 0])


@st.composite
def demos(draw: st.DrawFn) -> Demo:
    present = draw(st.lists(st.booleans(), min_size=MAX_PLAYERS, max_size=MAX_PLAYERS).filter(any))
    viewed = draw(st.sampled_from([player for player, there in enumerate(present) if there]))
    tics = draw(st.integers(1, 40))
    commands = np.zeros((tics, MAX_PLAYERS), COMMAND)
    for player in np.flatnonzero(present):
        body = np.frombuffer(draw(st.binary(min_size=4 * tics, max_size=4 * tics)), np.uint8).reshape(tics, 4)
        # A forward move of -128 is the mark of the end.
        commands["forward"][:, player] = np.maximum(body[:, 0].view(np.int8), -127)
        commands["side"][:, player] = body[:, 1].view(np.int8)
        commands["turn"][:, player] = (body[:, 2].astype(np.uint16) << 8).view(np.int16)
        commands["buttons"][:, player] = body[:, 3]
    small = st.integers(0, 1)
    return Demo(commands, draw(st.integers(0, 4)), draw(st.integers(0, 9)), draw(st.integers(0, 40)), viewed,
                tuple(present), 0, draw(small), draw(small), draw(small), draw(st.integers(104, 109)))


@given(demos(), st.binary(max_size=20))
def test_what_is_written_reads_back(demo: Demo, footer: bytes) -> None:
    read = parse_demo(demo.encode() + footer, "a demo")
    assert np.array_equal(read.commands, demo.commands)
    assert read.header() == demo.header() and read.settings() == demo.settings() and read.ended


@given(demos(), st.integers(0, 200))
def test_a_file_that_is_cut_off_is_played_as_far_as_it_goes(demo: Demo, cut: int) -> None:
    data = demo.encode()[:-1][:HEADER_BYTES + cut]
    players = sum(demo.present)
    if (tics := (len(data) - HEADER_BYTES) // (4 * players)) < 1:
        with pytest.raises(DemoError, match="ends"):
            parse_demo(data, "a demo")
    else:
        read = parse_demo(data, "a demo")
        assert np.array_equal(read.commands, demo.commands[:tics]) and not read.ended


@settings(max_examples=300)
@given(st.one_of(st.binary(max_size=60), st.binary(max_size=80).map(lambda tail: bytes([109]) + tail)))
def test_any_bytes_are_a_demo_or_an_error(data: bytes) -> None:
    try:
        demo = parse_demo(data, "a demo")
    except DemoError as error:
        assert str(error).startswith("a demo ")
    else:
        assert len(demo.commands) >= 1 and demo.present[demo.viewed]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (HEADER[:9], "header"),
        (HEADER, "first tic"),
        (HEADER + b"\x80", "first tic"),
        (HEADER + TIC[:3], "first tic"),
        (bytes([2]) + HEADER[1:] + TIC, "1.2"),
        (bytes([203]) + HEADER[1:] + TIC, "203"),
        (b"IWAD" + bytes(40), "1.9"),
        (HEADER[:1] + b"\x05" + HEADER[2:] + TIC, "skill"),
        (HEADER[:4] + b"\x01" + HEADER[5:] + TIC, "deathmatch"),
        (HEADER[:8] + b"\x01" + HEADER[9:] + TIC, "player 2"),
        (HEADER[:8] + b"\xff" + HEADER[9:] + TIC, "player 256"),
        (HEADER[:9] + bytes(4) + TIC, "player 1"),
        (HEADER[:3] + b"\x09" + HEADER[4:] + TIC + b"\x80", "E1M9"),
        (HEADER[:2] + b"\xc8" + HEADER[3:] + TIC + b"\x80", "E200M1"),
    ],
)
def test_the_command_says_what_is_wrong(data: bytes, words: str, tmp_path: Path, capsys) -> None:
    (tmp_path / "tiny.wad").write_bytes(build(lumps()))
    (tmp_path / "broken.lmp").write_bytes(data)
    assert main(["doom", "demo", str(tmp_path / "broken.lmp"), "--wad", str(tmp_path / "tiny.wad")]) == 2
    said = capsys.readouterr()
    assert words in said.err and said.err.count("\n") == 1 and not said.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none.lmp"], "none.lmp"),
        (["."], "no demo"),
        (["DEMO4"], "it has DEMO1"),
        (["good.lmp", "--lanes", "0"], "serial"),
        (["good.lmp", "--lanes", "backwards"], "serial"),
        (["good.lmp", "--frames", "1,two"], "0,350,700"),
        (["good.lmp", "--frames", "2"], "0 to 1"),
        (["good.lmp", "--trace", "nowhere/t.npz"], "nowhere"),
        (["good.lmp", "--trace", "."], "folder"),
        (["good.lmp", "--trace", "/dev/null"], "/dev/null"),
    ],
)
def test_options_that_cannot_be(arguments: list[str], words: str, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tiny.wad").write_bytes(build(lumps()))
    Path("good.lmp").write_bytes(HEADER + TIC * 2 + b"\x80")
    assert main(["doom", "demo", *arguments, "--wad", "tiny.wad"]) == 2
    said = capsys.readouterr()
    assert words in said.err and said.err.count("\n") == 1 and not said.out


def test_a_full_disk_leaves_no_part_of_a_trace_or_frame(tmp_path: Path, capsys) -> None:
    """Played by a limit on the size of files, which fails a write as a full disk does."""
    (tmp_path / "tiny.wad").write_bytes(build(lumps()))
    (tmp_path / "good.lmp").write_bytes(HEADER + TIC * 40 + b"\x80")
    command = ["doom", "demo", str(tmp_path / "good.lmp"), "--wad", str(tmp_path / "tiny.wad")]
    assert main([*command, "--trace", str(tmp_path / "t.npz")]) == 0
    whole = (tmp_path / "t.npz").read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    for arguments, words in (
        (["--trace", str(tmp_path / "t.npz")], "another place"),
        (["--frames", "39", "-o", str(tmp_path / "frames")], "another folder with -o"),
    ):
        capsys.readouterr()
        resource.setrlimit(resource.RLIMIT_FSIZE, (500, limits[1]))
        try:
            assert main([*command, *arguments]) == 2
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        _, said = capsys.readouterr().err.splitlines()
        assert words in said and "recorded" not in said
    assert (tmp_path / "t.npz").read_bytes() == whole
    assert {path.name for path in tmp_path.rglob("*")} == {"tiny.wad", "good.lmp", "t.npz", "frames"}


def test_a_demo_of_an_older_version_in_a_made_up_wad(tmp_path: Path, capsys) -> None:
    (tmp_path / "tiny.wad").write_bytes(build(lumps()))
    (tmp_path / "old.lmp").write_bytes(bytes([106]) + HEADER[1:] + TIC * 40)
    arguments = [str(tmp_path / "old.lmp"), "--wad", str(tmp_path / "tiny.wad"), "--frames", "39", "-o", str(tmp_path)]
    assert main(["doom", "demo", *arguments]) == 0
    said = capsys.readouterr().out
    assert "40 tics" in said and "1.666" in said and "without the mark of the end" in said
    assert (tmp_path / "tic-000039.png").is_file()
