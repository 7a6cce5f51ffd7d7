"""Units are tested with the kernels that long streams are replayed by, where kernels changed."""

from __future__ import annotations

import pytest
from thorough import of_each_kind

from engine.replay import common


@pytest.fixture(autouse=True)
def own_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every replay have the kernel of its policy's kind, whichever are there."""
    if of_each_kind():
        monkeypatch.setattr(common, "TUPLES", 0)
