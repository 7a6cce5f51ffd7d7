"""The registry finds policies by their files alone."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from engine import policies
from engine.policies import POLICIES, SAMPLING

FIFO = """
from engine.policies.base import Policy, Structure

POLICY = Policy(
    name="fifo", order=15, source="a test", summary="the oldest", structure=Structure.STATIC
)
"""


def test_a_new_module_is_found_and_listed_by_its_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "fifo.py").write_text(FIFO)
    (tmp_path / "helper.py").write_text("NOT_A_POLICY = 1\n")
    monkeypatch.setattr(policies, "__path__", [*policies.__path__, str(tmp_path)])
    found = [policy.name for policy in policies.policies_in(policies.__path__)]
    for name in ("fifo", "helper"):
        monkeypatch.delitem(sys.modules, f"engine.policies.{name}")
        monkeypatch.delattr(policies, name)
    assert found == ["rand", "fifo", *[*POLICIES, *SAMPLING][1:]]


def test_no_two_policies_have_one_place_in_listings() -> None:
    orders = [policy.order for policy in (POLICIES | SAMPLING).values()]
    assert len(set(orders)) == len(orders)
