"""What a run on a GPU needs, whether it is here, and how to get it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec

from ofa_tui.engine import cuda_compiler, cuda_nvml
from ofa_tui.engine.cuda_library import DriverLibrary, GpuFacts
from ofa_tui.errors import OfaError
from ofa_tui.installation import how_to_add

LEAST_DRIVER = (12, 8)
"""PyCUDA, built with the toolkit of CUDA 13, uses functions that came with this version."""
LEAST_CAPABILITY = (7, 5)
ENOUGH_BYTES = 8 << 30
"""What preset model-s takes, roughly."""


@dataclass(frozen=True)
class Check:
    """One thing that was looked for. `detail` says what was found, `remedy` what to do where it is not right."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""
    required: bool = True
    """False: without it a run goes on, slower or with less to show."""

    def line(self) -> str:
        mark = "ok" if self.ok else "missing" if self.required else "note"
        return f"{mark:7} {self.name:13} {self.detail}" + (f"; {self.remedy}" if self.remedy and not self.ok else "")


def examine(index: int = 0, library: Callable[[], DriverLibrary] | None = None) -> Iterator[Check]:
    """Everything, in the order in which it is needed."""
    try:
        driver = (library or DriverLibrary)()
        version, gpus = driver.version(), driver.gpus()
    except OfaError as error:
        yield Check("driver", False, str(error), "install NVIDIA's driver, version 570 or newer")
    else:
        yield _driver(version)
        yield _gpu(gpus, index)
        if index < len(gpus):
            yield _architecture(gpus[index])
            yield from _memory(cuda_nvml.Monitor(index))
    yield from _tools()


def _driver(version: tuple[int, int]) -> Check:
    text = f"speaks CUDA {version[0]}.{version[1]}"
    return Check("driver", version >= LEAST_DRIVER, text, "install NVIDIA's driver, version 570 or newer")


def _gpu(gpus: list[GpuFacts], index: int) -> Check:
    if index >= len(gpus):
        return Check("GPU", False, "the driver sees none", "check the card, and CUDA_VISIBLE_DEVICES")
    gpu = gpus[index]
    return Check("GPU", True, f"{gpu.name}, {gpu.n_sms} SMs, {gpu.memory_bytes / 1e9:.0f} GB")


def _architecture(gpu: GpuFacts) -> Check:
    text = f"compute capability {gpu.capability[0]}.{gpu.capability[1]}"
    if gpu.capability < LEAST_CAPABILITY:
        return Check("architecture", False, text, "the kernel needs a GPU of capability 7.5 or newer (Turing)")
    variants = cuda_compiler.VARIANTS
    if not variants["sm80"].runs_on(gpu.capability):
        return Check("architecture", False, f"{text}: the portable kernel, which is slow",
                     "those in bf16 need capability 8.0 (Ampere)", required=False)
    if not variants["sm90"].runs_on(gpu.capability):
        return Check("architecture", False, f"{text}: the sm80 kernel, in bf16", "the fastest is for Hopper",
                     required=False)
    return Check("architecture", True, text)


def _memory(monitor: cuda_nvml.Monitor) -> Iterator[Check]:
    found = monitor.memory()
    if found is None:
        yield Check("readings", False, "clocks, power and other processes cannot be read", how_to_add("nvidia-ml-py"),
                    required=False)
        return
    free, total = found
    yield Check("memory", free >= min(ENOUGH_BYTES, total), f"{free / 1e9:.1f} of {total / 1e9:.1f} GB free",
                "end other programs, or choose a smaller preset", required=False)
    others = [(pid, used) for pid, used in monitor.others() if pid != os.getpid()]
    if others:
        held = ", ".join(f"process {pid} holds {used / 1e9:.1f} GB" for pid, used in others)
        yield Check("other programs", False, held, "they slow the run down", required=False)


def _tools() -> Iterator[Check]:
    nvcc = cuda_compiler.find_nvcc()
    version = cuda_compiler.nvcc_version(nvcc) if nvcc else ""
    yield Check("nvcc", bool(version), f"{version} at {nvcc}" if version else "not found",
                "install the CUDA toolkit, or set CUDA_HOME")
    compiler = shutil.which("g++") or shutil.which("cl")
    yield Check("C++ compiler", bool(compiler), compiler or "not found", "nvcc needs one: install g++")
    pycuda = find_spec("pycuda") is not None
    yield Check("PyCUDA", pycuda, "installed" if pycuda else "not installed", how_to_add("pycuda", "nvidia-ml-py"))


def missing(index: int = 0, library: Callable[[], DriverLibrary] | None = None) -> str:
    """The first thing without which no run on the GPU is possible, and its remedy; empty where nothing is missing."""
    for check in examine(index, library):
        if check.required and not check.ok:
            return f"{check.name}: {check.detail}; {check.remedy}"
    return ""
