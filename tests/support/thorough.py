"""What `make thorough` tries and `make test` does not: repeats of a property in other settings.

`make test` tries every property, policy, engine and kind of fault at least once.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")
THOROUGH = os.environ.get("WINNOW_THOROUGH") == "1"


def repeats(cases: Iterable[T]) -> list[T]:
    """Return the cases for `make thorough`, and none for `make test`."""
    return list(cases) if THOROUGH else []
