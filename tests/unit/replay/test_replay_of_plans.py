"""A plan followed is the replay that it was taken from: rows, peaks, retained sets."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
import pytest
from replay_cases import Case, batch_of, busy, run

from engine.policies import POLICIES
from engine.replay.ranks import RetentionPlan


def plan_of(case: Case) -> RetentionPlan:
    """Return when each tuple leaves, from the rows that a replay retains at each instant."""
    ref = run(case, step=1)
    instants = [now for now, *_ in ref.retained]
    sides = []
    for side, stream in enumerate((batch_of(case.left), batch_of(case.right))):
        leaves = []
        for ts, row in zip(stream.ts.tolist(), stream.row.tolist(), strict=True):
            own = bisect_left(instants, ts)
            at = own
            while at < len(instants) and row in ref.retained[at][1 + side]:
                at += 1
            gone = at < len(instants) and instants[at] - ts <= case.windows[side]
            leaves.append(float(at + 1) if gone else np.inf)
        sides.append(np.array(leaves))
    return RetentionPlan(*sides)


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_following_what_a_replay_did_gives_its_rows(policy: str) -> None:
    for seed in range(4):
        case = busy(policy, seed)
        ref = run(case, step=1)
        for step in (1, 7, None):
            comp = run(case, step=step, plan=plan_of(case))
            assert comp.outputs == ref.outputs
            assert comp.peaks == ref.peaks
            if step == 1:
                assert comp.retained == ref.retained


def test_a_plan_that_keeps_nothing_leaves_simultaneous_matches() -> None:
    case = busy("prob", 2)
    ref = run(case._replace(budgets=(0, 0)))
    never = RetentionPlan(*(np.zeros(batch_of(side).ts.size) for side in (case.left, case.right)))
    assert run(case, plan=never).outputs == ref.outputs
