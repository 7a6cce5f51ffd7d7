"""Samples that are told frequencies and age curves by a profile of another time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from job_cases import WINDOW, Streams, streams
from naive_sampling import naive_inclusion, naive_pps_scale, naive_sample, naive_sizes, naive_span
from sample_cases import arguments, read

from engine.commands import main
from engine.lanes.manifest import Prepared
from engine.models.frequency import KeyCounts
from engine.models.profile.model import (
    AgeCurve,
    ArrivalProfile,
    Correlation,
    Frequencies,
    StreamProfile,
)

COUNTS = {0: (40, 10), 1: (3, 30), 3: (5, 0)}
"""By key: left and right tuples that the profile has counted."""


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Streams:
    found = streams(tmp_path_factory.mktemp("profiled"), seed=6, rows=200)
    assert main(arguments(found.folder, method="eq-cluster", out=None)) == 0  # for its lanes
    return found


def profile_of(case: Streams, **other: Any) -> ArrivalProfile:
    """Return a profile of streams like those of a case."""
    prepared = next(Prepared.load(path) for path in (case.folder / "cache").iterdir())
    codes = np.array(sorted(COUNTS))
    counted = np.array([COUNTS[key] for key in sorted(COUNTS)])
    counts = KeyCounts(codes, counted[:, 0].copy(), counted[:, 1].copy())
    curve = AgeCurve((1.0, 0.5, 0.25), 1.75, 3, 3, {})
    stream = StreamProfile(48, 0.5, 5, 4.0, 1.0, (0.0, 7.0), curve, 3, None, {}, ())
    rest = {"keys": 0, "left": 0, "right": 0}
    settled: dict[str, Any] = {
        "unit": prepared.unit,
        "windows": (WINDOW, WINDOW),
        "span": (0, 99),
        "streams": (stream, stream),
        "exact": {},
        "frequencies": Frequencies("exact", counts, rest, (0, 0), prepared.seed, prepared.keys),
        "correlation": Correlation(np.array([0, 1]), np.array([0])),
        "fit": {},
        "advice": {},
        "online": {},
    }
    return ArrivalProfile(**(settled | other))


def sides_of(case: Streams) -> list[list[Any]]:
    return [
        [(ts, key, imp, row) for row, (ts, key, imp) in enumerate(rows) if key is not None]
        for rows in case[:2]
    ]


def test_sizes_are_the_profiles_counts(case: Streams, tmp_path: Path) -> None:
    profile_of(case).save(tmp_path / "p.json")
    options = {"out": tmp_path / "out", "report": tmp_path / "report.json", "method": "pps-cluster"}
    assert main(arguments(case.folder, profile=tmp_path / "p.json", **options)) == 0
    sides = sides_of(case)
    span = naive_span(*sides)
    measures = []
    for side in (0, 1):
        counts = {key: float(both[1 - side]) for key, both in COUNTS.items()}
        sizes = naive_sizes("matches", sides[side], sides[1 - side], counts)
        scale = naive_pps_scale(sides[side], sizes, WINDOW, span, 6)
        measures.append(naive_inclusion(sizes, scale))
    expected = naive_sample("pps-cluster", *sides, (WINDOW, WINDOW), (measures[0], measures[1]))
    found = read(tmp_path)
    assert [row[:4] for row in found.rows] == [row[:4] for row in expected.rows]
    assert [r[4] for r in found.rows] == pytest.approx([r[4] for r in expected.rows], rel=1e-5)


@pytest.mark.parametrize("count", ["frequency", "age"])
def test_uniform_waits_for_what_the_profile_says(case: Streams, tmp_path: Path, count: str) -> None:
    profile_of(case).save(tmp_path / "p.json")
    options = {"out": tmp_path / "out", "report": tmp_path / "report.json"}
    told = arguments(case.folder, method="uniform", count=count, fraction=0.4, memory=None,
                     profile=tmp_path / "p.json", **options)  # fmt: skip
    assert main(told) == 0
    sides, measures = sides_of(case), []
    for side in (0, 1):
        other = {key: both[1 - side] for key, both in COUNTS.items()}
        measures.append(
            [
                1.75 if count == "age" else WINDOW * (other.get(key, 0) + 0.5) / 100
                for _, key, _, _ in sides[side]
            ]
        )
    expected = naive_sample("uniform", *sides, (WINDOW, WINDOW), (measures[0], measures[1]), p=0.4)
    found = read(tmp_path)
    assert expected.rows
    assert [row[:4] for row in found.rows] == [row[:4] for row in expected.rows]
    assert not found.report["method"]["unbiased"]


@pytest.mark.parametrize(
    ("other", "options", "message"),
    [
        ({"unit": "us"}, {}, "has ticks of us, and these streams of tick"),
        ({"span": None}, {}, "is of streams without rows"),
        (
            {"windows": (5, 9)},
            {"method": "uniform", "count": "age"},
            "age curves over windows of 5",
        ),
        ({"keys": ("string",)}, {}, "of join attributes of type string, and these are of"),
    ],
)
def test_profiles_of_other_streams_are_refused(
    case: Streams,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    other: dict[str, Any],
    options: dict[str, Any],
    message: str,
) -> None:
    if "keys" in other:
        own = profile_of(case).frequencies
        changed = Frequencies(own.kind, own.counts, own.rest, own.error, own.seed, other["keys"])
        other = {"frequencies": changed}
    profile_of(case, **other).save(tmp_path / "p.json")
    out = tmp_path / "out"
    assert main(arguments(case.folder, profile=tmp_path / "p.json", out=out, **options)) == 2
    assert message in capsys.readouterr().err
    assert not out.exists()
