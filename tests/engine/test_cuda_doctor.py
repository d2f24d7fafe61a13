"""What is missing for a run on a GPU is said, thing by thing, and how to get it."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from ofa_tui import assemble
from ofa_tui.cli import main
from ofa_tui.engine import cuda_compiler, cuda_doctor, cuda_nvml
from ofa_tui.engine.cuda_library import DriverError, GpuFacts
from ofa_tui.errors import OfaError
from ofa_tui.installation import how_to_add
from ofa_tui.presets import preset

H200 = GpuFacts(0, "NVIDIA H200", 132, (9, 0), 150_000_000_000)


def a_driver(*gpus: GpuFacts, version=(13, 0)):
    return lambda: SimpleNamespace(version=lambda: version, gpus=lambda: list(gpus))


def no_driver():
    raise DriverError("no NVIDIA driver is installed (libcuda.so.1 was not found)")


@pytest.fixture
def whole(monkeypatch):
    """A machine with all that is needed beside driver and GPU."""
    monkeypatch.setattr(cuda_compiler, "find_nvcc", lambda: "/usr/bin/nvcc")
    monkeypatch.setattr(cuda_compiler, "nvcc_version", lambda nvcc: "13.0.88")
    monkeypatch.setattr(cuda_doctor.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(cuda_doctor, "find_spec", lambda name: object())


def failing(library) -> list[str]:
    return [check.name for check in cuda_doctor.examine(library=library) if not check.ok and check.required]


def test_each_missing_thing_is_named(whole, monkeypatch):
    assert failing(a_driver(H200)) == [] and cuda_doctor.missing(library=a_driver(H200)) == ""
    assert failing(no_driver) == ["driver"]
    assert failing(a_driver(H200, version=(12, 4))) == ["driver"]
    assert failing(a_driver()) == ["GPU"]
    assert failing(a_driver(GpuFacts(0, "Tesla P100", 56, (6, 0), 1 << 34))) == ["architecture"]
    monkeypatch.setattr(cuda_doctor, "find_spec", lambda name: None)
    assert "not installed; " + how_to_add("pycuda", "nvidia-ml-py") in cuda_doctor.missing(library=a_driver(H200))
    monkeypatch.setattr(cuda_compiler, "find_nvcc", lambda: None)
    assert "CUDA toolkit" in cuda_doctor.missing(library=a_driver(H200))


def test_other_programs_and_little_memory_are_noted(whole, monkeypatch):
    monitor = SimpleNamespace(memory=lambda: (1 << 30, 1 << 37), others=lambda: [(4321, 100_000_000_000)])
    monkeypatch.setattr(cuda_nvml, "Monitor", lambda index: monitor)
    lines = [check.line() for check in cuda_doctor.examine(library=a_driver(H200))]
    assert any("process 4321 holds 100.0 GB" in line for line in lines)
    assert any(line.startswith("note") and "1.1 of 137.4 GB free" in line for line in lines)


def test_auto_falls_back_to_the_cpu_and_says_so(monkeypatch):
    monkeypatch.setattr(cuda_doctor, "missing", lambda: "driver: none; install one")
    backend = assemble.choose_backend("auto")
    assert backend.gpu is None and "no GPU can be used (driver: none; install one)" in backend.note
    assert assemble.choose_backend("host") == assemble.Backend(None)
    with pytest.raises(OfaError, match=r"cannot run \(driver: none; install one\)"):
        assemble.choose_backend("cuda")


def test_the_command_prints_a_line_for_each(monkeypatch, capsys):
    monkeypatch.setattr(cuda_doctor, "DriverLibrary", no_driver)
    code = main(["doctor"])
    out = capsys.readouterr().out
    assert code == 1 and "missing driver" in out and "--backend host" in out


@pytest.mark.parametrize("count", [1, 2, 3, 60, 84, 108, 114, 132, 142, 170])
def test_the_sms_of_any_gpu_are_divided(count):
    train, serve, doom = assemble.divide_sms(count)
    assert min(train, serve, doom) >= 1 and (train + serve + doom == count or count < 3)
    assert assemble.divide_sms(132) == (96, 28, 8)


def test_each_model_gets_the_kernel_that_holds_it():
    """By capability and by what the Hopper kernel's bodies can hold; no GPU is the CPU."""
    small, large = preset("tiny").model, preset("model-s").model
    assert [assemble.Backend(H200).target(model) for model in (small, large)] == ["host", "sm90"]
    blackwell = GpuFacts(0, "NVIDIA B200", 148, (10, 0), 1 << 37)
    assert assemble.Backend(blackwell).target(large) == assemble.Backend(None).target(large) == "host"
    assert assemble.Backend(H200).target(replace(large, width=1536, heads=24)) == "host"
