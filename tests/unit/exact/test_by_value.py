"""The order of values is NumPy's stable order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from engine.exact.by_value import ascending
from engine.runtime.compilation.compilations import COMPILED
from engine.runtime.compilation.deferred import LEFT
from engine.runtime.jit import Floats

TINY = 5e-324
KINDS: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "even": lambda rng, n: rng.uniform(-3.0, 200.0, n),
    "tied": lambda rng, n: rng.integers(-5, 5, n) / 4.0,
    "equal": lambda _, n: np.full(n, 7.0),
    "heavy tails": lambda rng, n: rng.standard_cauchy(n) ** 3,
    "far outlier": lambda rng, n: np.append(rng.uniform(0.0, 1e-9, n - 1), 1e300),
    "zeros and infinities": lambda rng, n: rng.choice([0.0, -0.0, np.inf, -np.inf, TINY, -TINY], n),
    "last bits alone": lambda rng, n: np.append(
        (np.float64(1.7e18).view(np.int64) + rng.integers(0, 9999, n - 1)).view(np.float64), -1.0
    ),
    "falling": lambda _, n: np.arange(n, 0.0, -1.0),
    "powers": lambda rng, n: np.exp2(rng.integers(-1074, 1024, n).astype(float)),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_is_the_stable_order(kind: str, compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(COMPILED, "always", compiled)
    monkeypatch.setattr(LEFT, "steps", LEFT.steps)
    for n in (0, 1, 2, 255, 256, 257, 700, *([5_000, 70_001] if compiled else [])):
        values = KINDS[kind](np.random.default_rng(n), n) if n else np.zeros(0)
        given = values.copy()
        order, found = ascending(values)
        expected = np.argsort(values, kind="stable")
        assert order.tolist() == expected.tolist()
        assert found.tobytes() == (values[expected] + 0.0).tobytes()
        assert values.tobytes() == given.tobytes()
