"""The oracle again, on streams busy enough that every eviction is contested."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from replay_cases import CUSTOM, Case, run
from test_replay import check

from engine.policies import POLICIES

ESTIMATORS = ("memory", "window", "history")
PROBES = ("before_admission", "after_admission")


def busy(policy: str, seed: int) -> Case:
    """Return 2 x 150 rows, many an instant, few keys, small budgets and much-tied importances."""
    rng = np.random.default_rng(seed)
    span = int(rng.choice([20, 60, 150]))
    levels = [[1.0], [1.0, 2.0, 3.0], [0.0, 0.0, 0.5, 1.0], list(rng.random(50) * 3)][seed % 4]
    keys = int(rng.choice([2, 4, 9]))

    def stream() -> list[tuple[int, int | None, float]]:
        ts = rng.integers(0, span, 150)
        if rng.random() < 0.5:
            ts = np.sort(ts)
        skewed = np.minimum(rng.geometric(0.4, 150) - 1, keys - 1)
        return [
            (int(t), None if rng.random() < 0.03 else int(k), float(rng.choice(levels)))
            for t, k in zip(ts, skewed, strict=True)
        ]

    params: dict[str, Any] = {}
    if policy == "dgl":
        params = [{}, {"beta": 0.3}, {"beta": 0.1, "alpha": 2.0}, {"initial": "importance"}][
            seed // 4 % 4
        ]
    elif policy in {"additive", "multiplicative", "prob"} and seed % 3 == 0:
        params = {"ties": "importance"}
    elif policy == "age":
        n = int(rng.choice([1, 4, 13]))
        params = {
            "curve_left": rng.integers(0, 4, n).astype(float).tolist(),
            "curve_right": rng.integers(0, 4, n).astype(float).tolist(),
        }
    elif policy == "custom":
        params = {"function": CUSTOM[seed % 2], "ties": ("ts", "importance")[seed // 2 % 2]}
    return Case(
        stream(),
        stream(),
        (int(rng.choice([3, 10, 40])), int(rng.choice([3, 10, 40]))),
        (int(rng.integers(1, 12)), int(rng.integers(1, 12))),
        policy,
        params,
        ESTIMATORS[seed % 3],
        PROBES[seed // 3 % 2],
        seed=seed,
    )


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_equals_the_oracle_under_contest(policy: str) -> None:
    for seed in range(36):
        check(busy(policy, seed))


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_batches_and_counting_change_nothing(policy: str) -> None:
    for seed in range(6):
        case = busy(policy, seed)
        whole = run(case, chunk=100_000)
        for step in (1, 7, 33):
            parts = run(case, step=step, chunk=5)
            assert parts.outputs == whole.outputs
            assert parts.peaks == whole.peaks
        counted = run(case, emit=False)
        assert counted.outputs == []
        assert counted.counted == len(whole.outputs)
        assert counted.importance == pytest.approx(whole.importance, rel=1e-12)


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_memory_of_the_windows_gives_the_exact_join(policy: str) -> None:
    for seed in range(4):
        case = busy(policy, seed)._replace(budgets=(None, None))
        everything = run(case._replace(policy="recent", params={}))
        assert run(case).outputs == everything.outputs


def test_a_budget_of_nothing_leaves_simultaneous_matches() -> None:
    case = busy("simp", 1)._replace(budgets=(0, 0))
    comp = run(case)
    assert comp.peaks == (0, 0)
    assert comp.outputs
    assert all(case.left[o[0]][0] == case.right[o[1]][0] for o in comp.outputs)


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_equals_the_oracle_on_long_streams(policy: str) -> None:
    """Long enough that heaps, logs and zero heaps fill up with the gone and are rebuilt."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        streams = [long_stream(rng, tied=seed > 0) for _ in range(2)]
        check(
            busy(policy, seed)._replace(
                left=streams[0],
                right=streams[1],
                windows=(40 + seed, 25),
                budgets=(17, 9 + seed),
            )
        )


def long_stream(rng: np.random.Generator, *, tied: bool) -> list[tuple[int, int | None, float]]:
    """Return 700 rows over 400 ticks and 26 keys."""
    ts = np.sort(rng.integers(0, 400, 700))
    keys = np.minimum(rng.geometric(0.15, 700) - 1, 25)
    levels = rng.choice([0.0, 1.0, 2.0, 5.0], 700) if tied else rng.random(700)
    return [(int(t), int(k), float(x)) for t, k, x in zip(ts, keys, levels, strict=True)]


@pytest.mark.parametrize("scale", [1.0, 1.001, 0.3, 3.0])
def test_dgl_where_neighbouring_priorities_round_together(scale: float) -> None:
    """Losses of about half a last digit: V and P need not be in one order, nor V rise."""
    levels = [1.0]
    for _ in range(5):
        levels.append(float(np.nextafter(levels[-1], 2.0)))
    for seed in range(16):
        case = busy("dgl", seed)
        rng = np.random.default_rng(seed)
        left, right = (
            [(t, k, float(rng.choice(levels))) for t, k, _ in stream]
            for stream in (case.left, case.right)
        )
        params = {"beta": scale * 2.0**-55, "alpha": 1e30 if seed % 2 else 1.0}
        if seed % 3:
            params["initial"] = "importance"
        check(case._replace(left=left, right=right, params=params, estimator="memory"))
