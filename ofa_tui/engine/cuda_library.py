"""The NVIDIA driver's library through ctypes: what is asked before PyCUDA is there, and what PyCUDA does not wrap."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

from ofa_tui.errors import OfaError

LIBRARY = "libcuda.so.1"
ATTRIBUTES = {"multiprocessors": 16, "major": 75, "minor": 76, "block_shared_bytes": 97}
"""Values of CUdevice_attribute."""


class DriverError(OfaError):
    """The driver is not there, or says no."""


@dataclass(frozen=True)
class GpuFacts:
    """A GPU as the driver describes it."""

    index: int
    name: str
    n_sms: int
    capability: tuple[int, int]
    memory_bytes: int
    block_shared_bytes: int
    """The most shared memory that a block can have."""

    @property
    def architecture(self) -> str:
        """What nvcc calls it: `90a`, `80`. The `a` allows what only this architecture has, such as wgmma."""
        major, minor = self.capability
        return f"{major}{minor}" + ("a" if major >= 9 else "")


class DriverLibrary:
    """`libcuda`. Raises DriverError where it is missing or cannot start."""

    def __init__(self, library: ctypes.CDLL | None = None) -> None:
        try:
            self._library = library or ctypes.CDLL(LIBRARY)
        except OSError:
            raise DriverError(f"no NVIDIA driver is installed ({LIBRARY} was not found)") from None
        self.call("cuInit", 0)

    def call(self, name: str, *arguments: object) -> None:
        """Calls a function of the driver. Raises DriverError with the driver's own name of the failure."""
        try:
            function = getattr(self._library, name)
        except AttributeError:
            raise DriverError(f"the NVIDIA driver is too old: it has no {name}") from None
        result = function(*arguments)
        if result != 0:
            text = ctypes.c_char_p()
            self._library.cuGetErrorName(result, ctypes.byref(text))
            raise DriverError(f"{name} failed: {(text.value or b'error').decode()} ({result})")

    def _number(self, name: str, *arguments: object) -> int:
        number = ctypes.c_int()
        self.call(name, ctypes.byref(number), *arguments)
        return number.value

    def version(self) -> tuple[int, int]:
        """The newest CUDA that the driver speaks: (13, 0)."""
        number = self._number("cuDriverGetVersion")
        return number // 1000, number % 1000 // 10

    def gpus(self) -> list[GpuFacts]:
        return [self._facts(index) for index in range(self._number("cuDeviceGetCount"))]

    def _facts(self, index: int) -> GpuFacts:
        device = self._number("cuDeviceGet", index)
        name = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", name, 256, device)
        values = {key: self._number("cuDeviceGetAttribute", number, device) for key, number in ATTRIBUTES.items()}
        total = ctypes.c_size_t()
        self.call("cuDeviceTotalMem_v2", ctypes.byref(total), device)
        return GpuFacts(index, name.value.decode(errors="replace"), values["multiprocessors"],
                        (values["major"], values["minor"]), total.value, values["block_shared_bytes"])
