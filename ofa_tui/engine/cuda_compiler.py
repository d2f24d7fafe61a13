"""Compiles the GPU kernel and keeps the result: which variant, which arguments, which cache entry."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import time
import warnings
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

from ofa_tui import abi_header, locations
from ofa_tui.engine import compiler
from ofa_tui.engine.cuda_library import GpuFacts
from ofa_tui.errors import OfaError
from ofa_tui.presets import ModelConfig

CUBIN, REPORT = "megakernel.cubin", "report.txt"
NVCC_PLACES = ("/usr/local/cuda/bin/nvcc",)


@dataclass(frozen=True)
class Variant:
    """A form of the kernel: the programs it runs, and how it is built and started."""

    name: str
    target: str
    """Programs of this target (program/targets.py)."""
    defines: tuple[str, ...]
    block_threads: int
    capability: tuple[int, int] | None
    """The only one it runs on; None for any from `least` on."""
    flops: float
    """Operations a second that it does at the very least, from which the deadline of a wait follows."""
    least: tuple[int, int] = (7, 5)
    tensor_maps: bool = False
    """Whether products are moved by tensor maps (cuda_maps.py)."""
    source: str = "megakernel.cu"

    def runs_on(self, capability: tuple[int, int]) -> bool:
        return capability == self.capability if self.capability else capability >= self.least

    @property
    def text(self) -> str:
        """What the compiler is given."""
        return f'#include "{self.source}"\n'


VARIANTS = {
    variant.name: variant
    for variant in (
        Variant("portable", "host", (), 256, None, 1e11),
        Variant("sm90", "sm90", ("OFA_SM90",), 384, (9, 0), 1e13, least=(9, 0), tensor_maps=True),
        Variant("sm80", "sm90", ("OFA_SM80",), 256, None, 1e12, least=(8, 0)),
    )
}
"""By name."""
HEAD, MOST_WIDTH, BLOCK = 64, 768, 16
"""What the bodies in bf16 hold (cuda/ops/sm90/): heads of 64 columns, rows of 768 at most, blocks of stream order."""
FRAME_BYTES, RING_BYTES, LINE_BYTES = 1024, 2 * 49_152, 2 * 128 + 8
"""Shared memory in bf16: what a block keeps, two stages of products, and of attention each token of a sequence."""
HOPPER_FEED_FORWARD, HOPPER_CONTEXT = 3072, 512
"""What the Hopper kernel holds of a token: an input of four chunks of equal length, of at most 768 values; two keys for
each thread (cuda/tile/step.cuh)."""
DEMOS = Variant("demos", "", (), 256, None, 0.0, source="doom/gpu/demos.cu")
"""Not the kernel: plays Doom demos (ofa_tui/doom/gpu_demos.py)."""


@dataclass(frozen=True)
class Cubin:
    """A compiled kernel, and what the assembler said about it."""

    code: bytes
    report: str
    variant: Variant
    architecture: str

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.code).hexdigest()


def why_not(variant: Variant, gpu: GpuFacts, model: ModelConfig) -> str:
    """Why a variant cannot train a model on a GPU, as the rest of a sentence; empty where it can."""
    if not variant.runs_on(gpu.capability):
        return f"does not run on {gpu.name}"
    if variant.target == "host":
        return ""
    if model.head_dim != HEAD or model.width > MOST_WIDTH or model.vocab % BLOCK or model.feed_forward % BLOCK:
        return (f"needs heads of {HEAD} columns, a width of at most {MOST_WIDTH}, a vocabulary and a feed-forward of "
                f"whole {BLOCK}s")
    if variant.name == "sm90":
        chunks = -(-model.feed_forward // MOST_WIDTH)
        if model.feed_forward > HOPPER_FEED_FORWARD or model.feed_forward % (BLOCK * chunks):
            return (f"needs a feed-forward of at most {HOPPER_FEED_FORWARD:,}, in equal chunks of whole {BLOCK}s up to "
                    f"{MOST_WIDTH}")
        if model.context > HOPPER_CONTEXT:
            return f"needs a context of at most {HOPPER_CONTEXT}"
    needed = FRAME_BYTES + max(RING_BYTES, -(-model.context // 32) * 32 * LINE_BYTES + 8 * HEAD // 2)
    if needed > gpu.block_shared_bytes:
        return f"needs {needed:,} bytes of shared memory a block; {gpu.name} has {gpu.block_shared_bytes:,}"
    return ""


def best_variant(gpu: GpuFacts, model: ModelConfig) -> Variant:
    """The fastest that trains a model on a GPU."""
    return next(VARIANTS[name] for name in ("sm90", "sm80", "portable") if not why_not(VARIANTS[name], gpu, model))


def choose_variant(wanted: str, gpu: GpuFacts, model: ModelConfig) -> Variant:
    """`auto` for the fastest, or the name of one. Raises OfaError where that one cannot be."""
    if wanted == "auto":
        return best_variant(gpu, model)
    reason = why_not(VARIANTS[wanted], gpu, model)
    if reason:
        raise OfaError(f"the {wanted} kernel {reason}; use --kernel {best_variant(gpu, model).name}")
    return VARIANTS[wanted]


# --- arguments ----------------------------------------------------------------------------------------------------


def nvcc_options(variant: Variant) -> list[str]:
    """The options that decide the code, beside architecture and include folders."""
    defines = [f"-D{name}" for name in variant.defines]
    return ["-std=c++20", "-O3", "--expt-relaxed-constexpr", "-Xptxas", "-v", *defines]


def nvcc_arguments(
    nvcc: str, variant: Variant, architecture: str, include: list[Path], source: str, output: str
) -> list[str]:
    """The command line that pycuda.compiler.compile() would use, but for the folder of PyCUDA's own headers."""
    return [
        nvcc, "--cubin", *nvcc_options(variant), "-arch", f"sm_{architecture}", *(f"-I{folder}" for folder in include),
        source, "-o", output,
    ]


def find_nvcc() -> str | None:
    """nvcc on the PATH, under CUDA_HOME, or where NVIDIA's packages put it."""
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    places = [str(Path(home) / "bin" / "nvcc")] if home else []
    return shutil.which("nvcc") or next((p for p in [*places, *NVCC_PLACES] if os.access(p, os.X_OK)), None)


def nvcc_version(nvcc: str) -> str:
    """`13.0.88`, or empty where it does not start."""
    try:
        done = subprocess.run([nvcc, "--version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    release = [word.strip(",").lstrip("V") for word in done.stdout.split() if word.startswith("V")]
    return release[-1] if done.returncode == 0 and release else ""


# --- cache --------------------------------------------------------------------------------------------------------


def cache_key(variant: Variant, architecture: str, version: str, sources: Path) -> str:
    """Hash of all that decides the code: sources, options, architecture, compiler."""
    digest = hashlib.sha256()
    for part in (*nvcc_options(variant), architecture, version, variant.text):
        digest.update(part.encode() + b"\0")
    for name, text in sorted(abi_header.headers().items()):
        digest.update(f"{name}\0{text}\0".encode())
    for path in compiler.source_files(sources):
        digest.update(path.relative_to(sources).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:32]


def cubin_for(
    variant: Variant, architecture: str, on_progress: compiler.OnProgress | None = None,
    sources: Path | None = None, through_pycuda: bool = False, nvcc: str | None = None,
) -> Cubin:
    """The kernel for an architecture: from the cache, or compiled now. Raises OfaError where that cannot be.

    `through_pycuda`: pycuda.compiler starts the compiler (it needs the driver); else this process does. Both give
    nvcc the same arguments, and the result has the same place in the cache. `nvcc`: the compiler; else the one found.
    """
    sources = sources or locations.cuda_sources()
    nvcc = nvcc or find_nvcc()
    version = nvcc_version(nvcc) if nvcc else ""
    if not nvcc or not version:
        raise OfaError("no nvcc was found, which compiles the kernel; install the CUDA toolkit, or set CUDA_HOME")
    folder = locations.cache() / "cubins" / cache_key(variant, architecture, version, sources)
    if not compiler.intact(folder / CUBIN):
        compile_here = _compile_through_pycuda if through_pycuda else _compile_in_subprocess
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder, prefix="building-") as work:
                abi_header.write_headers(Path(work) / "generated")
                include = [sources, Path(work) / "generated"]
                code, report = compile_here(nvcc, variant, architecture, include, Path(work), on_progress)
                (Path(work) / REPORT).write_text(report)
                os.replace(Path(work) / REPORT, folder / REPORT)
                compiler.keep(code, folder / CUBIN, Path(work))
        except OSError as error:
            raise OfaError(f"the compiled kernel cannot be written to {folder}: {error.strerror or error}; "
                           "free some space or set OFA_TUI_CACHE to another folder") from error
    return Cubin((folder / CUBIN).read_bytes(), (folder / REPORT).read_text(), variant, architecture)


def _compile_in_subprocess(
    nvcc: str, variant: Variant, architecture: str, include: list[Path], work: Path,
    on_progress: compiler.OnProgress | None,
) -> tuple[bytes, str]:
    (work / "kernel.cu").write_text(variant.text)
    arguments = nvcc_arguments(nvcc, variant, architecture, include, "kernel.cu", CUBIN)
    report = compiler.run_compiler(arguments, work, on_progress)
    return (work / CUBIN).read_bytes(), report


def _compile_through_pycuda(
    nvcc: str, variant: Variant, architecture: str, include: list[Path], work: Path,
    on_progress: compiler.OnProgress | None,
) -> tuple[bytes, str]:
    from pycuda.compiler import compile as pycuda_compile

    def compile_it() -> bytes:
        return pycuda_compile(
            variant.text, nvcc=nvcc, options=nvcc_options(variant), no_extern_c=True, arch=f"sm_{architecture}",
            cache_dir=False, include_dirs=[str(folder) for folder in include],
        )

    started = time.monotonic()
    with warnings.catch_warnings(record=True) as said, ThreadPoolExecutor(1) as pool:
        warnings.simplefilter("always")
        compiling = pool.submit(compile_it)
        while not wait([compiling], 0.25).done:
            if on_progress:
                on_progress(time.monotonic() - started)
        try:
            code = compiling.result()
        except Exception as error:  # pycuda.driver.CompileError, whose module needs a driver to be imported
            first = next((line for line in str(error).splitlines() if "error" in line.lower()), str(error))
            raise OfaError(f"nvcc cannot compile the kernel: {first}") from error
    return code, "\n".join(str(warning.message) for warning in said)
