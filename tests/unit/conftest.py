"""Units are tested with the kernels that long streams are replayed by."""

from __future__ import annotations

import pytest

from engine.replay import common


@pytest.fixture(autouse=True)
def own_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every replay have the kernel of its policy's kind, whichever are there."""
    monkeypatch.setattr(common, "TUPLES", 0)
