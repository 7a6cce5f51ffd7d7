"""What `make thorough` tries and `make test` does not.

That is repeats of a property in other settings, and the few tests that take a minute each and
guard one place: RAPIDS plans, images, clusters of made-up GPUs, measured memory. `make test` tries
every policy, engine and kind of fault at least once, and compares with every oracle.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeVar

import pytest

T = TypeVar("T")
THOROUGH = os.environ.get("WINNOW_THOROUGH") == "1"
only_thorough = pytest.mark.skipif(not THOROUGH, reason="it takes a minute: make thorough runs it")


def repeats(cases: Iterable[T]) -> list[T]:
    """Return the cases for `make thorough`, and none for `make test`."""
    return list(cases) if THOROUGH else []
