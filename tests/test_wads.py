"""The one switch: a WAD that is missing skips a test, or fails it where WADs are required."""

from __future__ import annotations

import pytest

from tests import wads


def test_a_missing_wad_skips_or_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(wads.REQUIRED, raising=False)
    with pytest.raises(pytest.skip.Exception, match="fetch_wads"):
        wads.with_sha256("0" * 64)
    monkeypatch.setenv(wads.REQUIRED, "1")
    with pytest.raises(pytest.fail.Exception, match="fetch_wads"):
        wads.with_sha256("0" * 64)
