"""A GPU's SMs divided into green contexts, and memory traffic on those that are left, for bench_train.py's peers.

Needs PyTorch, NVIDIA's driver (550 or newer) and nvcc.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ofa_tui.engine.cuda_compiler import find_nvcc
from ofa_tui.errors import OfaError

SOURCE = Path(__file__).with_name("bench_stream.cu")
RESOURCE_BYTES = 144  # sizeof(CUdevResource): type, padding, what belongs to the type
SM_RESOURCE = 1
DEFAULT_STREAM = 1  # CU_GREEN_CTX_DEFAULT_STREAM, which cuGreenCtxCreate insists on
NON_BLOCKING = 1
CHUNK_BYTES = 1024 * 8 * 16
STREAMED_BYTES = 256 << 20
"""More than the second-level cache holds, about what a token of model-s reads."""


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
        self.stream = _stream_on(device, part)
        self.other_stream = _stream_on(device, rest) if rest.sms else None


def _stream_on(device: ctypes.c_int, resource: _Resource) -> torch.cuda.ExternalStream:
    description, context, stream = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    _call("cuDevResourceGenerateDesc", ctypes.byref(description), ctypes.byref(resource.memory), 1)
    _call("cuGreenCtxCreate", ctypes.byref(context), description, device, DEFAULT_STREAM)
    _call("cuGreenCtxStreamCreate", ctypes.byref(stream), context, NON_BLOCKING, 0)
    return torch.cuda.ExternalStream(stream.value)


class Streamer:
    """Reads memory on `blocks` SMs of a stream at `gb_s` GB/s in all, inside a `with`. `measured_gb_s`: what it was.

    Inside, nothing may wait for the whole GPU.
    """

    def __init__(self, stream: torch.cuda.ExternalStream, blocks: int, gb_s: float) -> None:
        self._stream, self._blocks = stream, blocks
        self._interval_ns = round(CHUNK_BYTES * blocks / gb_s) if gb_s else 0
        self._library = ctypes.c_void_p()  # of no context: its kernels run in that of the stream
        _call("cuLibraryLoadData", ctypes.byref(self._library), _compiled(), None, None, 0, None, None, 0)
        self._memory = torch.zeros(STREAMED_BYTES // 4, dtype=torch.int32, device="cuda")
        self._chunks = torch.zeros(blocks, dtype=torch.int64, device="cuda")
        self._stop = torch.zeros(1, dtype=torch.int32, device="cuda")
        self._sink = torch.zeros(4, dtype=torch.int32, device="cuda")
        self._one = torch.ones(1, dtype=torch.int32).pin_memory()
        self._control = torch.cuda.Stream()
        self._ends = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        self.measured_gb_s = 0.0

    def sms_of(self, stream: torch.cuda.ExternalStream) -> set[int]:
        """Those on which a stream's kernels run."""
        seen = torch.zeros(256, dtype=torch.int32, device="cuda")
        torch.cuda.synchronize()
        self._start("mark_sms", stream, 1024, 32, 0, ctypes.c_uint64(seen.data_ptr()))
        torch.cuda.synchronize()
        return set(seen.nonzero().flatten().tolist())

    def _start(self, name: str, stream: torch.cuda.ExternalStream, blocks: int, threads: int, shared: int,
               *values: ctypes._SimpleCData) -> None:
        function = ctypes.c_void_p()
        _call("cuLibraryGetKernel", ctypes.byref(function), self._library, name.encode())
        _call("cuKernelSetAttribute", 8, shared, function, torch.cuda.current_device())
        arguments = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        _call("cuLaunchKernel", function, blocks, 1, 1, threads, 1, 1, shared, ctypes.c_void_p(stream.cuda_stream),
              arguments, None)

    def __enter__(self) -> Streamer:
        self._chunks.zero_()
        self._stop.zero_()
        torch.cuda.synchronize()
        self._ends[0].record(self._stream)
        # So much shared memory that no two blocks share an SM.
        self._start("stream_memory", self._stream, self._blocks, 1024, 120 << 10,
                    ctypes.c_uint64(self._memory.data_ptr()), ctypes.c_uint64(STREAMED_BYTES),
                    ctypes.c_uint64(self._interval_ns), ctypes.c_uint64(self._stop.data_ptr()),
                    ctypes.c_uint64(self._chunks.data_ptr()), ctypes.c_uint64(self._sink.data_ptr()))
        self._ends[1].record(self._stream)
        return self

    def __exit__(self, *_: object) -> None:
        with torch.cuda.stream(self._control):
            self._stop.copy_(self._one, non_blocking=True)  # a copy, not a kernel: that might wait for this one
        torch.cuda.synchronize()
        seconds = self._ends[0].elapsed_time(self._ends[1]) / 1e3
        self.measured_gb_s = float(self._chunks.sum()) * CHUNK_BYTES / seconds / 1e9


def _compiled() -> bytes:
    nvcc = find_nvcc()
    if nvcc is None:
        raise OfaError("nvcc is missing, which compiles the memory traffic beside the peers")
    major, minor = torch.cuda.get_device_capability()
    with tempfile.TemporaryDirectory() as folder:
        cubin = Path(folder) / "stream.cubin"
        subprocess.run([str(nvcc), f"-arch=sm_{major}{minor}", "-cubin", "-o", str(cubin), str(SOURCE)], check=True)
        return np.frombuffer(cubin.read_bytes(), np.uint8).tobytes()
