"""Clocks, power, temperature and other processes of a GPU, where NVIDIA's management library is there."""

from __future__ import annotations

import contextlib
from typing import Any

SMALL = 64 << 20
"""Bytes that a process must hold to count."""


def _load() -> Any:
    """The module of nvidia-ml-py, started; None without it or its library."""
    with contextlib.suppress(Exception):  # its errors are of many kinds, and none matters here
        import pynvml

        pynvml.nvmlInit()
        return pynvml
    return None


class Monitor:
    """One GPU by its number. Every reading that cannot be had is left out."""

    def __init__(self, index: int) -> None:
        self._nvml = _load()
        self._handle: Any = None
        if self._nvml:
            with contextlib.suppress(self._nvml.NVMLError):
                self._handle = self._nvml.nvmlDeviceGetHandleByIndex(index)

    def read(self) -> dict[str, float]:
        """power_w, clock_mhz, memory_clock_mhz, temperature_c, memory_used_bytes, gpu_percent."""
        nvml, handle = self._nvml, self._handle
        if handle is None:
            return {}
        readings = {
            "power_w": lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1e3,
            "clock_mhz": lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM),
            "memory_clock_mhz": lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM),
            "temperature_c": lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU),
            "memory_used_bytes": lambda: nvml.nvmlDeviceGetMemoryInfo(handle).used,
            "gpu_percent": lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu,
        }
        found: dict[str, float] = {}
        for name, read in readings.items():
            with contextlib.suppress(nvml.NVMLError):
                found[name] = float(read())
        return found

    def memory(self) -> tuple[int, int] | None:
        """(free, total) bytes."""
        if self._handle is None:
            return None
        with contextlib.suppress(self._nvml.NVMLError):
            info = self._nvml.nvmlDeviceGetMemoryInfo(self._handle)
            return int(info.free), int(info.total)
        return None

    def others(self) -> list[tuple[int, int]]:
        """(process id, bytes) of those that hold the GPU's memory."""
        if self._handle is None:
            return []
        with contextlib.suppress(self._nvml.NVMLError):
            running = self._nvml.nvmlDeviceGetComputeRunningProcesses(self._handle)
            return [(int(p.pid), int(p.usedGpuMemory or 0)) for p in running if (p.usedGpuMemory or SMALL) >= SMALL]
        return []

    def driver_version(self) -> str:
        if self._nvml is None:
            return ""
        with contextlib.suppress(self._nvml.NVMLError):
            version = self._nvml.nvmlSystemGetDriverVersion()
            return version.decode() if isinstance(version, bytes) else str(version)
        return ""
