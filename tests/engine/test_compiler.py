"""The compile cache and its failures, with a compiler that is a shell script."""

import stat
import threading
from pathlib import Path

import pytest

from ofa_tui import locations
from ofa_tui.engine import compiler, cuda_compiler
from ofa_tui.errors import OfaError


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    folder = tmp_path / "cuda"
    folder.mkdir()
    (folder / "megakernel.cu").write_text("// one\n")
    return folder


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Makes CXX a script; returns the file in which it counts its runs."""
    runs = tmp_path / "runs"
    runs.write_text("")
    monkeypatch.setenv("OFA_TUI_CACHE", str(tmp_path / "cache"))

    def install(body: str, version: str = "fake 1.0") -> Path:
        script = tmp_path / "fake-cxx"
        script.write_text(
            f'#!/bin/sh\nif [ "$1" = --version ]; then echo "{version}"; exit 0; fi\n'
            f'echo run >> {runs}\nwhile [ "$1" != -o ]; do shift; done\nout="$2"\n{body}\n'
        )
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("CXX", str(script))
        return runs

    return install


WRITE = 'sleep 0.05; echo kernel > "$out"'


def count(runs: Path) -> int:
    return len(runs.read_text().split())


def test_compiles_once_and_again_when_anything_changes(fake, sources):
    runs = fake(WRITE)
    first = compiler.build(sources=sources)
    assert first.read_text() == "kernel\n" and compiler.build(sources=sources) == first and count(runs) == 1
    (sources / "megakernel.cu").write_text("// two\n")
    assert compiler.build(sources=sources) != first and count(runs) == 2
    fake(WRITE, version="fake 2.0")
    assert compiler.build(sources=sources) != first and count(runs) == 3


@pytest.mark.parametrize("damage", ["", "kern", "kernel\nmore"])
def test_a_damaged_entry_is_built_again(fake, sources, damage):
    runs = fake(WRITE)
    output = compiler.build(sources=sources)
    output.write_text(damage)
    assert compiler.build(sources=sources).read_text() == "kernel\n" and count(runs) == 2


def test_the_processor_is_part_of_the_key(sources, monkeypatch):
    chosen = compiler.Compiler(("c++",), "1")
    here = compiler.cache_key(chosen, sources, "")
    monkeypatch.setattr(compiler, "_processor", lambda: {"model name": "another", "flags": "sse2"})
    assert compiler.cache_key(chosen, sources, "") != here
    assert compiler.cache_key(chosen, sources, "thread") != compiler.cache_key(chosen, sources, "")


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ('echo "megakernel.cu:3: error: no such thing"; exit 1', "no such thing"),
        ("exit 1", "it printed nothing"),
        ("kill -9 $$", "killed by signal 9"),
        ("exit 0", "wrote no kernel"),
    ],
)
def test_a_failing_compiler_is_a_sentence_and_leaves_nothing(fake, sources, body, sentence):
    fake(body)
    with pytest.raises(OfaError, match=sentence):
        compiler.build(sources=sources)
    assert not [path for path in locations.cache().rglob("*") if path.is_file()]


def test_no_compiler_says_how_to_get_one(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(compiler, "find_spec", lambda name: None)
    with pytest.raises(OfaError, match=r"no C\+\+ compiler was found.*install g\+\+"):
        compiler.find_compiler()


def test_a_cache_that_cannot_be_written_is_a_sentence(fake, sources, tmp_path, monkeypatch):
    fake(WRITE)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("OFA_TUI_CACHE", str(tmp_path / "file"))
    with pytest.raises(OfaError, match="OFA_TUI_CACHE"):
        compiler.build(sources=sources)


def test_two_at_once_both_get_a_whole_kernel(fake, sources):
    fake(WRITE)
    results: list[str] = []
    threads = [
        threading.Thread(target=lambda: results.append(compiler.build(sources=sources).read_text())) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == ["kernel\n"] * 2


def test_progress_tells_the_seconds(fake, sources):
    fake('sleep 0.6; echo kernel > "$out"')
    seconds: list[float] = []
    compiler.build(seconds.append, sources=sources)
    assert seconds and seconds == sorted(seconds)


def test_both_targets_compile_the_same_file(tmp_path):
    """One pure function per target; neither looks at the machine."""
    host = compiler.host_arguments(("c++",), Path("cuda"), Path("gen"), Path("out"))
    assert "-march=native" in host and "-O3" in host and "cuda/megakernel.cu" in host
    assert {variant.text for variant in cuda_compiler.VARIANTS.values()} == {'#include "megakernel.cu"\n'}
