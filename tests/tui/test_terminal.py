"""What can be refused before starting, and that the terminal and the engine survive every way out."""

from __future__ import annotations

import ast
import codecs
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from fake_run import FakeEngine
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from slow_link import spawn, wait_exit, watch
from text_screen import TextScreen

import ofa_tui.tui
from ofa_tui.engine.replay import ReplayEngine
from ofa_tui.errors import AbortedError, OfaError
from ofa_tui.tui import screenshot
from ofa_tui.tui.colour import Depth, detect_depth
from ofa_tui.tui.glyphs import character_set, look_alike
from ofa_tui.tui.lines import run_lines
from ofa_tui.tui.terminal import check_terminal, input_closed
from tests.record.fake_engine import FrozenClock, record_fake

ROOT = Path(__file__).resolve().parents[2]
DEMO = str(Path(__file__).with_name("demo.py"))


def environment(**changes: str) -> dict[str, str]:
    """Without a size either: a process that tests in parallel is told one that is not the terminal's."""
    base = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "TEXTUAL_DRIVER", "LINES", "COLUMNS")}
    return {**base, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT), **changes}


def plain_environment(**changes: str) -> dict[str, str]:
    """Without anything that says what the terminal shows but `changes`."""
    says = ("LANG", "LC_ALL", "LC_CTYPE", "COLORTERM", "TMUX", "STY", "PYTHONIOENCODING", "PYTHONUTF8")
    return {k: v for k, v in environment().items() if k not in says} | changes


def test_pipes_are_refused_before_anything_starts() -> None:
    command = [sys.executable, DEMO]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), stdin=subprocess.DEVNULL)
    assert done.returncode == 2
    assert done.stdout == "" and done.stderr.count("\n") == 1 and "--record" in done.stderr


INDEXED, DIRECT = {"38;5", "48;5"}, {"38;2", "48;2"}
PLAIN = {"0", "1", "22", "7", "27"}
SIXTEEN = {str(first + colour) for first in (30, 40, 90, 100) for colour in range(8)}


@dataclass(frozen=True)
class Kind:
    """A terminal: what its environment says, the characters it has, the renditions it knows."""

    environ: dict[str, str]
    codec: str
    renditions: set[str]
    second_screen: bool = True


KINDS = {
    "xterm-256color": Kind({"TERM": "xterm-256color", "LANG": "en_US.UTF-8"}, "utf-8", PLAIN | INDEXED),
    "no-locale": Kind({"TERM": "xterm-256color"}, "utf-8", PLAIN | INDEXED),
    "xterm-direct": Kind({"TERM": "xterm-direct", "LANG": "C.UTF-8"}, "utf-8", PLAIN | DIRECT),
    "linux": Kind({"TERM": "linux", "LANG": "C.UTF-8"}, "cp437", PLAIN | SIXTEEN, False),
    # Dialogs are Textual's, which knows no terminal without colours; one that has none reads over them.
    "vt220": Kind({"TERM": "vt220", "LANG": "C.UTF-8"}, "utf-8", PLAIN | SIXTEEN),
    "lang-c": Kind({"TERM": "xterm-256color", "LANG": "C"}, "ascii", PLAIN | INDEXED),
    "lc-all-c": Kind({"TERM": "xterm", "LC_ALL": "POSIX", "LANG": "en_US.UTF-8"}, "ascii", PLAIN | SIXTEEN),
    "latin-1": Kind({"TERM": "xterm-256color", "PYTHONIOENCODING": "iso8859-1"}, "iso8859-1", PLAIN | INDEXED),
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_what_is_drawn_is_what_the_terminal_knows(kind: Kind) -> None:
    """Characters, colours and functions of a whole session, a dialog of Textual's own among it."""
    pid, terminal = spawn([sys.executable, DEMO, "--report-stop"], 100, 34, plain_environment(**kind.environ))
    before = termios.tcgetattr(terminal)
    screen = TextScreen(100, 34, second_screen=kind.second_screen)
    # What has come may end in the midst of a character.
    decoder = codecs.getincrementaldecoder("utf-8" if kind.codec == "cp437" else kind.codec)()
    sent = watch(pid, terminal, seconds=0.0, settle=30.0, until=b"space").output
    sent += watch(pid, terminal, seconds=0.0, settle=2.0).output
    screen.feed(decoder.decode(sent))
    shown = screen.text()
    assert "1 doom" in shown and "3 loss" in shown and "space pause" in shown
    assert "\n" * 3 not in shown, "no pane is empty"
    os.write(terminal, b"?")
    sent = watch(pid, terminal, seconds=0.0, settle=2.0).output
    os.write(terminal, b"\x03")
    rest = bytearray()
    assert wait_exit(pid, terminal, 20.0, rest) == 0
    screen.feed(decoder.decode(sent + rest, final=True))
    assert not screen.unknown
    assert set(screen.sgr) <= kind.renditions
    assert "".join(screen.seen).encode(kind.codec)
    left = screen.text().split()
    assert left[:2] == ["engine", "stopped"] and "doom" not in left
    assert not screen.alternate and screen.modes <= {"7", "25"}, "wrapping, and a cursor that shows"
    assert termios.tcgetattr(terminal) == before


def test_a_dumb_terminal_gets_lines_with_a_hint() -> None:
    pid, terminal = spawn([sys.executable, DEMO, "--report-stop"], 80, 24, plain_environment(TERM="dumb"))
    before = termios.tcgetattr(terminal)
    report = watch(pid, terminal, seconds=0.0, settle=30.0, until=b"tokens/s")
    os.write(terminal, b"\x03")
    output = bytearray(report.output)
    assert wait_exit(pid, terminal, 20.0, output) == 130
    lines = output.decode("ascii").replace("\r\n", "\n").splitlines()
    assert "TERM='dumb'" in lines[0] and "--record DIR" in lines[0]
    assert re.match(r"running: \d+%, step \d+/3000, loss \d\.\d+, held out", lines[1])
    assert lines[-2].endswith("engine stopped") and "running: step" in lines[-1] and "took" in lines[-1]
    assert "\x1b" not in output.decode() and termios.tcgetattr(terminal) == before


def test_lines_of_a_replay_end_with_it_and_advise_nothing_that_only_a_live_run_can_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = FrozenClock()
    record_fake(tmp_path / "run")
    says = json.loads((tmp_path / "run" / "summary.json").read_text())
    for reason in ("finished", "killed"):
        (tmp_path / "run" / "summary.json").write_text(json.dumps(says | {"exit_reason": reason}))
        assert run_lines(ReplayEngine(tmp_path / "run", clock=clock), "dumb", sleep=clock.sleep) == 0
        said = capsys.readouterr().err
        assert "the replay goes by in lines" in said and "report and export --cast" in said
        assert "--record" not in said


@pytest.mark.parametrize("replay", [False, True])
def test_any_size_will_do_and_a_pipe_is_refused_with_a_way_out(replay: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "1")
    monkeypatch.setenv("LINES", "1")
    near, far = os.openpty()
    with open(far, "w") as terminal, open(os.devnull, "w") as pipe:
        for name in ("__stdin__", "__stdout__", "__stderr__"):
            monkeypatch.setattr(sys, name, terminal)
        check_terminal({"TERM": "xterm"}, replay=replay)
        monkeypatch.setattr(sys, "__stdout__", pipe)
        with pytest.raises(OfaError, match="standard output is not one") as failure:
            check_terminal({"TERM": "xterm"}, replay=replay)
    os.close(near)
    assert ("--record" in str(failure.value), "export --cast" in str(failure.value)) == (not replay, replay)


def test_lines_end_with_the_run_and_its_errors() -> None:
    engine = FakeEngine(steps=40)
    assert run_lines(engine, "dumb", sleep=lambda _: None) == 0
    assert engine.stopped and engine.poll().steps_done == 40
    broken = FakeEngine()
    broken.abort = "invented abort"
    with pytest.raises(AbortedError, match="invented abort"):
        run_lines(broken, "dumb", sleep=lambda _: None)
    assert broken.stopped


@pytest.mark.parametrize("host", ["tmux", "screen"])
def test_inside_a_multiplexer_the_picture_shows_and_leaves_nothing_behind(host: str, tmp_path: Path) -> None:
    if not shutil.which(host):
        pytest.skip(f"{host} is not installed")
    script = tmp_path / "script"
    script.write_text(f"echo before\n{sys.executable} {DEMO} --report-stop\necho it left with $?\nsleep 1\n")
    folder = tmp_path / "sockets"
    folder.mkdir(mode=0o700)
    multiplexer = {"tmux": ["tmux", "-f", "/dev/null", "new-session"], "screen": ["screen", "-U", "-c", "/dev/null"]}
    environ = plain_environment(LC_ALL="C.UTF-8", TMUX_TMPDIR=str(folder), SCREENDIR=str(folder))
    pid, terminal = spawn([*multiplexer[host], "sh", str(script)], 100, 34, environ)
    before = termios.tcgetattr(terminal)
    screen = TextScreen(100, 34)
    # tmux drops what waits for a terminal that is behind, in the midst of a character too, and draws all again.
    decode = codecs.getincrementaldecoder("utf-8")("replace").decode
    screen.feed(decode(watch(pid, terminal, seconds=0.0, settle=30.0, until=b"space").output))
    screen.feed(decode(watch(pid, terminal, seconds=0.0, settle=2.5).output))
    shown = screen.text()
    assert "1 doom" in shown and "3 loss" in shown and "space pause" in shown
    assert set(shown) & set("▀▄▌▐▞▚"), "the picture"
    os.write(terminal, b"\x03")
    screen.feed(decode(watch(pid, terminal, seconds=0.0, settle=20.0, until=b"it left with").output))
    screen.feed(decode(watch(pid, terminal, seconds=0.0, settle=0.3).output))
    assert "it left with 0" in screen.text() and "engine stopped" in screen.text()
    assert not {"doom", "loss", "pause"} & set(screen.text().replace("loss 2", "").split())
    assert {"1000", "1003", "1006"}.isdisjoint(screen.modes), "the mouse is the multiplexer's again"
    rest = bytearray()
    assert wait_exit(pid, terminal, 20.0, rest) == 0
    assert termios.tcgetattr(terminal) == before


@given(st.text())
def test_look_alikes_are_there_and_as_wide(text: str) -> None:
    for codec in ("ascii", "cp437", "iso8859-1"):
        shown = look_alike(text, codec)
        assert shown.encode(codec) or not shown
        assert [cell_len(c) for c in text if c.isprintable()] == [
            sum(map(cell_len, look_alike(c, codec))) for c in text if c.isprintable()
        ]


def literals(path: Path) -> Iterator[str]:
    """Of a source, without its docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    explained = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in explained:
            yield node.value


@pytest.mark.parametrize("codec", ["ascii", "cp437", "iso8859-1"])
def test_every_character_that_the_ui_draws_has_a_look_alike(codec: str) -> None:
    sources = set(Path(ofa_tui.tui.__file__).parent.rglob("*.py")) - {Path(screenshot.__file__)}  # has its own font
    drawn = {character for path in sources for text in literals(path) for character in text}
    assert {"►", "◆", "·", "╭"} <= drawn
    assert not {c for c in drawn if "?" in look_alike(c, codec)} - {"?"}


@pytest.mark.parametrize(
    ("environ", "codec"),
    [
        ({}, "utf-8"),
        ({"LANG": "de_DE.UTF-8"}, "utf-8"),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, "ascii"),  # as Python changes the locale C for itself
        ({"LANG": "C", "LC_CTYPE": "en_US.UTF-8"}, "utf-8"),
        ({"LANG": "C", "LC_ALL": "C.UTF-8"}, "utf-8"),
        ({"LC_CTYPE": "C.UTF-8"}, "utf-8"),
        ({"TERM": "linux", "LANG": "C.UTF-8"}, "cp437"),
        ({"TERM": "linux", "LC_ALL": "C"}, "ascii"),
        ({"LC_ALL": "C", "TEXTUAL_DRIVER": "textual.drivers.web_driver:WebDriver"}, "utf-8"),
    ],
)
def test_the_locale_says_which_characters_there_are(environ: dict[str, str], codec: str) -> None:
    assert character_set(environ) == codec


def test_depths() -> None:
    assert detect_depth({"TERM": "xterm-256color", "COLORTERM": "truecolor"}) is Depth.TRUECOLOR
    assert detect_depth({"TERM": "screen-256color"}) is Depth.EIGHT_BIT
    assert detect_depth({"TERM": "linux", "TEXTUAL_COLOR_SYSTEM": "truecolor"}) is Depth.TRUECOLOR
    assert detect_depth({"TERM": "linux"}) is Depth.FOUR_BIT
    assert detect_depth({"TERM": "vt100"}) is Depth.NONE
    assert detect_depth({"TERM": "xterm-256color", "COLORTERM": "truecolor", "NO_COLOR": "1"}) is Depth.NONE


def test_a_closed_pipe_is_noticed() -> None:
    reader, writer = os.pipe()
    assert not input_closed(reader)
    os.close(writer)
    assert input_closed(reader)
    os.close(reader)


START, RESTORED = b"\x1b[?1049h", (b"\x1b[?1049l", b"\x1b[?25h", b"\x1b[?1000l", b"\x1b[?2004l")


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ("ctrl-c", 0),
        pytest.param("SIGINT", 130, marks=pytest.mark.slow),
        ("SIGTERM", 143),
        ("SIGHUP", 129),
        ("abort", 3),
        ("crash", 2),
        ("bug", 70),
    ],
)
def test_every_way_out_restores_the_terminal(how: str, code: int) -> None:
    extra = ["--fail", how] if how in ("abort", "crash", "bug") else []
    pid, terminal = spawn([sys.executable, DEMO, "--report-stop", *extra], 100, 30, environment())
    report = watch(pid, terminal, seconds=0.0, settle=20.0, until=b"ofa-tui")
    assert START in report.output
    if how == "ctrl-c":
        os.write(terminal, b"\x03")
    elif how == "abort":
        watch(pid, terminal, seconds=0.0, settle=20.0, until=b"invented abort")
        os.write(terminal, b"q")
    elif how.startswith("SIG"):
        os.kill(pid, getattr(signal, how))
    output = bytearray()
    assert wait_exit(pid, terminal, 20.0, output) == code
    assert all(sequence in output for sequence in RESTORED)
    assert b"engine stopped" in output
    if extra:
        assert f"invented {how}".encode() in output.split(RESTORED[0])[-1], "said on the restored screen"
        assert re.search(rb"ofa-tui: step \d+ of 3,000 \S+ loss \d", output.split(RESTORED[0])[-1])
        assert b"Traceback" not in output


def test_a_terminal_that_goes_away_ends_the_run() -> None:
    """Closing the far side hangs up: no process and no engine may stay behind."""
    pid, terminal = spawn([sys.executable, DEMO], 100, 30, environment())
    watch(pid, terminal, seconds=0.0, settle=20.0, until=b"ofa-tui")
    os.close(terminal)
    assert wait_exit(pid, -1, 25.0) in (129, 1, -signal.SIGHUP)
