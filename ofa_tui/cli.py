"""`ofa-tui` and its sub-commands. Thin: parse, call, turn errors into one sentence and an exit code."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from ofa_tui import __version__, locations, settings
from ofa_tui.errors import OfaError

DESCRIPTION = """\
One resident kernel trains a language model, serves its changing weights and runs Doom,
watched and steered from this terminal. Without --record the terminal UI starts."""

SUBCOMMANDS: dict[str, tuple[str, str]] = {
    "replay": ("ofa_tui.commands.replay", "show a recorded run in the terminal UI"),
    "doom": ("ofa_tui.commands.doom", "play a Doom demo, with its trace or frames"),
    "eval": ("ofa_tui.commands.evaluate", "measure a checkpoint on held-out text"),
    "prepare": ("ofa_tui.data.prepare", "tokenise a corpus ahead of time"),
    "doctor": ("ofa_tui.commands.doctor", "say what a run on the GPU needs and whether it is here"),
    "trace": ("ofa_tui.commands.trace", "time every task of a run, as a table and for Chrome or Perfetto"),
    "program": ("ofa_tui.commands.program", "print or simulate the task programs a preset compiles to"),
}
"""name → (module with add_arguments(parser) and run(args) -> int, help)."""


class _Parser(argparse.ArgumentParser):
    """Reports a wrong option like every other error: one sentence, no usage text."""

    def error(self, message: str) -> NoReturn:
        raise OfaError(f"{message}; see {self.prog} --help")


def _main_parser() -> argparse.ArgumentParser:
    commands = "\n".join(f"  {name:<10} {text}" for name, (_, text) in SUBCOMMANDS.items())
    parser = _Parser(
        prog="ofa-tui",
        description=DESCRIPTION,
        epilog=f"sub-commands (each has --help):\n{commands}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"ofa-tui {__version__}")
    settings.add_arguments(parser)
    record = parser.add_argument_group("recording (no terminal needed)")
    record.add_argument("--record", type=Path, metavar="DIR", help="run headless and write everything into DIR")
    record.add_argument("--frame-every", type=float, default=10.0, metavar="S",
                        help="seconds between two PNG frames (default: 10)")
    record.add_argument("--doom-demo", type=Path, metavar="OUT.lmp", help="write Doom's player down as a demo")
    screen = parser.add_argument_group("the terminal")
    screen.add_argument("--theme", metavar="NAME", help="colour theme")
    screen.add_argument("--reduced-motion", action="store_true", help="repaint as little as possible")
    return parser


def _run(args: argparse.Namespace) -> int:
    chosen = _resumed(args) if args.resume is not None else settings.from_arguments(args)
    if not 0.1 <= args.frame_every <= 1e9:
        raise OfaError(f"--frame-every {args.frame_every:g} cannot be; choose 0.1 seconds or more")
    if args.record is not None:
        from ofa_tui.commands.record import record_run
        from ofa_tui.tui.theme import check_theme

        if args.theme is not None:
            check_theme(args.theme)
        return record_run(chosen, args.record, frame_every_s=args.frame_every, doom_demo=args.doom_demo)
    if args.doom_demo is not None:
        raise OfaError("--doom-demo needs --record DIR: a demo is written while a run is recorded")
    from ofa_tui.commands.watch import watch_run

    return watch_run(chosen, theme=args.theme, reduced_motion=args.reduced_motion)


def _resumed(args: argparse.Namespace) -> settings.Settings:
    from ofa_tui.checkpoint.checkpoint import find_checkpoint

    checkpoint, broken = find_checkpoint(args.resume)
    for sentence in broken:
        print(f"ofa-tui: {sentence.partition(';')[0]}; going on from an older one", file=sys.stderr)
    args.resume = checkpoint.path
    chosen = settings.from_arguments(args, before=checkpoint.settings)
    checkpoint.identity.check_preset(checkpoint.path, chosen.preset.name)
    return chosen


def _sub_command(name: str, arguments: list[str]) -> int:
    import importlib

    module_name, text = SUBCOMMANDS[name]
    module = importlib.import_module(module_name)
    parser = _Parser(prog=f"ofa-tui {name}", description=text)
    module.add_arguments(parser)
    return module.run(parser.parse_args(arguments))


def _dispatch(arguments: list[str]) -> int:
    if arguments and arguments[0] in SUBCOMMANDS:
        return _sub_command(arguments[0], arguments[1:])
    if arguments and not arguments[0].startswith("-"):
        raise OfaError(f"there is no sub-command {arguments[0]!r}; choose {', '.join(SUBCOMMANDS)}, or see --help")
    return _run(_main_parser().parse_args(arguments))


def _report_bug() -> int:
    """An error nobody foresaw: the traceback goes into a file, a sentence to the user."""
    log = locations.cache() / "crash.log"
    with contextlib.suppress(OSError):
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(traceback.format_exc())
    kind, error, _ = sys.exc_info()
    name = kind.__name__ if kind else "error"
    print(f"ofa-tui: internal error ({name}: {error}); this is a bug, please report it with {log}", file=sys.stderr)
    return 70


def guarded(work: Callable[[], int]) -> int:
    """Runs `work`; every failure becomes one line on stderr and an exit code."""
    try:
        return work()
    except OfaError as error:
        print(f"ofa-tui: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("ofa-tui: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader went away; nothing more can be said, not even at interpreter exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except Exception:
        if os.environ.get("OFA_TUI_DEBUG"):
            raise
        return _report_bug()


def main(argv: list[str] | None = None) -> int:
    arguments = sys.argv[1:] if argv is None else argv
    return guarded(lambda: _dispatch(arguments))


if __name__ == "__main__":
    sys.exit(main())
