"""Compiles the kernel and keeps the result: which compiler, which arguments, which cache entry."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from ofa_tui import abi_header, locations
from ofa_tui.errors import OfaError
from ofa_tui.installation import how_to_add

COMPILERS = ("c++", "g++", "clang++")
SANITIZERS = ("thread", "address", "undefined")

OnProgress = Callable[[float], None]
"""Called now and then while the compiler runs, with the seconds since it started."""


@dataclass(frozen=True)
class Compiler:
    """A command that compiles C++, and what it calls itself."""

    command: tuple[str, ...]
    version: str

    @property
    def is_zig(self) -> bool:
        return "zig" in self.command


def find_compiler() -> Compiler:
    """CXX, else c++, g++, clang++, else the zig of the package ziglang. Raises OfaError where there is none."""
    tried: list[str] = []
    wanted = os.environ.get("CXX", "").split()
    for command in ([wanted] if wanted else []) + [[name] for name in COMPILERS]:
        if shutil.which(command[0]):
            version = _version((*command, "--version"))
            if version:
                return Compiler(tuple(command), version)
        tried.append(command[0])
    if find_spec("ziglang"):
        import sys

        command = [sys.executable, "-m", "ziglang"]
        version = _version((*command, "version"))
        if version:
            return Compiler((*command, "c++"), f"zig {version}")
    raise OfaError(
        f"no C++ compiler was found (tried {', '.join(tried)}); install g++ or clang, set CXX, "
        f"or take zig as one: {how_to_add('ziglang')}"
    )


def _version(command: tuple[str, ...]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip().splitlines()[0] if done.returncode == 0 and done.stdout.strip() else ""


@dataclass(frozen=True)
class Product:
    """A shared library: the file it is compiled from and the folders (of the sources) that decide what it is."""

    name: str
    source: str
    folders: tuple[str, ...]


KERNEL = Product("kernel.so", "megakernel.cu", ("",))
DOOM = Product("doom.so", "doom/host/library.cpp", ("doom", "platform"))


# --- arguments ----------------------------------------------------------------------------------------------------


def host_arguments(
    command: tuple[str, ...], sources: Path, generated: Path, output: Path, sanitizer: str = "",
    product: Product = KERNEL,
) -> list[str]:
    """The command line of the CPU build: a shared library, or with a sanitizer a program that runs a saved image."""
    zig = command[-2:] == ("ziglang", "c++")
    arguments = [
        *command, "-std=c++20", "-march=native", "-fno-exceptions", "-fno-rtti", "-fno-math-errno",
        "-fno-trapping-math", "-pthread", "-Wall", "-Wextra", f"-I{sources}", f"-I{generated}",
    ]
    if zig:
        arguments += ["-nostdlib++", "-fno-sanitize=undefined"]
    if sanitizer:
        arguments += ["-O1", "-g", f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all"]
        arguments.append(str(sources / "platform" / "host_main.cpp"))
    else:
        arguments += ["-O3", "-shared", "-fPIC", "-x", "c++", str(sources / product.source)]
    return [*arguments, "-o", str(output)]


# --- cache --------------------------------------------------------------------------------------------------------


def cache_key(compiler: Compiler, sources: Path, sanitizer: str, product: Product = KERNEL) -> str:
    """Hash of all that decides the result: sources, arguments, compiler, target, processor model and its features.

    The processor counts because of -march=native: a home folder shared by different machines must not hand one
    machine the code of another.
    """
    digest = hashlib.sha256()
    arguments = host_arguments(compiler.command, Path("cuda"), Path("gen"), Path("out"), sanitizer, product)
    for part in (*arguments, compiler.version, platform.system(), platform.machine(), _processor_target()):
        digest.update(part.encode() + b"\0")
    for name, text in sorted(abi_header.headers().items()):
        digest.update(f"{name}\0{text}\0".encode())
    for path in [path for folder in product.folders for path in source_files(sources / folder)]:
        digest.update(path.relative_to(sources).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:32]


def source_files(sources: Path) -> list[Path]:
    return sorted(path for path in sources.rglob("*") if path.suffix in (".cu", ".cuh", ".h", ".cpp"))


@cache
def _processor() -> dict[str, str]:
    """What /proc/cpuinfo says of the first processor; empty where there is none."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return {}
    pairs: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        pairs.setdefault(name.strip(), value.strip())
    return pairs


def processor_name() -> str:
    """`AMD EPYC 9R14`, or what the system calls its kind of processor."""
    return _processor().get("model name") or platform.processor() or platform.machine()


def _processor_target() -> str:
    """All that -march=native looks at: model and feature flags."""
    names = ("model name", "flags", "Features", "CPU implementer", "CPU part")
    return repr([(name, _processor().get(name, "")) for name in names] + [processor_name()])


def build(
    on_progress: OnProgress | None = None, sanitizer: str = "", sources: Path | None = None, product: Product = KERNEL
) -> Path:
    """The compiled product: from the cache, or compiled now. With `sanitizer` the test program built with it.

    Two processes may build the same entry at once: each compiles for itself and the last rename wins. An entry whose
    checksum is wrong is built again. Raises OfaError when there is no compiler or it fails.
    """
    if sanitizer and sanitizer not in SANITIZERS:
        raise OfaError(f"there is no sanitizer {sanitizer!r}; choose one of {', '.join(SANITIZERS)}")
    sources = sources or locations.cuda_sources()
    compiler = find_compiler()
    folder = locations.cache() / "kernels" / cache_key(compiler, sources, sanitizer, product)
    output = folder / ("kernel-test" if sanitizer else product.name)
    if not intact(output):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            _compile_into(compiler, sources, output, sanitizer, on_progress, product)
        except OSError as error:
            raise OfaError(
                f"the compiled kernel cannot be written to {folder}: {error.strerror or error}; "
                "free some space or set OFA_TUI_CACHE to another folder"
            ) from error
    return output


def _checksum_file(output: Path) -> Path:
    return output.with_name(output.name + ".sha256")


def intact(output: Path) -> bool:
    """Whether the file is there, whole as it was written."""
    try:
        return hashlib.sha256(output.read_bytes()).hexdigest() == _checksum_file(output).read_text()
    except (OSError, UnicodeDecodeError):
        return False


def keep(data: bytes, output: Path, work: Path, mode: int = 0o644) -> None:
    """Puts a finished product where `intact` finds it, in one move from the folder `work` beside it."""
    part, checksum = work / "finished", work / "checksum"
    part.write_bytes(data)
    part.chmod(mode)
    checksum.write_text(hashlib.sha256(data).hexdigest())
    os.replace(part, output)
    os.replace(checksum, _checksum_file(output))


def _compile_into(
    compiler: Compiler, sources: Path, output: Path, sanitizer: str, on_progress: OnProgress | None, product: Product
) -> None:
    with tempfile.TemporaryDirectory(dir=output.parent, prefix="building-") as work:
        generated = Path(work) / "generated"
        abi_header.write_headers(generated)
        built = Path(work) / output.name
        arguments = host_arguments(compiler.command, sources, generated, built, sanitizer, product)
        run_compiler(arguments, Path(work), on_progress)
        if not built.is_file():
            raise OfaError(f"{compiler.command[0]} reported success but wrote no kernel; try another one with CXX")
        keep(built.read_bytes(), output, Path(work), built.stat().st_mode)


def run_compiler(arguments: Iterable[str], work: Path, on_progress: OnProgress | None = None) -> str:
    """Runs a compiler and returns what it printed. Raises OfaError with its first error when it fails."""
    command = list(arguments)
    log = work / "compiler.log"
    started = time.monotonic()
    with log.open("wb") as out:
        try:
            process = subprocess.Popen(
                command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, cwd=work,
                # A group of its own: the driver's children end with it. Their scratch files lie in `work`.
                start_new_session=True, env=os.environ | {"TMPDIR": str(work)},
            )
        except OSError as error:
            raise OfaError(f"{command[0]} cannot be started: {error.strerror or error}; choose one with CXX") from error
        try:
            while process.poll() is None:
                try:
                    process.wait(0.25)
                except subprocess.TimeoutExpired:
                    if on_progress:
                        on_progress(time.monotonic() - started)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    text = log.read_text(errors="replace")
    if process.returncode < 0:
        raise OfaError(f"{command[0]} was killed by signal {-process.returncode} while compiling the kernel; "
                       "it may have run out of memory: close other programs and start again")
    if process.returncode != 0:
        errors = [line for line in text.splitlines() if "error" in line.lower()] or text.strip().splitlines()
        first = errors[0].strip() if errors else "it printed nothing"
        raise OfaError(f"{command[0]} cannot compile the kernel: {first}; choose another compiler with CXX")
    return text
