#!/usr/bin/env python3
"""Hours of the terminal UI in minutes: a run at ten times its speed in a pseudo-terminal, under random keys.

    scripts/tui_soak.py                              # an invented run: 8 hours of it in 48 minutes
    scripts/tui_soak.py --of replay --minutes 20     # the replay of a record, again and again
    scripts/tui_soak.py --of out --seed 7            # of this record
    scripts/tui_soak.py --again soak.jsonl           # the keys of a soak that failed, at their times

Keys, clicks, pasted text and resizes are drawn by hypothesis from --seed. It fails where the UI ends by itself, says a
traceback, stands still for STILL_S, or grows: memory may rise by what the run itself keeps, 16 bytes a step and a
little for each held-out loss, and no more than can be told from nothing. Memory is judged where LEAST_JUDGED_S are left
behind WARM_UP_S: from 18 minutes on.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import math
import os
import pty
import select
import shutil
import signal
import struct
import sys
import tempfile
import termios
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil
from hypothesis import HealthCheck, Phase, configuration, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "tui"))

from fake_run import FakeEngine

from ofa_tui.record.writer import RunWriter
from ofa_tui.tui.actions import ACTIONS

ROOT = Path(__file__).resolve().parents[1]
CHAPTER_S = 6.0
"""How long one drawn list of keys is spread over."""
STILL_S = 20.0
"""Without a word to the terminal for so long it hangs: it asks for a report with every frame."""
FIRST_S, END_S = 3.0, 30.0
"""What it gets before the first key, and after the last."""
WARM_UP_S = 480.0
"""Bounded caches of styles and regions fill meanwhile, 26 MB of them; memory counts from then on."""
LEAST_JUDGED_S = 600.0
FLAT_BYTES_PER_MIN = 100_000
"""A growth below this, 144 MB in a day, counts as none."""
RECORD_S = 120.0
STEPS_PER_S = 18
"""Of the invented run."""
BYTES_PER_STEP = 16 + 2
"""What the curve keeps of a step, and its share of a held-out loss, one in a hundred steps."""

NAMED = {"space": " ", "enter": "\r", "escape": "\x1b", "tab": "\t", "left": "\x1b[D", "right": "\x1b[C",
         "up": "\x1b[A", "down": "\x1b[B", "home": "\x1b[H", "end": "\x1b[F"}  # fmt: skip
NOT_ALONE = ("quit", "quit_now", "pause")
KEYS = [NAMED.get(key, key) for action in ACTIONS for key in action.keys if action.name not in NOT_ALONE]
PAUSE_S = 0.7


# --- what is done to it ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Deed:
    """Bytes that the terminal sends, or a size (columns, rows) that it takes."""

    kind: str
    keys: str = ""
    size: tuple[int, int] = (0, 0)


def _click(place: tuple[int, int]) -> Deed:
    """xterm's SGR mouse protocol: button 1 down and up."""
    x, y = place
    return Deed("click", f"\x1b[<0;{x};{y}M\x1b[<0;{x};{y}m")


DEEDS = st.one_of(
    st.sampled_from(KEYS).map(lambda key: Deed("key", key)),
    st.sampled_from(KEYS).map(lambda key: Deed("key", key)),
    st.sampled_from("abcdefghijklmnoprstuvwxyz0123456789").map(lambda key: Deed("key", key)),
    st.text("ab é日🙂\t", max_size=20).map(lambda text: Deed("paste", f"\x1b[200~{text}\x1b[201~")),
    st.sampled_from(["\x1b", "\x1b", "\x1b", "\x1b[I", "\x1b[O", "\x1b[5~"]).map(lambda key: Deed("key", key)),
    st.just(Deed("pause", " ")),
    st.tuples(st.integers(1, 200), st.integers(1, 60)).map(_click),
    st.one_of(
        st.sampled_from([(200, 60), (120, 40), (80, 24)]),
        st.tuples(st.integers(1, 220), st.integers(1, 64)),
    ).map(lambda size: Deed("resize", size=size)),
)
FROM_BEGIN = Deed("key", NAMED["home"])
"""A replay that came to its end goes on."""
CHAPTER = st.lists(DEEDS, min_size=15, max_size=60)


# --- the terminal ---------------------------------------------------------------------------------------------------


class Failed(Exception):
    """The UI did what it must not; the sentence says what."""


@dataclass
class Life:
    """One process of the UI."""

    began: float
    memory: list[tuple[float, int]] = field(default_factory=list)
    """(seconds since the soak began, resident bytes)"""


class Soak:
    """The UI's process in a pseudo-terminal; it is started again where the keys quit it."""

    def __init__(self, command: list[str], folder: Path, log: Path) -> None:
        self._command, self._folder = command, folder
        self._log = log.open("w", encoding="utf-8")
        self.began = time.monotonic()
        self.done: Counter[str] = Counter()
        self.pressed: Counter[str] = Counter()
        self.lives: list[Life] = []
        self.reports = 0
        self.read = 0
        self._tail = b""
        self._size = (120, 40)
        self._start()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    def _start(self) -> None:
        self._pid, self._terminal = pty.fork()
        if self._pid == 0:
            environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", "PYTHONPATH": str(ROOT)}
            for name in ("CONFIG", "STATE", "CACHE"):
                environment[f"OFA_TUI_{name}"] = str(self._folder / name.lower())
            os.chdir(self._folder)
            os.execvpe(self._command[0], self._command, environment)
        self._resize(self._size)
        self._process = psutil.Process(self._pid)
        self.lives.append(Life(self.seconds))
        self._heard_at = time.monotonic()

    def _resize(self, size: tuple[int, int]) -> None:
        self._size = size
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))

    def do(self, deed: Deed) -> None:
        self.done[deed.kind] += 1
        if deed.kind == "key":
            self.pressed[deed.keys] += 1
        entry = {"at": round(self.seconds, 3), "kind": deed.kind, "keys": deed.keys, "size": deed.size}
        self._log.write(json.dumps(entry) + "\n")
        self._log.flush()
        if deed.kind == "resize":
            self._resize(deed.size)
            return
        self._write(deed.keys)
        if deed.kind == "pause":
            self.follow(PAUSE_S)
            self._write(deed.keys)

    def _write(self, keys: str) -> None:
        with contextlib.suppress(OSError):  # it has just ended, which the next look finds
            os.write(self._terminal, keys.encode())

    def follow(self, seconds: float) -> None:
        """Reads and answers what comes for so long. Raises Failed."""
        end = time.monotonic() + seconds
        while (now := time.monotonic()) < end:
            if select.select([self._terminal], [], [], min(0.05, end - now))[0]:
                try:
                    data = os.read(self._terminal, 1 << 16)
                except OSError:
                    data = b""
                self._heard(data)
                if not data:
                    self._ended()
            if time.monotonic() - self._heard_at > STILL_S:
                raise Failed(f"it stood still for {STILL_S:.0f} s")

    def _heard(self, data: bytes) -> None:
        self._heard_at = time.monotonic()
        self.read += len(data)
        seen = self._tail + data
        asked = seen.count(b"\x1b[6n") - self._tail.count(b"\x1b[6n")
        self._tail = seen[-4000:]
        self.reports += asked
        self._write("\x1b[5;5R" * asked)

    def _ended(self) -> None:
        """It may have been quit, through the palette; whatever else ended it is a failure."""
        _, status = os.waitpid(self._pid, 0)
        os.close(self._terminal)
        code = os.waitstatus_to_exitcode(status)
        if code or b"Traceback" in self._tail or b"internal error" in self._tail:
            raise Failed(f"it ended with exit code {code}; its last words: {self.last_words()}")
        self.done["quit"] += 1
        self._start()

    def last_words(self) -> str:
        text = self._tail.rpartition(b"\x1b[?1049l")[2].decode(errors="replace")
        return "".join(c for c in text if c.isprintable() or c == "\n").strip()[-2000:]

    def weigh(self) -> None:
        self.lives[-1].memory.append((self.seconds, self._process.memory_info().rss))

    def look_for_failed_dialogs(self) -> None:
        """An error that only closed a dialog is printed and counted."""
        log = self._folder / "cache" / "crash.log"
        if log.exists():
            print(log.read_text(encoding="utf-8"), flush=True)
            log.unlink()
            self.done["failed dialog"] += 1

    def cpu_seconds(self) -> float:
        times = self._process.cpu_times()
        return times.user + times.system

    def end(self) -> None:
        """Ends it as a system that shuts down does. Raises Failed where it does not go."""
        os.kill(self._pid, signal.SIGTERM)
        deadline = time.monotonic() + END_S
        while time.monotonic() < deadline:
            if select.select([self._terminal], [], [], 0.05)[0]:
                with contextlib.suppress(OSError):
                    self._heard(os.read(self._terminal, 1 << 16))
            done, status = os.waitpid(self._pid, os.WNOHANG)
            if done:
                code = os.waitstatus_to_exitcode(status)
                if code != 128 + signal.SIGTERM:
                    raise Failed(f"after SIGTERM it ended with exit code {code}: {self.last_words()}")
                return
        raise Failed(f"SIGTERM did not end it within {END_S:.0f} s")

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)


# --- the soak -------------------------------------------------------------------------------------------------------


def soak(run: Soak, seed: int, chapters: int, first: list[Deed]) -> None:
    """So many chapters of `first` and drawn deeds, each CHAPTER_S long. Raises Failed."""
    failures: list[Failed] = []

    @seeded(seed)
    @settings(max_examples=chapters, phases=[Phase.generate], deadline=None, database=None, print_blob=False,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(CHAPTER)
    def chapter(deeds: list[Deed]) -> None:
        if failures:  # hypothesis tries a failure again; the process is gone
            raise failures[0]
        end = time.monotonic() + CHAPTER_S
        try:
            deeds = first + deeds
            for left, deed in zip(range(len(deeds), 0, -1), deeds, strict=True):
                run.do(deed)
                run.follow(max(0.0, end - time.monotonic()) / left)
        except Failed as failure:
            failures.append(failure)
            raise
        run.weigh()
        run.look_for_failed_dialogs()
        _tidy(run._folder)
        if len(run.lives[-1].memory) % 50 == 1:
            print(f"{run.seconds / 60:6.1f} min  {run.lives[-1].memory[-1][1] / 1e6:7.1f} MB  "
                  f"{sum(run.done.values()):,} deeds, {run.reports:,} frames", flush=True)  # fmt: skip

    chapter()


def again(run: Soak, path: Path) -> None:
    """The deeds of a log, at their times. Raises Failed."""
    for line in path.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        run.follow(max(0.0, entry["at"] - run.seconds))
        run.do(Deed(entry["kind"], entry["keys"], tuple(entry["size"])))
        run.weigh()
    run.follow(CHAPTER_S)


def _tidy(folder: Path) -> None:
    """Pictures and recordings that the keys made, but for the newest folder, which may be written still."""
    made = sorted((path for path in folder.iterdir() if path.name.startswith(("ofa-tui-", "doom-"))),
                  key=lambda path: path.stat().st_mtime)  # fmt: skip
    folders = [path for path in made if path.is_dir()]
    for path in folders[:-1]:
        shutil.rmtree(path, ignore_errors=True)
    for path in made:
        if path.is_file() and path.stat().st_mtime < time.time() - 10:
            path.unlink(missing_ok=True)


def slope_of(lives: Iterable[Life], warm_up_s: float) -> tuple[float, float, float]:
    """(bytes a minute, its standard error, seconds it rests on): one slope for all lives, each with its own level.

    Neighbouring samples are not independent, so means of tenths of each life are what the line is laid through.
    """
    times, values, seconds = [], [], 0.0
    for life in lives:
        kept = np.array([(at, size) for at, size in life.memory if at - life.began >= warm_up_s])
        if len(kept) < 20:
            continue
        blocks = np.array([block.mean(axis=0) for block in np.array_split(kept, 10)])
        seconds += kept[-1, 0] - kept[0, 0]
        blocks -= blocks.mean(axis=0)
        times.append(blocks[:, 0] / 60)
        values.append(blocks[:, 1])
    if not times:
        return math.nan, math.nan, 0.0
    x, y = np.concatenate(times), np.concatenate(values)
    slope = (x @ y) / (x @ x)
    rest = y - slope * x
    error = math.sqrt(rest @ rest / (len(x) - len(times) - 1) / (x @ x))
    return float(slope), error, seconds


def judge(run: Soak, steps_per_min: float) -> bool:
    """Prints what the memory did; whether that rests on LEAST_JUDGED_S. Raises Failed where it is too much."""
    slope, error, seconds = slope_of(run.lives, WARM_UP_S)
    kept = steps_per_min * BYTES_PER_STEP
    for number, life in enumerate(run.lives):
        sizes = [f"{size / 1e6:.1f}" for _, size in life.memory[:: max(1, len(life.memory) // 12)]]
        print(f"resident MB of process {number + 1}: {' '.join(sizes)}")
    if math.isnan(slope):
        print("memory: too short to judge")
        return False
    print(f"memory: {slope / 1e3:+.0f} ± {error / 1e3:.0f} kB a minute over {seconds / 60:.1f} min "
          f"(one standard error); the run itself keeps {kept / 1e3:.0f} kB a minute")  # fmt: skip
    judged = seconds >= LEAST_JUDGED_S
    if judged and slope - 2 * error > kept + FLAT_BYTES_PER_MIN:
        raise Failed(f"memory grows by {(slope - kept) / 1e3:.0f} kB a minute")
    return judged


def invented_record(folder: Path) -> Path:
    """RECORD_S of an invented run, as a record."""
    now = [0.0]
    engine = FakeEngine(games=2, clock=lambda: now[0])
    engine.start()
    writer = RunWriter(folder, {}, engine.info)
    while now[0] < RECORD_S:
        now[0] += 1 / 35
        writer.write(engine.poll())
    writer.finish("stopped")
    return folder


def _command(options: argparse.Namespace, folder: Path) -> list[str]:
    if options.of == "live":
        demo = [sys.executable, str(ROOT / "tests" / "tui" / "demo.py"), "--recorder", "--restless"]
        return [*demo, "--speed", str(options.speed), "--steps", "1000000", "--games", str(options.games),
                "--sms", str(options.sms)]  # fmt: skip
    record = invented_record(folder / "record") if options.of == "replay" else Path(options.of).resolve()
    return [sys.executable, "-m", "ofa_tui", "replay", str(record), "--speed", str(options.speed)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--of", default="live", metavar="live|replay|DIR", help="what is shown (default: live)")
    parser.add_argument("--minutes", type=float, default=48.0)
    parser.add_argument("--speed", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sms", type=int, default=4)
    parser.add_argument("--games", type=int, default=2)
    parser.add_argument("--log", type=Path, default=Path("soak.jsonl"), help="where the keys are kept")
    parser.add_argument("--again", type=Path, metavar="LOG", help="do what is in this log")
    options = parser.parse_args()
    live = options.of == "live"
    deeds_log = options.log if options.again is None else options.log.with_suffix(".again.jsonl")
    with tempfile.TemporaryDirectory(prefix="tui-soak-") as name:
        folder = Path(name)
        configuration.set_hypothesis_home_dir(folder / "hypothesis")
        (folder / "state").mkdir()
        (folder / "state" / "introduced").touch()
        run = Soak(_command(options, folder), folder, deeds_log)
        failure = ""
        try:
            run.follow(FIRST_S)
            if options.again is not None:
                again(run, options.again)
            else:
                soak(run, options.seed, max(1, round(options.minutes * 60 / CHAPTER_S)), [] if live else [FROM_BEGIN])
            cpu_s = run.cpu_seconds()
            run.end()
            print(f"the last process used {cpu_s:.0f} s of processor time in {run.seconds - run.lives[-1].began:.0f} s")
        except Failed as error:
            failure = str(error)
            with contextlib.suppress(OSError):
                print((folder / "cache" / "crash.log").read_text(encoding="utf-8"))
        finally:
            run.kill()
    deeds = ", ".join(f"{count:,} {kind}" for kind, count in run.done.most_common())
    print(f"seed {options.seed}: {run.seconds / 60:.1f} min at {options.speed:g}x, "
          f"{run.seconds * options.speed / 3600:.2f} hours of the run; {deeds}; "
          f"{len(run.pressed)} different keys; {run.reports:,} frames, {run.read / 1e6:,.0f} MB")  # fmt: skip
    judged = False
    try:
        judged = judge(run, STEPS_PER_S * options.speed * 60 if live else 0.0)
    except Failed as error:
        failure = failure or str(error)
    if failure:
        print(f"FAILED: {failure}\nthe keys are in {deeds_log}: scripts/tui_soak.py --again {deeds_log}")
        return 1
    closed = run.done["failed dialog"]
    print(f"passed: {f'{closed} dialogs failed and were closed' if closed else 'no exception'}, nothing stood still, "
          f"memory {'flat' if judged else 'not judged'}")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
