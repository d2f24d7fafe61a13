"""Set-up behind `scripts/run` and `scripts/test`: uv, the environment, then the command. Standard library only.

The environment is rebuilt only when pyproject.toml, the interpreter or the chosen extras change, so later calls
need no network.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PRIVATE = ROOT / ".uv"
STAMP = ROOT / ".venv" / "ofa-tui-setup"
UV_VERSION = "0.13.9"


def say(text: str) -> None:
    print(f"[set-up] {text}", file=sys.stderr, flush=True)


def fail(text: str) -> "NoReturn":  # noqa: F821 - old interpreters get here too, to be told so
    print(f"ofa-tui: {text}", file=sys.stderr)
    sys.exit(2)


def find_uv() -> str:
    """uv from PATH, else a private copy in the checkout, installed with pip the first time."""
    found = shutil.which("uv")
    if found:
        return found
    for private in (PRIVATE / "bin" / "uv", PRIVATE / "venv" / "bin" / "uv"):
        if private.exists():
            return str(private)
    say("uv is not on PATH; installing a private copy into .uv")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True).returncode == 0:
        done = subprocess.run([*pip, "--target", str(PRIVATE), f"uv=={UV_VERSION}"])
        uv = PRIVATE / "bin" / "uv"
    else:
        subprocess.run([sys.executable, "-m", "venv", str(PRIVATE / "venv")])
        inner = str(PRIVATE / "venv" / "bin" / "python")
        done = subprocess.run([inner, *pip[1:], f"uv=={UV_VERSION}"]) if Path(inner).exists() else None
        uv = PRIVATE / "venv" / "bin" / "uv"
    if done is None or done.returncode != 0 or not uv.exists():
        fail("could not install uv: connect to the network, or install uv or pip yourself, and call this again.")
    return str(uv)


def has_compiler() -> bool:
    chosen = os.environ.get("CXX")
    return bool(chosen and shutil.which(chosen.split()[0])) or any(map(shutil.which, ("c++", "g++", "clang++")))


def has_gpu() -> bool:
    return bool(shutil.which("nvcc")) and Path("/proc/driver/nvidia/gpus").is_dir()


def interpreter_for_uv() -> "dict[str, str]":
    """This interpreter if the project supports it; otherwise uv looks for one that fits."""
    if (3, 11) <= sys.version_info[:2] < (3, 14):
        return {"UV_PYTHON": sys.executable}
    return {}


def sync(uv: str, extras: "list[str]", env: "dict[str, str]") -> bool:
    command = [uv, "sync", "--quiet"]
    for extra in extras:
        command += ["--extra", extra]
    return subprocess.run(command, cwd=ROOT, env=env).returncode == 0


def in_processes(arguments: "list[str]") -> "list[str]":
    """pytest's options for the whole suite: two processes share it, file by file; a file that is named runs in one.

    More would disturb the tests that measure time, whose kernels have threads of their own; `-n 0` wants one.
    """
    named = any(os.path.isfile(argument.split("::")[0]) for argument in arguments)
    return [] if named or (os.cpu_count() or 1) < 2 else ["-n", "2", "--dist", "loadfile"]


def main() -> None:
    # A caller's own virtual environment must not be mistaken for the project's.
    env = {k: v for k, v in os.environ.items() if k != "VIRTUAL_ENV"} | interpreter_for_uv()
    extras = ["http"] + ([] if has_compiler() else ["zig"]) + (["cuda"] if has_gpu() else [])
    state = hashlib.sha256((ROOT / "pyproject.toml").read_bytes())
    state.update(" ".join([*extras, env.get("UV_PYTHON", "")]).encode())
    wanted = state.hexdigest()
    if not (STAMP.exists() and STAMP.read_text() == wanted):
        uv = find_uv()
        if "zig" in extras:
            say("no C++ compiler found; adding zig from PyPI as the compiler")
        say("installing the Python packages (the first time this takes about a minute)")
        if not sync(uv, extras, env):
            without_cuda = [e for e in extras if e != "cuda"]
            if without_cuda == extras or not sync(uv, without_cuda, env):
                fail("the packages could not be installed (see above); connect to the network and call this again.")
            say("PyCUDA could not be built; going on without the GPU backend (see above)")
        STAMP.write_text(wanted)
    program = ROOT / ".venv" / "bin" / sys.argv[1]
    arguments = sys.argv[2:]
    if sys.argv[1] == "pytest":
        os.chdir(ROOT)
        arguments = [*in_processes(arguments), *arguments, "--rootdir", str(ROOT), "-c", str(ROOT / "pyproject.toml")]
    os.execve(str(program), [str(program), *arguments], env)


if __name__ == "__main__":
    main()
