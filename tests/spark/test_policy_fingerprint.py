"""A policy's function of one's own in a stream: another one is not taken for it."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numba
import pytest
from spark_cases import drawn
from stream_cases import micro_batch, parts, planned

from engine.runtime.errors import SpecError
from spark_plugin.streaming.replay import fingerprint

SOURCE = """
WEIGHT = 2.0
TABLE = (1.0, 2.0)

def helper(x):
    return x * WEIGHT

def rule(imp, m, age, lifetime, previous, produced):
    "Return a priority."
    inner = [helper(imp) for _ in (1, 2)]
    return inner[0] * m * (lifetime - age) + TABLE[0] + FACTOR
"""


def function(source: str = SOURCE, factor: float = 1.0) -> Any:
    """Return the rule of a module with this source."""
    module = ModuleType("rules")
    module.__dict__["FACTOR"] = factor
    exec(source, module.__dict__)  # noqa: S102 - ours
    return module.__dict__["rule"]


def test_the_same_function_is_known_again() -> None:
    same = SOURCE.replace('"Return a priority."', '"Other words."  # and more').replace(
        "def helper", "\n\ndef helper"
    )
    found = fingerprint(function())
    assert found.startswith("rule ")
    assert found == fingerprint(function(same)) == fingerprint(numba.njit(function()))


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("(lifetime - age)", "(lifetime + age)"),
        ("* m *", "* previous *"),
        ("TABLE[0]", "TABLE[1]"),
        ("return x * WEIGHT", "return x + WEIGHT"),
        ("WEIGHT = 2.0", "WEIGHT = 3.0"),
        ("(1.0, 2.0)", "(1.5, 2.0)"),
        ("produced):", "produced=1.0):"),
        ("helper(imp)", "helper(m)"),
    ],
)
def test_another_function_of_the_same_name_is_another(text: str, other: str) -> None:
    changed = SOURCE.replace(text, other)
    assert changed != SOURCE
    assert fingerprint(function(changed)) != fingerprint(function())


def test_what_a_function_encloses_or_finds_counts() -> None:
    assert fingerprint(function()) != fingerprint(function(factor=2.0))

    def made(weight: float) -> Any:
        return lambda imp, *_: imp * weight

    assert fingerprint(made(1.0)) == fingerprint(made(1.0))
    assert fingerprint(made(1.0)) != fingerprint(made(2.0))


def test_a_checkpoint_does_not_go_with_a_function_that_was_changed(
    spark: Any, tmp_path: Path
) -> None:
    folder = parts(tmp_path, [drawn(1), drawn(2)])

    def given(sign: float) -> Any:
        def rule(
            imp: float,
            m: float,
            age: float,
            lifetime: float,
            previous: float,
            produced: float,
        ) -> float:
            return sign * (imp + m + age + lifetime + previous + produced)

        return planned(spark, folder, policy="custom", params={"function": rule})

    first, again, other = given(1.0), given(1.0), given(-1.0)
    begin, end = first.index.first, first.index.end
    middle = (begin + end) // 2
    states: dict[Any, bytes] = {}
    micro_batch(first, states, begin, middle)
    with pytest.raises(SpecError, match=r"replay with other options.*another function"):
        micro_batch(other, dict(states), middle, end)
    assert micro_batch(again, states, middle, end)
