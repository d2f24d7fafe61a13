"""`ofa-tui` and its sub-commands. Thin: parse, call, turn errors into one sentence and an exit code.

What takes a moment to import is imported where it is used, so that Ctrl-C in that moment is one sentence too.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NoReturn, TextIO, cast

from ofa_tui import __version__
from ofa_tui.console import say
from ofa_tui.errors import OfaError
from ofa_tui.installation import command

if TYPE_CHECKING:
    from ofa_tui.http.server import Endpoint
    from ofa_tui.settings import Settings

DESCRIPTION = """\
One resident kernel trains a language model, serves its changing weights and runs Doom,
watched and steered from this terminal. Without --record the terminal UI starts."""

SUBCOMMANDS: dict[str, tuple[str, str]] = {
    "replay": ("ofa_tui.commands.replay", "show a recorded run in the terminal UI"),
    "runs": ("ofa_tui.commands.runs", "list recorded runs with their figures"),
    "report": ("ofa_tui.commands.report", "make a web page of a recorded run, with its plots, texts and frames"),
    "screenshot": ("ofa_tui.commands.screenshot", "picture the terminal UI, of a recorded run or a new one"),
    "export": ("ofa_tui.commands.export", "make a film of a recorded run's Doom, a cast of its UI, a smaller record"),
    "doom": ("ofa_tui.commands.doom", "play a Doom demo, with its trace or frames"),
    "eval": ("ofa_tui.commands.evaluate", "measure a checkpoint on held-out text"),
    "prepare": ("ofa_tui.data.prepare", "tokenise a corpus ahead of time"),
    "doctor": ("ofa_tui.commands.doctor", "say what a run on the GPU needs and whether it is here"),
    "trace": ("ofa_tui.commands.trace", "time every task of a run, as a table and for Chrome or Perfetto"),
    "keys": ("ofa_tui.commands.keys", "print the UI's keys, or a settings file to begin with"),
    "program": ("ofa_tui.commands.program", "print or simulate the task programs a preset compiles to"),
}
"""name → (module with add_arguments(parser) and run(args) -> int, help)."""


class _Parser(argparse.ArgumentParser):
    """Reports a wrong option like every other error: one sentence, no usage text."""

    def error(self, message: str) -> NoReturn:
        raise OfaError(f"{message}; see {self.prog} --help")


def _main_parser() -> argparse.ArgumentParser:
    from ofa_tui import settings
    from ofa_tui.http import options as http

    commands = "\n".join(f"  {name:<10} {text}" for name, (_, text) in SUBCOMMANDS.items())
    parser = _Parser(
        prog=command(),
        description=DESCRIPTION,
        epilog=f"sub-commands (each has --help):\n{commands}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"ofa-tui {__version__}")
    settings.add_arguments(parser)
    record = parser.add_argument_group("recording (no terminal needed)")
    record.add_argument("--record", type=settings.named_path, metavar="DIR",
                        help="run headless and write everything into DIR")
    record.add_argument("--frame-every", type=float, default=10.0, metavar="S",
                        help="seconds between two PNG frames (default: 10)")
    record.add_argument("--cast", default="", metavar="COLUMNSxROWS",
                        help="write the UI at that size down too, as an asciicast, 10 frames a second at most")
    record.add_argument("--doom-demo", type=settings.named_path, metavar="OUT.lmp",
                        help="write Doom's player down as a demo")
    http.add_arguments(parser)
    screen = parser.add_argument_group("the terminal")
    screen.add_argument("--theme", metavar="NAME", help="colour theme")
    screen.add_argument("--reduced-motion", action="store_true", help="repaint as little as possible")
    return parser


def _run(args: argparse.Namespace) -> int:
    from ofa_tui import settings
    from ofa_tui.commands.screen_size import parse_size

    chosen = _resumed(args) if args.resume is not None else settings.from_arguments(args)
    if not 0.1 <= args.frame_every <= 1e9:
        raise OfaError(f"--frame-every {args.frame_every:g} cannot be; choose 0.1 seconds or more")
    cast = parse_size(args.cast, "--cast") if args.cast else None
    if args.record is not None:
        from ofa_tui.commands.record import record_run
        from ofa_tui.tui.theme import check_theme

        if args.theme is not None:
            check_theme(args.theme)
        return record_run(chosen, args.record, frame_every_s=args.frame_every, doom_demo=args.doom_demo,
                          endpoint=_endpoint(args), cast=cast, theme=args.theme or "")
    if cast is not None:
        raise OfaError("--cast needs --record DIR: the UI is written down while a run is recorded")
    if args.doom_demo is not None:
        raise OfaError("--doom-demo needs --record DIR: a demo is written while a run is recorded")
    from ofa_tui.commands.watch import watch_run

    return watch_run(chosen, theme=args.theme, reduced_motion=args.reduced_motion, endpoint=_endpoint(args))


def _endpoint(args: argparse.Namespace) -> Endpoint | None:
    from ofa_tui.http import options

    chosen = options.from_arguments(args)
    if chosen is None:
        return None
    from ofa_tui.http.server import Endpoint

    return Endpoint(chosen)


def _resumed(args: argparse.Namespace) -> Settings:
    from ofa_tui import settings
    from ofa_tui.checkpoint.checkpoint import find_checkpoint

    checkpoint, broken = find_checkpoint(args.resume)
    for sentence in broken:
        say(f"ofa-tui: {sentence.partition(';')[0]}; going on from an older one")
    args.resume = checkpoint.path
    chosen = settings.from_arguments(args, before=checkpoint.options())
    checkpoint.identity.check_preset(checkpoint.path, chosen.preset.name)
    return chosen


def _sub_command(name: str, arguments: list[str]) -> int:
    import importlib

    module_name, text = SUBCOMMANDS[name]
    module = importlib.import_module(module_name)
    parser = _Parser(prog=f"{command()} {name}", description=text)
    module.add_arguments(parser)
    return module.run(parser.parse_args(arguments))


def _dispatch(arguments: list[str]) -> int:
    if arguments and arguments[0] in SUBCOMMANDS:
        return _sub_command(arguments[0], arguments[1:])
    if arguments and not arguments[0].startswith("-"):
        raise OfaError(f"there is no sub-command {arguments[0]!r}; choose {', '.join(SUBCOMMANDS)}, or see --help")
    return _run(_main_parser().parse_args(arguments))


def _report_bug(error: Exception) -> int:
    """An error nobody foresaw: the traceback goes into a file, a sentence to the user."""
    from ofa_tui.crash import write_crash_log

    log = write_crash_log(error)
    say(f"ofa-tui: internal error ({type(error).__name__}: {error}); this is a bug, please report it with {log}")
    return 70


class _Output:
    """Standard output that remembers why it could not be written."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.failure: OSError | None = None

    def write(self, text: str) -> int:
        with self._remembering():
            return self._stream.write(text)

    def flush(self) -> None:
        with self._remembering():
            self._stream.flush()

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)

    def finish(self) -> None:
        """Hands on what is held back; where that fails, keeps the interpreter from trying it again as it exits."""
        with contextlib.suppress(OSError):
            self.flush()
        if self.failure:
            with contextlib.suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())

    @contextlib.contextmanager
    def _remembering(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.failure = error
            raise


def _report_output(failure: OSError) -> int:
    if isinstance(failure, BrokenPipeError):  # the reader has all it wanted
        return 128 + signal.SIGPIPE
    say(f"ofa-tui: standard output cannot be written ({failure.strerror}); make room, or send it elsewhere")
    return OfaError.exit_code


def _reported(work: Callable[[], int], output: _Output) -> int:
    try:
        return work()
    except OfaError as error:
        say(f"ofa-tui: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        say("ofa-tui: interrupted")
        return 128 + signal.SIGINT
    except Exception as error:
        if error is output.failure:
            return 0
        if os.environ.get("OFA_TUI_DEBUG"):
            raise
        return _report_bug(error)


def guarded(work: Callable[[], int]) -> int:
    """Runs `work`; every failure, of standard output too, becomes one line on stderr and an exit code."""
    output = _Output(sys.stdout or io.StringIO())
    with contextlib.redirect_stdout(cast(TextIO, output)):
        try:
            code = _reported(work, output)
        except SystemExit:  # argparse printed its help
            code = 0
        output.finish()
    failed = _report_output(output.failure) if output.failure else 0
    return code or failed


def main(argv: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if argv is None else argv
    return guarded(lambda: _dispatch(arguments))


if __name__ == "__main__":
    sys.exit(main())
