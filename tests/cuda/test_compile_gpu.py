"""The GPU build's report: read right, and fit."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "compile_gpu.py"
spec = importlib.util.spec_from_file_location("compile_gpu", SCRIPT)
assert spec and spec.loader
compile_gpu = importlib.util.module_from_spec(spec)
sys.modules["compile_gpu"] = compile_gpu
spec.loader.exec_module(compile_gpu)

REPORT = """\
ptxas info    : 272 bytes gmem
ptxas info    : Compiling entry function 'megakernel' for 'sm_90a'
ptxas info    : Function properties for megakernel
    120 bytes stack frame, {stores} bytes spill stores, 0 bytes spill loads
ptxas info    : Used 168 registers, used 1 barriers, 120 bytes cumulative stack size, 104 bytes smem
ptxas info    : Function properties for _ZN3ofa10op_publishERNS_5BlockERKNS_11TaskContextE
    16 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads
{rest}"""


def test_a_clean_report_is_fit():
    text = REPORT.format(stores=0, rest="")
    assert compile_gpu.faults(text) == []
    entry, publish = compile_gpu.read_report(text)
    assert (entry.name, entry.registers, entry.stack_bytes) == ("megakernel", 168, 120)
    assert (publish.registers, publish.spill_store_bytes, publish.spill_load_bytes) == (None, 8, 4)
    first, *_, last = compile_gpu.summary(text).splitlines()
    assert "168 registers" in first and "0 bytes of spills" in first
    assert last.split() == ["12", "bytes", "ofa::op_publish"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (REPORT.format(stores=64, rest=""), "spills registers: 64 bytes"),
        (REPORT.format(stores=0, rest="ptxas info : (C7508) Potential Performance Loss: ignored"), "C7508"),
        ("", "does not mention"),
    ],
)
def test_spills_and_notes_are_faults(text, fault):
    assert fault in compile_gpu.faults(text)[0]


@pytest.fixture(scope="module")
def build() -> subprocess.CompletedProcess[str]:
    if not shutil.which("nvcc"):
        pytest.skip("no nvcc on PATH")
    return subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_kernel_compiles_for_a_gpu(build):
    assert "megakernel: " in build.stdout, build.stderr
    assert "C75" not in build.stderr


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_entry_does_not_spill(build):
    assert "megakernel: " in build.stdout, build.stderr
    assert build.returncode == 0, build.stderr
