"""The GPU build's report: read right, and fit."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ofa_tui.engine import cuda_maps
from ofa_tui.engine.cuda_compiler import VARIANTS

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
        (REPORT.format(stores=0, rest="ptxas warning : Stack size for entry function 'megakernel' cannot be statically "
                                      "determined"), "calls itself"),
        ("", "does not mention"),
    ],
)
def test_spills_and_notes_are_faults(text, fault):
    assert fault in compile_gpu.faults(text)[0]


LISTING = """\
        /*0540*/                   STL [R1+0x37fc], R2 ;         /* 0x0037fc0201007387 */
                                                                 /* 0x0001e20000100800 */
        /*0570*/                   USETMAXREG.TRY_ALLOC.CTAPOOL UP0, 0xe0 ;
        /*0580*/              @!P0 BRA 0x570 ;
        /*1410*/                   {loop} ;
        /*1780*/                   HGMMA.64x256x16.F32.BF16 R24, gdesc[UR12], R24 ;
        /*1790*/              @!P2 BRA 0x17b0 ;
        /*17a0*/                   HGMMA.64x256x16.F32.BF16 R24, gdesc[UR12], R24, gsb0 ;
        /*17b0*/              @!P0 BRA 0x1410 ;
        /*1a50*/                   LDL R6, [R1+0x3154] ;
        /*22420*/                  BRA 0x540 ;
        /*22430*/                  USETMAXREG.DEALLOC.CTAPOOL 0x38 ;
"""


def test_local_memory_counts_in_the_loops_of_matrix_instructions_alone():
    hopper = VARIANTS["sm90"]
    assert compile_gpu.sass_faults(LISTING.format(loop="S2R R7, SR_TID.X"), hopper) == []
    (fault,) = compile_gpu.sass_faults(LISTING.format(loop="LDL R8, [R1+0x3154]"), hopper)
    assert "the loop of matrix instructions at 0x1410 uses local memory at 0x1410" in fault


@pytest.mark.parametrize(
    ("gone", "fault"), [("HGMMA", "HGMMA"), ("TRY_ALLOC", "USETMAXREG"), (".DEALLOC", "USETMAXREG")]
)
def test_the_hopper_entry_multiplies_and_hands_registers_over(gone, fault):
    listing = LISTING.format(loop="NOP").replace(gone, "")
    (found,) = compile_gpu.sass_faults(listing, VARIANTS["sm90"])
    assert fault in found
    assert compile_gpu.sass_faults(listing, VARIANTS["portable"]) == []


def test_each_variant_that_an_architecture_runs_is_compiled():
    def names(architecture):
        return [variant.name for variant in VARIANTS.values() if compile_gpu.runs_on(variant, architecture)]

    assert names("90a") == ["portable", "sm90", "sm80"] and names("75") == ["portable"]
    assert names("80") == names("90") == names("100a") == names("120") == ["portable", "sm80"]


@pytest.fixture(scope="module")
def build() -> subprocess.CompletedProcess[str]:
    if not shutil.which("nvcc"):
        pytest.skip("no nvcc on PATH")
    return subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True)


@pytest.mark.slow
@pytest.mark.timeout(2700)
def test_each_kernel_compiles_for_a_gpu_and_its_entry_does_not_spill(build):
    assert build.stdout.count("megakernel: ") == len(VARIANTS), build.stderr
    assert all(f"{name}, sm_90a" in build.stdout for name in VARIANTS)
    assert all(f"    {name} " in build.stdout for name in cuda_maps.USES)
    assert build.returncode == 0, build.stderr
