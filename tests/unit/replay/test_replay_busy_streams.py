"""The oracle again, on streams busy enough that every eviction is contested."""

from __future__ import annotations

import numpy as np
import pytest
from replay_cases import apart, busy, long_stream, run
from test_replay import check
from thorough import THOROUGH, repeats

from engine.policies import POLICIES


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_equals_the_oracle_under_contest(policy: str) -> None:
    for seed in range(36 if THOROUGH else 16):
        check(busy(policy, seed))


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_equals_the_oracle_where_most_arrive_alone(policy: str) -> None:
    for seed in [*range(6), *repeats(range(6, 16))]:
        case = apart(busy(policy, seed), seed)
        check(case)
        assert run(case, chunk=5).outputs == run(case, step=1).outputs
        assert run(case, emit=False).counted == len(run(case).outputs)


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
        case = case._replace(left=left, right=right, params=params, estimator="memory")
        check(case)
        check(apart(case, seed))


@pytest.mark.parametrize("scale", [1.0, 0.3])
def test_dgl_where_many_priorities_round_together(scale: float) -> None:
    """As above, of so many that those of the top's priority lie deep in the heap."""
    levels = [1.0, *(float(np.nextafter(1.0, side)) for side in (0.0, 2.0))]
    for seed in range(6):
        rng = np.random.default_rng(seed)
        left, right = (
            [(t, k, float(rng.choice(levels))) for t, k, _ in long_stream(rng, tied=seed > 2)]
            for _ in range(2)
        )
        params = {"beta": scale * 2.0**-55, "alpha": 1e30, "initial": "importance"}
        case = busy("dgl", seed)._replace(
            left=left, right=right, params=params, estimator="memory", windows=(90, 60),
            budgets=(41, 33 + seed),
        )  # fmt: skip
        check(case)
        check(apart(case, seed))
