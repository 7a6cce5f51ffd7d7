"""When outputs may be missing: unions of spans of time, and what they leave known."""

from __future__ import annotations

import numpy as np
import pytest
from sampling_cases import Case, drawn_case, run

from engine.sampling import lost
from engine.sampling.lane import LaneSampler


@pytest.mark.parametrize("seed", range(20))
def test_unions_have_the_same_ticks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 200, rng.integers(0, 30))
    spans = np.column_stack([first, first + rng.integers(0, 15, first.size)])
    ticks = {t for a, b in spans for t in range(a, b + 1)}
    merged = lost.merged([spans[: len(spans) // 2], spans[len(spans) // 2 :]])
    assert {t for a, b in merged for t in range(a, b + 1)} == ticks
    assert np.all(merged[1:, 0] > merged[:-1, 1] + 1)
    for most in range(1, len(merged) + 2):
        some = lost.fewer(merged, most)
        assert len(some) <= max(most, 0)
        assert ticks <= {t for a, b in some for t in range(a, b + 1)}
    begin = rng.integers(-10, 230, 50)
    end = begin + rng.integers(0, 9, 50)
    expected = [any(t in ticks for t in range(a, b + 1)) for a, b in zip(begin, end, strict=True)]
    assert lost.meets(merged, begin, end).tolist() == expected


def test_the_widest_gaps_remain() -> None:
    spans = np.array([[0, 0], [2, 2], [50, 50], [60, 60], [61, 70]])
    assert lost.fewer(spans, 2).tolist() == [[0, 2], [50, 70]]


@pytest.mark.parametrize("method", ["eq-cluster", "pps-cluster", "bottom-k"])
def test_outside_of_them_the_sample_is_the_join(method: str) -> None:
    known = 0
    for seed in range(40):
        case = drawn_case(seed, method)
        found = run(case)
        whole = run(replace_measures(case))
        outside = {row[:3] for row in whole.rows if not inside(found.lost, row[2])}
        assert outside == {row[:3] for row in found.rows if not inside(found.lost, row[2])}
        known += len(outside)
    assert known > 20


def replace_measures(case: Case) -> Case:
    """Return the case with everything retained."""
    ones = [1.0] * len(case.left), [1.0] * len(case.right)
    return case._replace(method="eq-cluster", measures=ones)


def inside(spans: np.ndarray, t: int) -> bool:
    return any(a <= t <= b for a, b in spans)


def test_uniform_may_miss_an_output_at_any_time() -> None:
    assert LaneSampler("uniform", (9, 9), p=0.5, exact_measures=True).lost.tolist() == [
        lost.ALWAYS[0].tolist()
    ]
    assert LaneSampler("uniform", (9, 9), exact_measures=True).lost.tolist() == []
    assert len(LaneSampler("uniform", (9, 9)).lost) == 1
