"""Which cases `make test` tries: some of each test, and all where something changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import cases_tried
import long_tests
import pytest
import thorough
from long_tests import Long
from places import ROOT, TESTS

UNIT = TESTS / "unit" / "multiway" / "test_multiway_exact.py"
JOB = TESTS / "jobs" / "test_sweep.py"
MULTIWAY = ROOT / "tests" / "support" / "multiway_cases.py"


@pytest.fixture
def changed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Return the files that changed, to be filled."""
    files: list[str] = []
    for module in (cases_tried, thorough):
        monkeypatch.setattr(module, "CHANGED", files)
        monkeypatch.setattr(module, "THOROUGH", False)
    cases_tried.in_full.cache_clear()
    yield files
    cases_tried.in_full.cache_clear()


class Item(NamedTuple):
    """A test as `cases_tried` sees it."""

    path: Path
    originalname: str
    name: str
    own_markers: tuple[pytest.Mark, ...] = ()

    def __hash__(self) -> int:
        """Leave out marks, which have none."""
        return hash(self[:3])


def cases(path: Path, name: str, number: int, marks: tuple[pytest.Mark, ...] = ()) -> list[Item]:
    return [Item(path, name, f"{name}[{i}]", marks) for i in range(number)]


@pytest.mark.usefixtures("changed")
def test_some_cases_of_each_function_are_tried_in_their_order() -> None:
    items = [*cases(UNIT, "test_a", 9), *cases(JOB, "test_a", 2), *cases(UNIT, "test_b", 1)]
    kept, others = cases_tried.tried(items, 3)
    assert [item for item in items if item in kept] == kept
    assert len(kept) + len(others) == len(items)
    assert Counter(item[:2] for item in kept) == {
        (UNIT, "test_a"): 3, (JOB, "test_a"): 2, (UNIT, "test_b"): 1,
    }  # fmt: skip
    assert kept[0].name == "test_a[0]"


@pytest.mark.parametrize("most", [1, 2, 3, 5, 8])
def test_cases_are_apart_and_functions_try_different_ones(most: int) -> None:
    every = cases(UNIT, "test", 9)
    met = set()
    for seed in range(0, 1024, 8):
        places = [every.index(own) for own in cases_tried.spread(every, most, seed)]
        assert len(places) == most
        assert places[0] == 0
        assert max(b - a for a, b in zip(places, [*places[1:], 9], strict=True)) <= 16 // most + 1
        met |= {*places}
    assert met == ({0} if most == 1 else {*range(9)})


def test_all_cases_are_tried_where_what_a_test_uses_has_changed(changed: list[str]) -> None:
    def in_full(path: Path, *files: str) -> bool:
        changed[:] = files
        cases_tried.in_full.cache_clear()
        return cases_tried.in_full(path)

    assert MULTIWAY.exists()
    for file in (
        "engine/multiway/exact/join.py", "tests/oracle/naive_multijoin.py", "engine/runtime/jit.py",
        str(UNIT.relative_to(ROOT)), str(MULTIWAY.relative_to(ROOT)),
    ):  # fmt: skip
        assert in_full(UNIT, "docs/sweep.md", file), file
    assert not in_full(UNIT, "engine/report/charts.py", "docs/sweep.md")
    assert in_full(TESTS / "unit" / "replay" / "test_replay.py", "gpu_kernels/combine.py")
    assert not in_full(UNIT)
    assert in_full(JOB, "engine/jobs/bound/run.py")
    assert not in_full(JOB, "engine/multiway/exact/join.py")
    assert in_full(TESTS / "docs" / "test_docs.py", "docs/sweep.md")
    assert not in_full(TESTS / "docs" / "test_docs.py")
    changed[:] = ["engine/multiway/exact/join.py"]
    cases_tried.in_full.cache_clear()
    assert len(cases_tried.tried(cases(UNIT, "test", 9), 2)[0]) == 9


def test_a_test_uses_what_it_imports_and_what_its_helpers_do() -> None:
    found = cases_tried.used(UNIT)
    assert {"engine/multiway/exact", "tests/oracle/naive_multijoin.py"} <= found
    assert "engine/jobs" not in found
    assert {"engine/jobs", "winnow"} <= cases_tried.used(JOB)
    assert all((ROOT / place).exists() for place in found)


def test_kernels_of_each_kind_are_tried_where_kernels_changed(
    changed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WINNOW_CHANGED", raising=False)
    assert thorough.of_each_kind()
    monkeypatch.setenv("WINNOW_CHANGED", "")
    assert not thorough.of_each_kind()
    changed.append("engine/report/charts.py")
    assert not thorough.of_each_kind()
    changed.append("engine/replay/admit.py")
    assert thorough.of_each_kind()


def test_long_tests_are_tried_where_what_they_use_has_changed(
    changed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = "tests/jobs/test_sweep.py::"
    long = {f"{sweep}test_b": Long(0, 4), f"{sweep}test_c": Long(1, 2)}
    monkeypatch.setattr(cases_tried, "LONG", long)
    items = [
        *cases(JOB, "test_a", 3), *cases(JOB, "test_b", 3), *cases(JOB, "test_c", 3),
        *cases(UNIT, "test_b", 3),
    ]  # fmt: skip
    kept, _ = cases_tried.tried(items, 2)
    assert Counter(item[:2] for item in kept) == {
        (JOB, "test_a"): 2, (JOB, "test_c"): 1, (UNIT, "test_b"): 2,
    }  # fmt: skip
    changed.append("engine/jobs/bound/run.py")
    cases_tried.in_full.cache_clear()
    assert len(cases_tried.tried(items, 2)[0]) == 11

    def fit(seconds: float) -> Counter[str]:
        return Counter(item.originalname for item in cases_tried.tried(items, 2, seconds)[0])

    monkeypatch.setattr(cases_tried, "IN_TURN", 0.0)
    assert fit(0) == {"test_a": 2, "test_b": 2, "test_c": 1}
    assert fit(1) == {"test_a": 3, "test_b": 2, "test_c": 1}
    assert fit(5) == {"test_a": 3, "test_b": 2, "test_c": 3}
    assert fit(7) == {"test_a": 3, "test_b": 3, "test_c": 2}  # its third counts thrice
    assert fit(100) == {"test_a": 3, "test_b": 5, "test_c": 3}


@pytest.mark.usefixtures("changed")
def test_long_tests_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"test_{letter}" for letter in "abcdefgh"]
    long = {f"tests/jobs/test_sweep.py::{name}": Long(0, 4) for name in names}
    monkeypatch.setattr(cases_tried, "LONG", long)
    items = [*cases(UNIT, "test", 3), *(item for name in names for item in cases(JOB, name, 3))]
    met = Counter()
    for turn in range(40):
        monkeypatch.setenv("WINNOW_TURN", str(turn))
        kept, _ = cases_tried.tried(items, 2, 8)
        assert Counter(item.path for item in kept) == {UNIT: 2, JOB: 2}
        assert kept == cases_tried.tried(items, 2, 8)[0]
        met.update(item.name for item in kept if item.path == JOB)
    assert len(met) > 20
    assert not any(item.path == JOB for item in cases_tried.tried(items, 2)[0])


def test_long_tests_that_guard_what_changed_are_tried(
    changed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = "engine/multiway/exact"  # of another room than the test
    changed[:] = [f"{place}/join.py"]
    cases_tried.in_full.cache_clear()
    monkeypatch.setattr(cases_tried, "LONG", {"tests/jobs/test_sweep.py::test": Long(0, 4)})
    for places, found in (((place,), 2), (("engine/jobs/bound",), 0)):
        items = cases(JOB, "test", 2, (thorough.guards(*places).mark,))
        assert len(cases_tried.tried(items, 2)[0]) == found
        items = cases(JOB, "test_a", 2, (thorough.guards(place).mark,))  # it is not among the long
        assert len(cases_tried.tried(items, 2, 0)[0]) == 0
        assert len(cases_tried.tried(items, 2, 0.1)[0]) == 1


@pytest.mark.parametrize("seconds", [None, 0])
def test_what_takes_no_time_is_tried_in_full(changed: list[str], seconds: float | None) -> None:
    for changed[:] in ([], ["docs/tour.md"]):
        cases_tried.in_full.cache_clear()
        items = [*cases(Path(__file__), "test_a", 5), *cases(UNIT, "test_a", 5)]
        assert len(cases_tried.tried(items, 2, seconds)[0]) == 7


def test_of_those_that_are_long_one_case_is_compared_with_an_oracle() -> None:
    assert {own.cases for own in long_tests.LONG.values()} == {0, 1}
    gone = []
    for own, (number, seconds) in long_tests.LONG.items():
        assert seconds >= 0, own
        file, name = own.split("::")
        path = ROOT / file
        if path.exists() and f"\ndef {name}(" in path.read_text():
            assert number == long_tests.compares(path, name), own
        else:
            gone.append(own)
    assert len(gone) <= 20, f"write long_tests.txt anew, of which these are gone: {gone}"


def test_an_oracle_is_known_through_helpers() -> None:
    assert long_tests.compares(UNIT, "test_outputs_are_those_of_the_definition")
    assert not long_tests.compares(JOB, "test_nothing")
    assert not long_tests.compares(Path(__file__), "cases")


def test_what_took_long_is_read_from_a_run(tmp_path: Path) -> None:
    run = tmp_path / "run.xml"
    oracle = "test_outputs_are_those_of_the_definition"
    rows = [
        ("jobs.test_sweep", "test_a[x]", 0.9), ("jobs.test_sweep", "test_b[x]", 1.0),
        ("jobs.test_sweep", "test_b[y]", 0.2), ("jobs.test_sweep", "test_b[z]", 0.5),
        ("unit.multiway.test_multiway_exact", oracle, 2), ("architecture.test_package", "test", 9),
    ]  # fmt: skip
    run.write_text("<suite>{}</suite>".format("".join(
        f'<testcase classname="tests.{file}" name="{name}" time="{took}"/>'
        for file, name, took in rows
    )))  # fmt: skip
    assert long_tests.long_in([str(run)]) == {
        "tests/jobs/test_sweep.py::test_b": Long(0, 0.5),
        f"{UNIT.relative_to(ROOT)}::{oracle}": Long(1, 2),
    }  # fmt: skip
