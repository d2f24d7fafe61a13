"""How the GPU kernel is compiled: the same arguments either way, kept under what decides the code."""

import sys
import warnings
from pathlib import Path
from types import ModuleType

import pytest

from ofa_tui.engine import compiler, cuda_compiler
from ofa_tui.engine.cuda_compiler import VARIANTS, cache_key, cubin_for, nvcc_arguments
from ofa_tui.errors import OfaError

FAKE_NVCC = """#!/bin/sh
if [ "$1" = --version ]; then echo "Cuda compilation tools, release 13.0, V13.0.88"; exit; fi
echo "$@" > {log}
for last in "$@"; do :; done
echo code > "$last"
echo "ptxas info : a report"
"""


@pytest.fixture
def nvcc(tmp_path, monkeypatch):
    """A compiler that writes down its arguments."""
    folder = tmp_path / "bin"
    folder.mkdir()
    log = tmp_path / "arguments"
    (folder / "nvcc").write_text(FAKE_NVCC.format(log=log))
    (folder / "nvcc").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("OFA_TUI_CACHE", str(tmp_path / "cache"))
    return log


def generated_masked(arguments: list[str]) -> list[str]:
    return ["-Igenerated" if a.startswith("-I") and a.endswith("generated") else a for a in arguments]


def test_both_ways_give_nvcc_the_same_arguments(nvcc, monkeypatch, tmp_path):
    cubin = cubin_for(VARIANTS["sm90"], "90a")
    direct = nvcc.read_text().split()
    assert cubin.code == b"code\n" and "a report" in cubin.report

    def pycuda_compile(source, nvcc, options, no_extern_c, arch, cache_dir, include_dirs):
        """Builds the command line as pycuda.compiler does."""
        assert source == VARIANTS["sm90"].text and no_extern_c and cache_dir is False
        command.extend([*options, "-arch", arch, *(f"-I{folder}" for folder in include_dirs)])
        warnings.warn("a report", stacklevel=1)
        return b"code\n"

    command: list[str] = ["--cubin"]
    module = ModuleType("pycuda.compiler")
    module.compile = pycuda_compile  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pycuda", ModuleType("pycuda"))
    monkeypatch.setitem(sys.modules, "pycuda.compiler", module)
    monkeypatch.setenv("OFA_TUI_CACHE", str(tmp_path / "another"))
    again = cubin_for(VARIANTS["sm90"], "90a", through_pycuda=True)
    assert generated_masked(command) == generated_masked(direct[: len(command)])
    assert direct[len(command):] == ["kernel.cu", "-o", "megakernel.cubin"]
    assert again.report == "a report" and again.sha256 == cubin.sha256


def test_a_kept_cubin_is_used_until_it_is_damaged(nvcc, tmp_path):
    cubin_for(VARIANTS["portable"], "80")
    nvcc.unlink()
    assert cubin_for(VARIANTS["portable"], "80").code == b"code\n" and not nvcc.exists()
    kept = next((tmp_path / "cache").rglob("megakernel.cubin"))
    kept.write_bytes(b"half")
    assert cubin_for(VARIANTS["portable"], "80").code == b"code\n" and nvcc.exists()


def test_what_decides_the_code_decides_the_place(tmp_path):
    (tmp_path / "megakernel.cu").write_text("1")
    places = {cache_key(variant, architecture, version, tmp_path)
              for variant in VARIANTS.values() for architecture in ("80", "90a") for version in ("13.0", "13.1")}
    assert len(places) == 4 * len(VARIANTS)
    (tmp_path / "megakernel.cu").write_text("2")
    assert cache_key(VARIANTS["portable"], "80", "13.0", tmp_path) not in places


def test_without_nvcc_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(cuda_compiler, "find_nvcc", lambda: None)
    with pytest.raises(OfaError, match="install the CUDA toolkit"):
        cubin_for(VARIANTS["portable"], "90a")


def test_an_error_of_nvcc_is_one_sentence(nvcc, tmp_path):
    (tmp_path / "bin" / "nvcc").write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo V13.0.88 && exit\necho "x.cu(1): error: no such thing"; exit 2\n')
    with pytest.raises(OfaError, match=r"error: no such thing"):
        cubin_for(VARIANTS["portable"], "90a")


def test_an_architecture_is_never_left_to_a_guess():
    arguments = nvcc_arguments("nvcc", VARIANTS["sm90"], "90a", [Path("a")], "kernel.cu", "out")
    assert arguments[arguments.index("-arch") + 1] == "sm_90a" and "-DOFA_SM90" in arguments
    assert compiler.source_files(Path(__file__).parents[2] / "cuda")
