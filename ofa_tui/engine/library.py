"""The CPU build of the kernel, loaded into this process."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np

from ofa_tui import abi_header
from ofa_tui.engine import compiler
from ofa_tui.errors import OfaError


class KernelLibrary:
    """What cuda/platform/host_entry.h exports. Calls release the GIL."""

    def __init__(self, path: Path) -> None:
        """Raises OfaError for a library that cannot be loaded or was compiled with another layout."""
        try:
            self._library = ctypes.CDLL(str(path))
        except OSError as error:
            raise OfaError(
                f"the compiled kernel {path} cannot be loaded ({error}); delete it to compile it again"
            ) from error
        pointer, u4, u8 = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64
        self._declare("ofa_run", ctypes.c_int, pointer)
        self._declare("ofa_run_task", ctypes.c_int, pointer, u4, u8, u4)
        self._declare("ofa_post", None, pointer, u4, pointer)
        self._declare("ofa_load_acquire", u8, pointer)
        self._declare("ofa_layout", u4, pointer, u4)
        self._declare("ofa_scratch_bytes", u8, pointer)
        self._declare("ofa_doom_game_bytes", u8)
        self._declare("ofa_doom_snapshot_bytes", u8)
        check_layout(self.layout(), str(path))

    def _declare(self, name: str, result: type | None, *arguments: type) -> None:
        function = getattr(self._library, name)
        function.restype = result
        function.argtypes = list(arguments)

    def layout(self) -> list[int]:
        numbers = np.zeros(4096, np.uint64)
        count = self._library.ofa_layout(numbers.ctypes.data, len(numbers))
        return [int(number) for number in numbers[:count]]

    def run(self, launch: int) -> int:
        """Runs every block of the launch at this address; returns when the last has left, with 0 or an errno."""
        return self._library.ofa_run(launch)

    def run_task(self, launch: int, program: int, iteration: int, task: int) -> None:
        """Runs one task's body in this thread, without its waits and its signal."""
        if self._library.ofa_run_task(launch, program, iteration, task):
            raise ValueError(f"task {task} of program {program} has an unknown opcode")

    def post(self, launch: int, clock: int, event: np.ndarray) -> None:
        """Appends an abi.EVENT [1] to a clock's ring, whose next place must be free."""
        self._library.ofa_post(launch, clock, event.ctypes.data)

    def load_acquire(self, address: int) -> int:
        """Reads a u8 the kernel publishes with: data written before it can be read afterwards."""
        return self._library.ofa_load_acquire(address)

    def scratch_bytes(self, launch: np.ndarray) -> int:
        """Scratch memory an SM needs for the model in this abi.LAUNCH [1]."""
        return self._library.ofa_scratch_bytes(launch.ctypes.data)

    def doom_game_bytes(self) -> int:
        return self._library.ofa_doom_game_bytes()

    def doom_snapshot_bytes(self) -> int:
        return self._library.ofa_doom_snapshot_bytes()


def check_layout(compiled: list[int], what: str) -> None:
    """Raises OfaError unless the structs have the sizes and offsets that abi.py says."""
    if compiled != abi_header.layout():
        raise OfaError(f"{what} was compiled for another version of ofa-tui; delete it to compile it again")


def load_kernel(on_progress: compiler.OnProgress | None = None) -> KernelLibrary:
    """Compiles the kernel if it is not cached, and loads it."""
    return KernelLibrary(compiler.build(on_progress))
