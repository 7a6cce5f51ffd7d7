"""A sweep over real archives: the pinned figures of their replays, all at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_real_archives import EXACT, JOINS, PINNED, pytestmark

import winnow

__all__ = ["pytestmark"]  # skips where the archives are not


@pytest.mark.parametrize(("name", "probe"), sorted({(name, how) for name, _, how in PINNED}))
def test_cells_have_the_pinned_figures(tmp_path: Path, name: str, probe: str) -> None:
    pinned = {
        policy: figures
        for (join, policy, how), figures in PINNED.items()
        if (join, how) == (name, probe)
    }
    join = JOINS[name]
    options = join.options()
    found = winnow.sweep(
        options["left"],
        options["right"],
        on="key",
        time="ts",
        left_importance=join.importance[0],
        right_importance=join.importance[1],
        windows=[join.window, join.window // 3],
        policies=list(pinned),
        memory="10%,20%",
        probe=probe,
        cache=tmp_path,
        targets={"importance_recall": 0.5},
    )
    lines = found.outputs.to_pylist()
    assert len(lines) == 4 * len(pinned)
    at_a_tenth = {
        line["policy"]: line
        for line in lines
        if (line["memory"], line["window_left"]) == ("10%", join.window)
    }
    for policy, (outputs, importance) in pinned.items():
        line = at_a_tenth[policy]
        assert line["outputs"] == outputs
        assert line["importance"] == pytest.approx(importance, rel=1e-12)
        assert line["exact_outputs"] == EXACT[name][0]
    for advice in found.advice:
        if advice.best is not None:
            assert advice.best.importance_recall >= 0.5
            assert advice.below is None or advice.below.importance_recall < 0.5
