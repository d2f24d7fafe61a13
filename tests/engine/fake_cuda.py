"""pycuda.driver without a GPU: device memory is other memory of this process, and the kernel is the CPU build.

What the engine does around the kernel is real: every address in the image is one of the "device", every word goes to
and fro by copies. Copies are done when they are queued.
"""

from __future__ import annotations

import ctypes
import threading
import time
from types import SimpleNamespace

import numpy as np

from ofa_tui import abi_header
from ofa_tui.engine.cuda_compiler import Cubin, Variant
from ofa_tui.engine.cuda_device import Gpu
from ofa_tui.engine.cuda_library import GpuFacts
from ofa_tui.engine.library import KernelLibrary

FACTS = GpuFacts(0, "a pretended GPU", 64, (9, 0), 1 << 34, 232_448)


class FakeError(Exception):
    pass


class FakeMemoryError(FakeError):
    pass


class _Stream:
    def __init__(self, driver: FakeDriver) -> None:
        self._driver = driver

    def is_done(self) -> bool:
        self._driver.check()
        return not any(thread.is_alive() for thread in self._driver.kernels.get(id(self), []))


class _Function:
    def __init__(self, driver: FakeDriver, name: str) -> None:
        self._driver, self._name = driver, name

    def set_attribute(self, attribute, value) -> None:
        self._driver.check()

    def __call__(self, launch, *others, block, grid, stream, shared=0) -> None:
        driver = self._driver
        driver.check()
        image = np.array([launch])
        if self._name == "kernel_facts":
            library = driver.library
            facts = [library.scratch_bytes(image), library.doom_game_bytes(), library.doom_snapshot_bytes(),
                     time.monotonic_ns(), *abi_header.layout(), 0]
            data = np.array(facts, np.uint64)
            ctypes.memmove(int(others[0]), data.ctypes.data, data.nbytes)
            return
        driver.launched.append((grid, block, shared))
        thread = threading.Thread(target=lambda: driver.library.run(image.ctypes.data), daemon=True)
        driver.kernels.setdefault(id(stream), []).append(thread)
        thread.start()


class FakeDriver:
    """`lost` makes every call fail from then on, as after a kernel that was killed."""

    Error, MemoryError = FakeError, FakeMemoryError
    device_attribute = SimpleNamespace(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR=1, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN=2)
    function_attribute = SimpleNamespace(MAX_DYNAMIC_SHARED_SIZE_BYTES=3)

    def __init__(self, library: KernelLibrary, memory_bytes: int = 1 << 34) -> None:
        self.library = library
        self.lost = False
        self.depth = 0
        self.freed = 0
        self.launched: list[tuple] = []
        self.copied_out = 0
        self.kernels: dict[int, list[threading.Thread]] = {}
        self._memory_bytes = memory_bytes
        self._arrays: list[np.ndarray] = []
        self._pinned: list[tuple[int, int]] = []
        self.Context = SimpleNamespace(pop=self._pop)

    def check(self) -> None:
        if self.lost:
            raise FakeError("an illegal memory access was encountered")
        assert self.depth > 0, "no context is current"

    def _push(self) -> None:
        self.depth += 1

    def _pop(self) -> None:
        self.depth -= 1

    def Device(self, index):
        def make_context():
            self._push()
            return SimpleNamespace(push=self._push, detach=lambda: None)

        return SimpleNamespace(make_context=make_context,
                               get_attribute=lambda which: {1: 233_472, 2: 232_448}[which])

    def Stream(self, flags):
        assert flags == 1
        return _Stream(self)

    def mem_get_info(self):
        self.check()
        return self._memory_bytes, self._memory_bytes

    def mem_alloc(self, size):
        self.check()
        if size > self._memory_bytes:
            raise FakeMemoryError("out of memory")
        raw = np.full(size + 128, 0xA5, np.uint8)
        self._arrays.append(raw)
        address = raw.ctypes.data + -raw.ctypes.data % 128

        def free() -> None:
            self.freed += 1

        return type("Allocation", (), {"__int__": lambda self: address, "free": staticmethod(free)})()

    def memset_d8(self, address, value, size):
        self.check()
        ctypes.memset(address, value, size)

    def call(self, name, *arguments):
        """As DriverLibrary.call."""
        self.check()
        if name == "cuMemHostRegister_v2":
            self._pinned.append((arguments[0].value, arguments[1].value))

    def module_from_buffer(self, code):
        self.check()
        return SimpleNamespace(get_function=lambda name: _Function(self, name))

    def memcpy_htod(self, address, array):
        self.check()
        ctypes.memmove(int(address), array.ctypes.data, array.nbytes)

    def memcpy_dtoh(self, array, address):
        self.check()
        ctypes.memmove(array.ctypes.data, int(address), array.nbytes)

    def memcpy_htod_async(self, address, array, stream):
        self._must_be_pinned(array)
        self.memcpy_htod(address, array)

    def memcpy_dtoh_async(self, array, address, stream):
        self._must_be_pinned(array)
        self.copied_out += array.nbytes
        self.memcpy_dtoh(array, address)

    def _must_be_pinned(self, array):
        start, end = array.ctypes.data, array.ctypes.data + array.nbytes
        assert any(first <= start and end <= first + count for first, count in self._pinned)


def fake_gpu(library: KernelLibrary, **options) -> tuple[Gpu, FakeDriver]:
    driver = FakeDriver(library, **options)
    return Gpu(driver, FACTS, driver), driver


def fake_cubin(target: str) -> Cubin:
    """The variant that runs the programs of `target`, for any capability."""
    return Cubin(b"", "", Variant("pretended", target, (), 256, None, 1e11), "90a")
