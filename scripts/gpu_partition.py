"""A GPU's SMs divided into green contexts, SMs that are held, and memory traffic, for the benchmarks on a GPU.

Needs PyTorch, NVIDIA's driver (550 or newer) and nvcc.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ofa_tui.engine.cuda_compiler import find_nvcc
from ofa_tui.errors import OfaError

SOURCE = Path(__file__).with_name("bench_stream.cu")
INCLUDE = SOURCE.parents[1] / "cuda"
RESOURCE_BYTES = 144  # sizeof(CUdevResource): type, padding, what belongs to the type
SM_RESOURCE = 1
DEFAULT_STREAM = 1  # CU_GREEN_CTX_DEFAULT_STREAM, which cuGreenCtxCreate insists on
NON_BLOCKING = 1
MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
CHUNK_BYTES = 1024 * 8 * 16
COPY_BYTES = 32 << 10
COPY_PASSES = 400
"""Over STREAMED_BYTES in one launch of copies, some 30 ms."""
MOST_BLOCKS = 256
STREAMED_BYTES = 256 << 20
"""More than the second-level cache holds, about what a token of model-s reads."""
WHOLE_SM, HALF_SM = 227 << 10, 120 << 10
"""Shared memory of a block: with the first no other shares the SM, with the second no other of its kind."""


def _driver() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")


def _call(name: str, *arguments: object) -> None:
    code = getattr(_driver(), name)(*arguments)
    if code:
        raise OfaError(f"{name} failed with error {code}; green contexts need driver 550 or newer")


class _Resource:
    """A CUdevResource."""

    def __init__(self) -> None:
        self.memory = (ctypes.c_uint64 * (RESOURCE_BYTES // 8))()

    @property
    def sms(self) -> int:
        return int.from_bytes(bytes(self.memory)[96:100], "little")


class Partition:
    """`sms` SMs of the current GPU (rounded up to what it can divide) and, apart from them, the others."""

    def __init__(self, sms: int) -> None:
        torch.zeros(1, device="cuda")  # the primary context is there
        whole, part, rest = _Resource(), _Resource(), _Resource()
        device = ctypes.c_int()
        _call("cuDeviceGet", ctypes.byref(device), torch.cuda.current_device())
        _call("cuDeviceGetDevResource", device, ctypes.byref(whole.memory), SM_RESOURCE)
        groups = ctypes.c_uint(1)
        _call("cuDevSmResourceSplitByCount", ctypes.byref(part.memory), ctypes.byref(groups),
              ctypes.byref(whole.memory), ctypes.byref(rest.memory), 0, sms)
        self.sms, self.other_sms = part.sms, rest.sms
        self._context = _context_on(device, part)
        self.stream = _stream_of(self._context)
        self.other_stream = _stream_of(_context_on(device, rest)) if rest.sms else None

    def second_stream(self) -> torch.cuda.ExternalStream:
        """Another one on the same SMs as `stream`."""
        return _stream_of(self._context)


def _context_on(device: ctypes.c_int, resource: _Resource) -> ctypes.c_void_p:
    description, context = ctypes.c_void_p(), ctypes.c_void_p()
    _call("cuDevResourceGenerateDesc", ctypes.byref(description), ctypes.byref(resource.memory), 1)
    _call("cuGreenCtxCreate", ctypes.byref(context), description, device, DEFAULT_STREAM)
    return context


def _stream_of(context: ctypes.c_void_p) -> torch.cuda.ExternalStream:
    stream = ctypes.c_void_p()
    _call("cuGreenCtxStreamCreate", ctypes.byref(stream), context, NON_BLOCKING, 0)
    return torch.cuda.ExternalStream(stream.value)


class Kernels:
    """Those of bench_stream.cu. Of no context: each runs in that of its stream."""

    def __init__(self) -> None:
        self._library = ctypes.c_void_p()
        _call("cuLibraryLoadData", ctypes.byref(self._library), _compiled(), None, None, 0, None, None, 0)

    def start(self, name: str, stream: torch.cuda.Stream, blocks: int, threads: int, shared: int,
              *values: ctypes._SimpleCData) -> None:
        function = ctypes.c_void_p()
        _call("cuLibraryGetKernel", ctypes.byref(function), self._library, name.encode())
        _call("cuKernelSetAttribute", MAX_DYNAMIC_SHARED, shared, function, torch.cuda.current_device())
        arguments = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        _call("cuLaunchKernel", function, blocks, 1, 1, threads, 1, 1, shared, ctypes.c_void_p(stream.cuda_stream),
              arguments, None)

    def sms_of(self, stream: torch.cuda.Stream, captured: bool = False) -> set[int]:
        """Those on which a stream's kernels run; with `captured` those of a CUDA graph captured and replayed on it."""
        seen = torch.zeros(MOST_BLOCKS, dtype=torch.int32, device="cuda")
        torch.cuda.synchronize()

        def mark() -> None:
            self.start("mark_sms", stream, 1024, 32, 0, _address(seen))

        mark()  # a kernel that was never launched may not be captured
        torch.cuda.synchronize()
        if captured:
            seen.zero_()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=stream):
                mark()
            with torch.cuda.stream(stream):
                graph.replay()
            torch.cuda.synchronize()
        return set(seen.nonzero().flatten().tolist())


@dataclass(frozen=True)
class CopyRate:
    """GB/s of each round of `Copies`, and the SMs that copied."""

    gb_s: list[float]
    sms: set[int]


class Copies:
    """Measures how fast SMs can read memory: bulk copies of 32 KiB through a ring of six, by one thread a block.

    Allocates everything at first, so that a rate can be measured while other SMs are held.
    """

    def __init__(self, kernels: Kernels) -> None:
        self._kernels = kernels
        self._memory = torch.zeros(STREAMED_BYTES // 4, dtype=torch.int32, device="cuda")
        self._there, self._sms = (torch.zeros(size, dtype=torch.int32, device="cuda") for size in (1, MOST_BLOCKS))
        self._took_ns = torch.zeros(MOST_BLOCKS, dtype=torch.int64, device="cuda")

    def rate(self, stream: torch.cuda.Stream, blocks: int, first: int, count: int, rounds: int) -> CopyRate:
        """Of `count` of `blocks` blocks, each alone on its SM with its own share of memory; the slowest counts.

        Raises OfaError when so many blocks do not find an SM each.
        """
        copied = STREAMED_BYTES // count // COPY_BYTES * COPY_BYTES * count * COPY_PASSES
        rates = []
        for _ in range(rounds):
            self._there.zero_()
            self._took_ns.zero_()
            torch.cuda.current_stream().synchronize()
            self._kernels.start(
                "copy_memory", stream, blocks, 32, WHOLE_SM, _address(self._memory), ctypes.c_uint64(STREAMED_BYTES),
                ctypes.c_uint32(first), ctypes.c_uint32(count), ctypes.c_uint32(COPY_PASSES), _address(self._there),
                _address(self._took_ns), _address(self._sms))
            stream.synchronize()
            took_ns = self._took_ns[first : first + count].tolist()
            if min(took_ns) == 0:
                raise OfaError(f"{blocks} blocks do not find an SM each at the same time")
            rates.append(copied / max(took_ns))
        return CopyRate(rates, set(self._sms[first : first + count].tolist()))


class _StopWord:
    """A word on the GPU that ends kernels which poll it."""

    def __init__(self) -> None:
        self._word = torch.zeros(1, dtype=torch.int32, device="cuda")
        self._one = torch.ones(1, dtype=torch.int32).pin_memory()
        self._stream = torch.cuda.Stream()
        self.address = _address(self._word)

    def clear(self) -> None:
        self._word.zero_()

    def set(self) -> None:
        """And waits until all that runs has ended."""
        with torch.cuda.stream(self._stream):
            self._word.copy_(self._one, non_blocking=True)  # a copy, not a kernel: that might wait for those that poll
        torch.cuda.synchronize()


class Holder:
    """Keeps `count` of the SMs of a stream busy with nothing, inside a `with`. `sms`: which they were.

    Inside, nothing may wait for the whole GPU.
    """

    def __init__(self, kernels: Kernels, stream: torch.cuda.Stream, count: int) -> None:
        self._kernels, self._stream, self._count = kernels, stream, count
        self._stop = _StopWord()
        self._seen = torch.zeros(MOST_BLOCKS, dtype=torch.int32, device="cuda")
        self.sms: set[int] = set()

    def __enter__(self) -> Holder:
        self._stop.clear()
        self._seen.zero_()
        torch.cuda.synchronize()
        self._kernels.start("hold_sms", self._stream, self._count, 32, WHOLE_SM, self._stop.address,
                            _address(self._seen))
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: BaseException | TracebackType | None) -> None:
        self._stop.set()
        self.sms = set(self._seen.nonzero().flatten().tolist())
        if len(self.sms) != self._count and kind is None:
            raise OfaError(f"{len(self.sms)} SMs were held, not {self._count}")


class Streamer:
    """Reads memory on `blocks` SMs of a stream at `gb_s` GB/s in all, inside a `with`. `measured_gb_s`: what it was.

    Inside, nothing may wait for the whole GPU.
    """

    def __init__(self, kernels: Kernels, stream: torch.cuda.ExternalStream, blocks: int, gb_s: float) -> None:
        self._kernels, self._stream, self._blocks = kernels, stream, blocks
        self._interval_ns = round(CHUNK_BYTES * blocks / gb_s) if gb_s else 0
        self._memory = torch.zeros(STREAMED_BYTES // 4, dtype=torch.int32, device="cuda")
        self._chunks = torch.zeros(blocks, dtype=torch.int64, device="cuda")
        self._stop = _StopWord()
        self._sink = torch.zeros(4, dtype=torch.int32, device="cuda")
        self._ends = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        self.measured_gb_s = 0.0

    def __enter__(self) -> Streamer:
        self._chunks.zero_()
        self._stop.clear()
        torch.cuda.synchronize()
        self._ends[0].record(self._stream)
        self._kernels.start("stream_memory", self._stream, self._blocks, 1024, HALF_SM, _address(self._memory),
                            ctypes.c_uint64(STREAMED_BYTES), ctypes.c_uint64(self._interval_ns), self._stop.address,
                            _address(self._chunks), _address(self._sink))
        self._ends[1].record(self._stream)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        seconds = self._ends[0].elapsed_time(self._ends[1]) / 1e3
        self.measured_gb_s = float(self._chunks.sum()) * CHUNK_BYTES / seconds / 1e9


def _address(tensor: torch.Tensor) -> ctypes.c_uint64:
    return ctypes.c_uint64(tensor.data_ptr())


def _compiled() -> bytes:
    nvcc = find_nvcc()
    if nvcc is None:
        raise OfaError("nvcc is missing, which compiles the memory traffic beside the peers")
    major, minor = torch.cuda.get_device_capability()
    with tempfile.TemporaryDirectory() as folder:
        cubin = Path(folder) / "stream.cubin"
        subprocess.run([str(nvcc), "-std=c++20", f"-arch=sm_{major}{minor}a", f"-I{INCLUDE}", "-cubin", "-o",
                        str(cubin), str(SOURCE)], check=True)
        return np.frombuffer(cubin.read_bytes(), np.uint8).tobytes()
