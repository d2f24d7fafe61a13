"""One GPU through PyCUDA: a context of our own, memory, streams, and waits that end.

Nothing here allocates or frees while the kernel is resident: that would wait for it. Calls that the driver refuses
raise OfaError; those that show that the kernel or the context is gone raise GpuLost.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import sys
import time
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np

from ofa_tui.engine.cuda_library import DriverLibrary, GpuFacts
from ofa_tui.errors import AbortedError, OfaError
from ofa_tui.installation import command, how_to_add

NON_BLOCKING = 1
"""CU_STREAM_NON_BLOCKING: work in it does not wait for the default stream."""
COPY_TIMEOUT_S = 2.0
PAUSE_S = 20e-6


class GpuLost(OfaError):
    """The driver ended the kernel, or does not answer (`silent`)."""

    def __init__(self, text: str, silent: bool = False) -> None:
        super().__init__(text)
        self.silent = silent


def load_driver() -> ModuleType:
    """pycuda.driver, initialised. Raises OfaError where PyCUDA or the driver is missing."""
    # Else the first use of anything that is not loaded waits for the resident kernel.
    os.environ.setdefault("CUDA_MODULE_LOADING", "EAGER")
    try:
        import pycuda.driver as driver
    except ImportError as error:
        raise OfaError(f"PyCUDA cannot be used ({error}); {how_to_add('pycuda', 'nvidia-ml-py')}") from None
    try:
        driver.init()
    except driver.Error as error:
        raise OfaError(f"the NVIDIA driver cannot be used ({error})") from None
    return driver


class Gpu:
    """A GPU with a context, and the streams a run needs. `driver` is pycuda.driver, or what behaves like it."""

    def __init__(self, driver: Any, facts: GpuFacts, library: DriverLibrary) -> None:
        self.facts = facts
        self._driver = driver
        self._library = library
        try:
            self._context = driver.Device(facts.index).make_context()
        except driver.Error as error:
            raise OfaError(f"no context can be made on {facts.name} ({error}); another process may hold all of its "
                           f"memory: see {command()} doctor") from None
        self._allocations: list[Any] = []
        self._pinned: list[np.ndarray] = []
        self._functions: list[Any] = []
        try:
            self.kernel_stream, self.control_stream, self.copy_stream, self.state_stream = (
                driver.Stream(NON_BLOCKING) for _ in range(4))
        finally:
            driver.Context.pop()

    @contextlib.contextmanager
    def current(self) -> Iterator[None]:
        """The context is this thread's current one inside. Left current at exit it would abort the process."""
        with self._no_driver_errors():
            self._context.push()
        try:
            with self._no_driver_errors():
                yield
        finally:
            self._driver.Context.pop()

    @contextlib.contextmanager
    def _no_driver_errors(self) -> Iterator[None]:
        try:
            yield
        except self._driver.Error as error:
            raise GpuLost(f"the driver says: {error}") from error

    # --- before the launch, inside `current` ----------------------------------------------------------------------

    def free_bytes(self) -> int:
        return int(self._driver.mem_get_info()[0])

    def shared_bytes(self) -> tuple[int, int]:
        """Shared memory of a multiprocessor, and the most that one block can have."""
        attribute = self._driver.device_attribute
        device = self._driver.Device(self.facts.index)
        return (int(device.get_attribute(attribute.MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)),
                int(device.get_attribute(attribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)))

    def allocate(self, size: int) -> int:
        """Address of `size` bytes, all zero. Raises OfaError where they are not there."""
        try:
            allocation = self._driver.mem_alloc(size)
        except self._driver.MemoryError:
            raise OfaError(
                f"{self.facts.name} has {self.free_bytes() / 1e9:.1f} GB of memory free and {size / 1e9:.1f} GB are "
                f"needed; choose a smaller preset, or see with {command()} doctor who holds it"
            ) from None
        self._allocations.append(allocation)
        self._driver.memset_d8(int(allocation), 0, size)
        return int(allocation)

    def pin(self, memory: np.ndarray) -> None:
        """Makes an array's memory one that asynchronous copies can use.

        Past PyCUDA, whose register_host_memory fails with numpy 2.5.
        """
        self._library.call("cuMemHostRegister_v2", ctypes.c_void_p(memory.ctypes.data), ctypes.c_size_t(memory.nbytes),
                           0)
        self._pinned.append(memory)

    def load(self, code: bytes) -> Any:
        """The module of a cubin."""
        module = self._driver.module_from_buffer(code)
        self._functions.append(module)
        return module

    def allow_shared(self, function: Any, size: int) -> None:
        """Lets a kernel be launched with that much dynamic shared memory."""
        function.set_attribute(self._driver.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, size)

    # --- copies; inside `current` ---------------------------------------------------------------------------------

    def upload(self, address: int, data: np.ndarray) -> None:
        """Returns when it is done; not while the kernel is resident."""
        self._driver.memcpy_htod(address, data)

    def download(self, data: np.ndarray, address: int) -> None:
        """Returns when it is done; not while the kernel is resident."""
        self._driver.memcpy_dtoh(data, address)

    def send(self, address: int, pinned: np.ndarray) -> None:
        """Queues a copy on the control stream, behind those queued before."""
        self._driver.memcpy_htod_async(address, pinned, self.control_stream)

    def fetch(self, pinned: np.ndarray, address: int) -> None:
        """Queues a copy on the copy stream, behind those queued before."""
        self._driver.memcpy_dtoh_async(pinned, address, self.copy_stream)

    def fetch_state(self, pinned: np.ndarray, address: int) -> None:
        """Queues a copy on the state stream: a long one, beside which those of the copy stream go on."""
        self._driver.memcpy_dtoh_async(pinned, address, self.state_stream)

    def finish(self, stream: Any, timeout_s: float = COPY_TIMEOUT_S) -> None:
        """Waits until the stream's work is done. Raises GpuLost where it is not in time."""
        give_up = time.monotonic() + timeout_s
        while not stream.is_done():
            if time.monotonic() > give_up:
                raise GpuLost(f"a copy was not done after {timeout_s:g} s", silent=True)
            time.sleep(PAUSE_S)

    # --- the end --------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Gives everything back; waits for the kernel, so only after its end. Never raises."""
        with contextlib.suppress(self._driver.Error):
            self._context.push()
            try:
                for memory in self._pinned:
                    with contextlib.suppress(OfaError):
                        self._library.call("cuMemHostUnregister", ctypes.c_void_p(memory.ctypes.data))
                for allocation in self._allocations:
                    _suppressed(self._driver, allocation.free)
            finally:
                self._driver.Context.pop()
        self._pinned, self._allocations, self._functions = [], [], []
        _suppressed(self._driver, self._context.detach)

    def abandon(self, resident: bool) -> None:
        """Never gives anything back: a call that does would wait for a kernel that does not end.

        With such a kernel `resident`, the driver's own clean-up at the end of this process would wait too: the
        process then ends without it, with the exit code of an aborted run.
        """
        if resident:
            atexit.register(_leave_at_once)
        for held in (self._context, self._pinned, self._allocations, self._functions, self.kernel_stream,
                     self.control_stream, self.copy_stream, self.state_stream):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(held))


def _leave_at_once() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(AbortedError.exit_code)


def _suppressed(driver: Any, call: Any) -> None:
    with contextlib.suppress(driver.Error):
        call()


def open_gpu(index: int = 0) -> Gpu:
    """GPU `index` through PyCUDA. Raises OfaError."""
    driver = load_driver()
    library = DriverLibrary()
    gpus = library.gpus()
    if index >= len(gpus):
        raise OfaError("no NVIDIA GPU was found here; use --backend host")
    return Gpu(driver, gpus[index], library)
