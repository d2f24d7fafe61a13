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

H200 = GpuFacts(0, "NVIDIA H200", 132, (9, 0), 150_000_000_000, 232_448)


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
    assert failing(a_driver(GpuFacts(0, "Tesla P100", 56, (6, 0), 1 << 34, 49_152))) == ["architecture"]
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


@pytest.mark.parametrize(
    ("capability", "shared", "of_tiny", "of_model_s"),
    [((9, 0), 232_448, "portable", "sm90"), ((8, 0), 166_912, "portable", "sm80"),
     ((10, 0), 232_448, "portable", "sm80"), ((8, 6), 101_376, "portable", "portable"),
     ((7, 5), 65_536, "portable", "portable")],
)  # fmt: skip
def test_each_model_gets_the_fastest_kernel_that_holds_it(capability, shared, of_tiny, of_model_s):
    """By capability, by what the bodies in bf16 hold, and by the shared memory that attention needs."""
    backend = assemble.Backend(GpuFacts(0, "a GPU", 100, capability, 1 << 37, shared))
    large = preset("model-s").model
    found = [backend.variant(model).name for model in (preset("tiny").model, large, replace(large, context=256))]
    assert found == [of_tiny, of_model_s, "sm80" if capability == (8, 6) else of_model_s]
    for changes in ({"width": 1536, "heads": 24}, {"feed_forward": 3064}):
        assert backend.variant(replace(large, **changes)).name == "portable"
    assert assemble.Backend(None).variant(large) is None


@pytest.mark.parametrize(
    ("changes", "name"),
    [({"feed_forward": 2064}, "sm90"), ({"feed_forward": 2048}, "sm80"), ({"feed_forward": 3088}, "sm80"),
     ({"feed_forward": 3840}, "sm80"), ({"context": 513}, "sm80"), ({"context": 896}, "portable")],
)  # fmt: skip
def test_what_a_token_on_hopper_cannot_hold_is_left_to_the_others(changes, name):
    """Four chunks of an input, of equal length and whole blocks, and 512 positions; 2,064 is 3 x 43 x 16."""
    model = replace(preset("model-s").model, **changes)
    assert assemble.Backend(H200).variant(model).name == name
    if name != "sm90":
        with pytest.raises(OfaError, match=f"the sm90 kernel needs a .*; use --kernel {name}"):
            assemble.Backend(H200).variant(model, "sm90")


def test_a_kernel_that_was_asked_for_is_taken_or_refused():
    large = preset("model-s").model
    assert assemble.Backend(H200).variant(large, "sm80").name == "sm80"
    a100 = GpuFacts(0, "NVIDIA A100", 108, (8, 0), 1 << 36, 166_912)
    with pytest.raises(OfaError, match="sm90 kernel does not run on NVIDIA A100; use --kernel sm80"):
        assemble.Backend(a100).variant(large, "sm90")
    with pytest.raises(OfaError, match=r"sm80 kernel needs heads of 64 columns.*; use --kernel portable"):
        assemble.Backend(a100).variant(preset("tiny").model, "sm80")
    with pytest.raises(OfaError, match="sm80 kernel needs 237,824 bytes of shared memory a block"):
        assemble.Backend(a100).variant(replace(large, context=896), "sm80")


def test_the_notes_say_which_kernel_runs(whole):
    def note(capability):
        gpu = GpuFacts(0, "a GPU", 100, capability, 1 << 37, 166_912)
        return next(c for c in cuda_doctor.examine(library=a_driver(gpu)) if c.name == "architecture")

    assert note((9, 0)).ok and not note((8, 0)).required
    assert "the sm80 kernel" in note((8, 0)).detail and "the portable kernel" in note((7, 5)).detail
