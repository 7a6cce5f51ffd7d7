"""What is left of a trial's bound goes to the estimators of all policies that count matches."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_trial import bursty, opened

from engine.jobs.trial.candidates import COUNTING, POLICIES
from engine.jobs.trial.estimate import exactly
from engine.jobs.trial.found import IMPORTANCE, Pair
from engine.jobs.trial.screened import others, screens


@pytest.mark.parametrize("memories", [("10%",), ("1%", "25%")])
def test_every_policy_that_counts_is_tried_with_all_estimators_the_best_first(
    tmp_path: Path, memories: tuple[str, ...]
) -> None:
    layout = opened(bursty(tmp_path, 2_000), window=60).laid_out(*memories)
    screen = screens(layout)[0]
    known = {}
    for cell in screen.cells:  # the later a policy is listed, the less it reaches
        candidate, memory = layout.places[cell]
        reached = exactly(20.0 - POLICIES.index(candidate.policy) + memory, 30.0)
        known[cell] = Pair(reached, reached)
    found = others(layout, known, IMPORTANCE, screen)
    first, rest = found[: len(POLICIES) * len(memories)], found[len(POLICIES) * len(memories) :]
    assert {layout.places[cell].candidate.policy for cell in first} == {*POLICIES}
    tried = [layout.places[cell] for cell in rest]
    by_policy = [one for one in POLICIES if one in COUNTING]
    for memory in range(len(memories)):
        own = [place.candidate for place in tried if place.memory == memory]
        assert [one.policy for one in own] == [
            name for name in by_policy for _ in range(3 - (name == "dimpprob"))
        ]
        assert [one.estimator for one in own if one.policy == "dgl"] == [
            "history", "window", "memory",
        ]  # fmt: skip
    policies = [place.candidate.policy for place in tried]
    assert policies == sorted(policies, key=by_policy.index)  # of all memories together


@pytest.mark.parametrize("memories", [("10%",), ("1%", "5%", "25%")])
def test_the_first_round_has_all_estimators_if_they_can_be_afforded(
    tmp_path: Path, memories: tuple[str, ...]
) -> None:
    """Where memories are small, what is held alone misjudges the policies that count matches."""
    layout = opened(bursty(tmp_path, 2_000), window=60).laid_out(*memories)
    found = screens(layout)
    everything = {*range(len(layout.places))}
    assert {*found[0].cells} == everything
    for screen in found:
        own = [layout.places[cell] for cell in screen.cells]
        kinds = {(place.candidate, place.memory) for place in own}
        estimators = {place.candidate.estimator for place in own}
        assert len(kinds) == len(own)
        assert {place.candidate.policy for place in own} == {*POLICIES}
        if estimators != {"memory"}:
            assert estimators == {"memory", "window", "history"}
    sizes = [len(screen.cells) for screen in found]
    if len(memories) == 1:
        assert sizes == sorted(sizes, reverse=True)
    assert found[-1].least <= found[0].least
