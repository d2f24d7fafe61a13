"""Proofs from the cache: of the very same programs by the very same code only, and never of what was refused."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path

import pytest

from ofa_tui import locations
from ofa_tui.program import proved
from ofa_tui.program import validate as validation
from ofa_tui.program.validate import ProgramError, validate
from tests.program.changes import SM90, SMALL


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OFA_TUI_CACHE", str(tmp_path))
    return tmp_path / "proofs"


@pytest.mark.parametrize("programs", [SMALL, SM90], ids=["host", "sm90"])
def test_a_proof_is_made_once(programs, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = validate(programs).lines()
    assert proved.proof_of(programs) == wanted
    monkeypatch.setattr(validation, "validate", lambda programs: pytest.fail("proved again"))
    assert proved.proof_of(copy.deepcopy(programs)) == wanted


def test_other_programs_and_other_code_are_proved_anew(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That no mutant has the key of what it was made from is asked of every one: changes.check_mutant."""
    proved.proof_of(SMALL)
    wrong = copy.deepcopy(SMALL)
    wrong.programs["train"].tasks["opcode"][3] += 1
    with pytest.raises(ProgramError):
        proved.proof_of(wrong)
    assert len(list(cache.iterdir())) == 1
    other_model = copy.deepcopy(SMALL)
    other_model.model = replace(other_model.model, layers=other_model.model.layers + 1)
    keys = {proved.fingerprint(SMALL), proved.fingerprint(other_model)}
    monkeypatch.setattr(proved, "_code", lambda: b"another validator")
    assert len(keys | {proved.fingerprint(SMALL)}) == 3


@pytest.mark.parametrize("damage", [b"", b"[", b"[]", b"{}", b"[1]", b"\xff"])
def test_a_damaged_proof_is_made_anew(cache: Path, damage: bytes) -> None:
    wanted = proved.proof_of(SMALL)
    (kept,) = cache.iterdir()
    kept.write_bytes(damage)
    assert proved.proof_of(SMALL) == wanted
    assert proved._read(kept) == wanted


def test_old_proofs_go_and_a_cache_that_cannot_be_written_is_left(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.mkdir()
    for number in range(proved.NEWEST + 3):
        (cache / f"{number}.json").write_text("[]")
    proved.proof_of(SMALL)
    assert len(list(cache.iterdir())) == proved.NEWEST
    monkeypatch.setattr(locations, "cache", lambda: Path("/proc/nowhere"))
    assert proved.proof_of(SMALL) == validate(SMALL).lines()
