"""The harvested join against its oracle: rows, clocks, drops, what is learnt and what is let go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from grubjoin_cases import both, check
from indexed_cases import both_by
from interpreted_too import only_interpreted
from multiway_cases import PREDICATES, random_streams
from thorough import guards

from engine.multiway.harvest import foresight, speculation, timed
from engine.multiway.harvest.learning import adaptation
from engine.multiway.harvest.operator import GrubJoin
from engine.multiway.harvest.probing.cpu_prober import CpuProber
from engine.multiway.harvest.probing.indexes import INDEXED
from engine.multiway.harvest.settings import HarvestSettings
from engine.multiway.streams import windows_of
from engine.runtime.errors import SpecError

WAYS = [*(("scan", kind) for kind in PREDICATES), *(("index", kind) for kind in INDEXED)]


@pytest.mark.parametrize(("probe", "kind"), WAYS)
@pytest.mark.parametrize("graph", ["clique", "star"])
@pytest.mark.parametrize("seed", range(4))
def test_with_nothing_shed_it_is_the_exact_join(
    probe: str, kind: str, graph: str, seed: int
) -> None:
    sizes = [(20, 25), (15, 12, 18), (9, 10, 8, 11)][seed % 3]
    # inner products reach the bound less often
    span = 20 if kind == "inner" else 60
    done = both_by(
        probe, seed, kind, sizes, graph=graph, basic_window=3, shred=0.3, adapt_every=7, span=span
    )
    check(*done)
    assert done[0].outputs


@pytest.mark.parametrize(("probe", "kind"), WAYS)
@pytest.mark.parametrize("throttle", [0.05, 0.1, 0.4, 0.7])
@pytest.mark.parametrize("seed", range(3))
def test_a_fixed_throttle(probe: str, kind: str, throttle: float, seed: int) -> None:
    sizes = [(30, 35), (20, 22, 24), (12, 13, 14, 11)][seed]
    graph = ["star", "clique"][seed % 2]
    done = both_by(
        probe, seed, kind, sizes, graph=graph, throttle=throttle, basic_window=3, shred=0.4,
        adapt_every=9, combine=["sum", "mean", "max"][seed], start=5,
    )  # fmt: skip
    check(*done)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(("probe", "kinds", "capacity"), [
    *(("scan", list(PREDICATES), capacity) for capacity in (3.0, 12.0, 40.0)),
    *(("index", INDEXED, capacity) for capacity in (5.0, 20.0, 60.0)),
])  # fmt: skip
def test_a_virtual_clock_with_small_buffers(
    probe: str, kinds: Sequence[str], capacity: float, seed: int
) -> None:
    kind = kinds[seed % len(kinds)]
    sizes = [(40, 45), (25, 22, 24), (14, 13, 14, 12)][seed % 3]
    done = both_by(
        probe, seed, kind, sizes, capacity=capacity, per_second=[1.0, 3.0][seed % 2],
        basic_window=4, buffer=1 + seed % 4, shred=0.5, adapt_every=6, boost=1.5,
        admission=["all", "conserve"][seed % 2],
    )  # fmt: skip
    check(*done)
    assert done[0].drops.any() or capacity > 5 or len(sizes) == 4 or kind == "keyed"


@guards("engine/multiway", "tests/unit/multiway/test_grubjoin.py")
@pytest.mark.parametrize(
    ("seed", "kind", "sizes", "given"),
    [
        (363101786, "distance", (3, 13), {"capacity": 2.0, "basic_window": 5, "adapt_every": 2}),
        (
            73445035, "keyed", (12, 2, 10, 14),
            {"capacity": 40.0, "basic_window": 1, "buffer": 1, "adapt_every": 1, "graph": "star"},
        ),
    ],
)  # fmt: skip
def test_tuples_leave_the_windows_at_adaptations_of_empty_intervals(
    seed: int, kind: str, sizes: tuple[int, ...], given: dict[str, Any]
) -> None:
    given = {"buffer": 3, "per_second": 3.0, "shred": 0.3, "admission": "conserve", **given}
    boost = 1.2 if kind == "distance" else 2.0
    check(*both(seed, kind, sizes, boost=boost, **given))


@pytest.mark.parametrize("seed", range(4))
def test_random_drop(seed: int) -> None:
    done = both(
        seed, "band", (20, 22, 24), capacity=15.0, basic_window=4, adapt_every=6, shred=0.5,
        shedding="random-drop", keep=[0.5, 0.8, 0.3],
    )  # fmt: skip
    check(*done)
    assert done[0].shed.all()


class Ahead:
    """Probes as a GPU does: many tuples at once, ahead of the clock."""

    def __init__(self, *given: Any) -> None:
        own = CpuProber(*given)
        self.count, self.outputs = own.count, own.outputs


@pytest.mark.parametrize("kind", ["band", "equi"])
@pytest.mark.parametrize("threads", [1, 3])
def test_results_do_not_depend_on_threads_and_how_far_ahead(
    threads: int, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speculation, "_LEAST", 1 if threads == 1 else 200)
    monkeypatch.setattr("engine.multiway.harvest.probing.prober._SLICE", 2)
    given: dict[str, Any] = {
        "capacity": 60.0, "basic_window": 4, "buffer": 3, "shred": 0.5, "adapt_every": 6,
        "threads": threads,
    }  # fmt: skip
    for make in (Ahead, CpuProber):
        done = both(5, kind, (60, 70, 65), make=make, **given)
        check(*done)
        assert done[0].drops.any() or kind == "equi"
        assert len(done[0].steps) > 3


def test_gaps_and_empty_streams() -> None:
    check(*both(3, "band", (12, 14), span=4000, capacity=9.0, basic_window=4, adapt_every=2))
    check(*both(3, "band", (12, 0, 9), capacity=9.0, basic_window=4, adapt_every=2))
    check(*both(3, "band", (0, 0), capacity=9.0, basic_window=4, adapt_every=2))


@pytest.mark.parametrize("given", [{}, {"scores": "streams"}], ids=["compiled", "not compiled"])
def test_a_gap_of_many_intervals_costs_nothing(given: dict[str, Any]) -> None:
    streams = random_streams(3, (30, 30), "equi", span=20)
    # at a microsecond an adaptation it would take two weeks
    apart = streams._replace(ts=np.where(streams.ts > 10, streams.ts + 10**12, streams.ts))
    settings = HarvestSettings(2, capacity=9.0, adapt_every=2, forget=0.5, shred=0.5, **given)
    join = GrubJoin(apart, windows_of([8, 8]), PREDICATES["equi"], settings, [[1], [0]])
    outputs = sum(part.importance.size for part in join.run())
    assert outputs == join.outputs > 0
    assert join.steps[-1].at > 10**12


def test_what_is_recorded_of_many_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"capacity": 9.0, "basic_window": 4, "adapt_every": 1, "shred": 0.4, "window": 9}
    whole = both(4, "band", (50, 45, 48), span=70, **given)
    check(*whole)
    assert len(whole[0].steps) > 40
    monkeypatch.setattr(adaptation, "STEPS", 3)
    join = both(4, "band", (50, 45, 48), span=70, **given)[0]
    assert join.steps == whole[0].steps


@guards("engine/multiway", "tests/unit/multiway/test_grubjoin.py")
def test_a_scan_has_room_for_tuples_that_were_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """It finds them, too, before they are sifted out: compiled, it would write behind its room."""
    monkeypatch.setattr(timed, "TUPLES", 1)
    monkeypatch.setattr(timed, "MATCHES", 40)
    with only_interpreted():
        done = both(
            221922996, "distance", (81, 57), combine="mean", start=3, span=25, capacity=40.0,
            per_second=3.0, basic_window=5, buffer=1, shred=0.3, adapt_every=8, boost=1.0,
        )  # fmt: skip
    check(*done)
    assert done[0].drops.any()


@pytest.mark.parametrize("graph", ["clique", "star"])
@pytest.mark.parametrize("kind", ["equi", "band", "cosine", "theta"])
@pytest.mark.parametrize("seed", range(3))
def test_small_batches_and_parts(
    seed: int, kind: str, graph: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, number in (("TUPLES", 3), ("MATCHES", 1), ("_LESSONS", 1)):
        monkeypatch.setattr(timed, name, number)
    monkeypatch.setattr(foresight, "PART", 2)
    sizes = [(40, 45), (25, 22, 24), (14, 13, 14, 12)][seed]
    done = both(
        seed, kind, sizes, graph=graph, capacity=[20.0, 30.0, 8.0][seed], basic_window=4, buffer=2,
        shred=0.5, adapt_every=6, span=40, combine=["min", "sum", "max"][seed], start=7,
        threads=1 + seed,
    )  # fmt: skip
    check(*done)
    assert done[0].drops.any()
    assert done[0].outputs


@pytest.mark.parametrize("kind", ["equi", "band", "distance"])
@pytest.mark.parametrize("buffer", [3, 2000])
def test_runs_of_many_tuples_with_gaps(kind: str, buffer: int) -> None:
    done = both(
        2, kind, (900, 700), capacity=4000.0, basic_window=4, buffer=buffer, shred=0.2,
        adapt_every=6, window=40, distinct=20, admission="conserve",
    )  # fmt: skip
    check(*done)
    assert done[0].drops.any() == (buffer == 3)
    assert done[0].outputs


def test_count_based_windows_are_refused() -> None:
    streams = random_streams(0, (3, 3), "band")
    with pytest.raises(SpecError, match="count-based windows cannot be harvested"):
        GrubJoin(
            streams, windows_of([3, 3], [False, True]), PREDICATES["band"],
            HarvestSettings(basic_window=2), [[1], [0]],
        )  # fmt: skip
