"""The generators: distributions, reproducibility, files and the command line."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from engine.commands import generate as command
from engine.commands.asked import Asked
from engine.commands.parser import parsed
from engine.generate import (
    AgeCurveSpec,
    ImportanceModel,
    LaggedGaussianSpec,
    StreamSource,
    ZipfSpec,
    age_curve,
    age_curve_sources,
    in_memory,
    lagged_gaussian_sources,
    write_streams,
    zipf_sources,
)
from engine.options.generate import GENERATE
from engine.runtime.errors import OutputError, SpecError

ZIPF = ZipfSpec(rows=200_000, domain=100, correlation="direct", seed=7)
AGE = AgeCurveSpec(rows=20_000, seed=7)
GAUSSIAN = LaggedGaussianSpec(seed=7)


def column(table: pa.Table, name: str) -> np.ndarray[Any, Any]:
    return table[name].to_numpy()


def chi_square_excess(counts: Any, expected: Any) -> float:
    """Return how many standard deviations chi-square lies above its mean."""
    counts, expected = np.asarray(counts, float), np.asarray(expected, float)
    seen = expected > 0
    assert counts[~seen].sum() == 0
    freedom = seen.sum() - 1
    chi2 = ((counts[seen] - expected[seen]) ** 2 / expected[seen]).sum()
    return float((chi2 - freedom) / math.sqrt(2 * freedom))


def zipf_probabilities(domain: int, skew: float) -> np.ndarray[Any, Any]:
    weights = np.array([1 / k**skew for k in range(1, domain + 1)])
    return weights / weights.sum()


# --- zipf ---


@pytest.mark.parametrize("skew", [0.0, 0.5, 1.0, 2.0])
def test_keys_follow_the_zipf_distribution(skew: float) -> None:
    left, right = in_memory(zipf_sources(ZIPF._replace(skew_left=skew, skew_right=skew)))
    for table in (left, right):
        counts = np.bincount(column(table, "key"), minlength=100)
        assert chi_square_excess(counts, 200_000 * zipf_probabilities(100, skew)) < 4
    assert not left["key"].equals(right["key"])


def test_columns_types_and_sequence_numbers() -> None:
    left, right = in_memory(zipf_sources(ZIPF._replace(rows=70_000, rows_right=3, start_ts=-5)))
    for table, rows in ((left, 70_000), (right, 3)):
        assert [str(kind) for kind in table.schema.types] == ["int64", "int64", "double", "int64"]
        assert column(table, "payload").tolist() == list(range(rows))
        assert column(table, "ts").tolist() == list(range(-5, rows - 5))
        assert set(column(table, "importance")) == {1.0}


def test_direct_correlation_gives_the_same_order_of_frequency() -> None:
    spec = ZIPF._replace(domain=10, skew_right=1.0)
    orders = [
        np.argsort(-np.bincount(column(table, "key"))).tolist()
        for table in in_memory(zipf_sources(spec))
    ]
    assert orders == [list(range(10))] * 2


def test_inverse_correlation_gives_the_opposite_order_of_frequency() -> None:
    spec = ZIPF._replace(domain=10, skew_right=1.0, correlation="inverse")
    left, right = (
        np.argsort(-np.bincount(column(t, "key"))).tolist() for t in in_memory(zipf_sources(spec))
    )
    assert left == list(range(10))
    assert right == left[::-1]


def test_no_correlation_permutes_each_side_by_itself() -> None:
    direct, none = ZIPF._replace(skew_right=1.0), ZIPF._replace(skew_right=1.0, correlation="none")
    orders = []
    for identity, permuted in zip(
        in_memory(zipf_sources(direct)), in_memory(zipf_sources(none)), strict=True
    ):
        pairs = set(zip(column(identity, "key"), column(permuted, "key"), strict=True))
        assert len(pairs) == 100, "a permutation of the ranks, and the same draws"
        orders.append([key for _, key in sorted(pairs)])
    identity_order = list(range(100))
    assert sorted(orders[0]) == sorted(orders[1]) == identity_order
    assert len({tuple(order) for order in [*orders, identity_order]}) == 3


def test_a_uniform_stream_needs_no_table_of_its_domain() -> None:
    left, _ = in_memory(zipf_sources(ZIPF._replace(rows=1000, domain=2**53, skew_left=0.0)))
    assert 0 <= column(left, "key").min() < column(left, "key").max() < 2**53


# --- arrivals ---


@pytest.mark.parametrize(
    ("rate", "expected"),
    [
        (1, [0, 1, 2, 3, 4, 5]),
        (3, [0, 0, 0, 1, 1, 1]),
        (0.5, [0, 2, 4, 6, 8, 10]),
        (1.5, [0, 0, 1, 2, 2, 3]),
        (0.1, [0, 10, 20, 30, 40, 50]),
    ],
)
def test_regular_arrivals_are_counted_exactly(rate: float, expected: list[int]) -> None:
    left, _ = in_memory(zipf_sources(ZIPF._replace(rows=6, rate=rate)))
    assert column(left, "ts").tolist() == expected


def test_each_stream_may_have_its_rate() -> None:
    left, right = in_memory(zipf_sources(ZIPF._replace(rows=4, rate=1, rate_right=2)))
    assert column(left, "ts").tolist() == [0, 1, 2, 3]
    assert column(right, "ts").tolist() == [0, 0, 1, 1]


def test_uniform_arrivals_have_the_gaps_of_p5() -> None:
    ts = column(in_memory(zipf_sources(ZIPF._replace(arrivals="uniform", rate=0.001)))[0], "ts")
    gaps = np.diff(ts)
    assert gaps.min() in range(499, 502)
    assert gaps.max() in range(1998, 2002)
    assert gaps.mean() == pytest.approx(1250, rel=0.01)


def test_exponential_arrivals_have_the_rate() -> None:
    gaps = np.diff(
        column(in_memory(zipf_sources(ZIPF._replace(arrivals="exponential", rate=0.01)))[0], "ts")
    )
    assert gaps.mean() == pytest.approx(100, rel=0.01)
    assert gaps.std() == pytest.approx(100, rel=0.02)


@pytest.mark.parametrize("ties", [0.0, 0.3, 1.0])
def test_ties_share_the_instant_before_and_keep_the_rate(ties: float) -> None:
    ts = column(in_memory(zipf_sources(ZIPF._replace(ties=ties)))[0], "ts")
    assert (np.diff(ts) == 0).mean() == pytest.approx(ties, abs=0.01)
    if ties < 1:
        assert ts[-1] == pytest.approx(len(ts), rel=0.01)


# --- importance ---


def importance_of(**options: Any) -> np.ndarray[Any, Any]:
    spec = ZIPF._replace(importance=ImportanceModel(**options))
    return column(in_memory(zipf_sources(spec))[0], "importance")


def test_uniform_importance() -> None:
    values, counts = np.unique(importance_of(kind="uniform", low=2, high=5), return_counts=True)
    assert values.tolist() == [2, 3, 4, 5]
    assert chi_square_excess(counts, [50_000] * 4) < 4


def test_rare_high_importance() -> None:
    values = importance_of(kind="rare-high", low=1, high=10, rare_fraction=0.02, rare_max=1000)
    high = values[values > 10]
    assert len(high) / len(values) == pytest.approx(0.02, rel=0.05)
    assert (high.min(), high.max()) == (11, 1000)
    assert high.mean() == pytest.approx(505.5, rel=0.02)
    normal = np.bincount(values[values <= 10].astype(int), minlength=11)[1:]
    assert chi_square_excess(normal, [normal.sum() / 10] * 10) < 4


@pytest.mark.parametrize(("fraction", "least", "most"), [(0.0, 1, 10), (1.0, 11, 1000)])
def test_rare_high_at_its_ends(fraction: float, least: float, most: float) -> None:
    values = importance_of(kind="rare-high", rare_fraction=fraction)
    assert (values.min(), values.max()) == (least, most)


def test_inverse_frequency_importance_grows_with_rarity() -> None:
    spec = ZIPF._replace(importance=ImportanceModel("inverse-frequency", low=2, rare_max=60))
    left, right = in_memory(zipf_sources(spec))
    assert np.array_equal(
        column(left, "importance"), np.minimum(2 * (column(left, "key") + 1.0), 60)
    )
    assert set(column(right, "importance")) == {2.0}, "all keys are equally frequent"


def test_inverse_frequency_importance_has_no_greatest_normal() -> None:
    model = ImportanceModel("inverse-frequency", low=20)
    left, _ = in_memory(zipf_sources(ZIPF._replace(importance=model)))
    assert column(left, "importance").min() == 20


def test_exponential_importance() -> None:
    values = importance_of(kind="exponential", mean=3)
    assert values.min() >= 0
    assert values.mean() == pytest.approx(3, rel=0.01)
    assert values.std() == pytest.approx(3, rel=0.02)


# --- age curve ---


def test_the_papers_curves() -> None:
    k = np.arange(1, 21)
    bell = np.where(k <= 10, k**2, (20 - k) ** 2)
    for curve, shape in (("increasing", k**2), ("decreasing", (20 - k) ** 2), ("bell", bell)):
        expected = 5 * shape / shape.sum()
        assert np.allclose(age_curve(curve, 20), expected, rtol=1e-12, atol=0)
    assert age_curve("increasing", 20, 1.0, 500.0)[-1] == pytest.approx(1.0)


@pytest.mark.parametrize("curve", ["increasing", "decreasing", "bell"])
@pytest.mark.parametrize("matches", [5.0, 2.0])
def test_matches_follow_the_age_curve(curve: str, matches: float) -> None:
    left, right = in_memory(age_curve_sources(AGE._replace(curve=curve, matches=matches)))
    left_ts, ts, key = column(left, "ts"), column(right, "ts"), column(right, "key")
    lifetime, bucket = 500_000, 25_000
    settled = (ts >= lifetime) & (ts <= left_ts[-1])
    matched = settled & (key >= 0)
    age = ts[matched] - left_ts[key[matched]]
    assert age.min() >= 0
    assert age.max() < lifetime
    share = age_curve(curve, 20, 1.0)
    assert chi_square_excess(np.bincount(age // bucket, minlength=20), share * len(age)) < 4
    assert matched.sum() / settled.sum() == pytest.approx(matches / 5, abs=0.01)
    # Left tuples that lived their whole lifetime within the run found `matches` each.
    whole = np.flatnonzero((left_ts >= lifetime) & (left_ts + lifetime <= ts[-1]))
    per_tuple = np.bincount(key[key >= 0], minlength=len(left_ts))[whole]
    assert per_tuple.mean() == pytest.approx(matches, rel=0.02)


def test_left_ids_are_unique_and_unmatched_keys_match_nothing() -> None:
    left, right = in_memory(age_curve_sources(AGE._replace(rows=3000, matches=2.0)))
    assert column(left, "key").tolist() == list(range(3000))
    key = column(right, "key")
    assert len(key) == 15_000
    unmatched = key[key < 0]
    assert len(set(unmatched.tolist())) == len(unmatched) > 0
    assert key.max() < 3000


def test_members_of_a_bucket_are_equally_likely() -> None:
    # One tuple a tick and four buckets of four ticks: every age of a bucket is one tuple.
    spec = AGE._replace(
        ticks_per_unit=1, arrivals="regular", window=16, buckets=4, exponent=0, seed=3
    )
    _, right = in_memory(age_curve_sources(spec))
    ts, key = column(right, "ts"), column(right, "key")
    settled = (ts >= 16) & (ts < 20_000)
    ages = np.bincount(ts[settled] - key[settled], minlength=16)
    assert len(ages) == 16
    assert chi_square_excess(ages, [settled.sum() / 16] * 16) < 4


def test_left_tuples_far_apart_and_far_more_frequent() -> None:
    sparse = AGE._replace(rows=50, rate_left=0.001, window=10, buckets=5, rows_right=250_000)
    left, right = in_memory(age_curve_sources(sparse))
    key = column(right, "key")
    age = column(right, "ts")[key >= 0] - column(left, "ts")[key[key >= 0]]
    assert 0 <= age.min() <= age.max() < 10_000
    dense = AGE._replace(rows=200_000, rate_left=1000, rate_right=1, matches=0.001, window=20)
    left, right = in_memory(age_curve_sources(dense))
    key = column(right, "key")
    age = column(right, "ts")[key >= 0] - column(left, "ts")[key[key >= 0]]
    assert len(key) == 200
    assert (key >= 0).mean() > 0.8
    assert 0 <= age.min() <= age.max() < 20_000


# --- lagged gaussian ---


def test_without_noise_values_are_the_formula() -> None:
    spec = GAUSSIAN._replace(rates=(100.0, 200.0, 300.0), deviations=(0, 0, 0), start_ts=5_000_000)
    for index, table in enumerate(in_memory(lagged_gaussian_sources(spec))):
        rate, lag = spec.rates[index], spec.lags[index]
        ts = column(table, "ts")
        expected_ts = [5_000_000 + i * 10**6 // int(rate) for i in range(60 * int(rate))]
        assert ts.tolist() == expected_ts
        assert column(table, "value").tolist() == [
            math.fmod((1000 / 50) * (t / 1e6 + lag), 1000) for t in expected_ts
        ]
        assert table.schema.names == ["ts", "value", "importance"]


def test_noise_has_the_deviation_of_its_stream() -> None:
    for table, lag, deviation in zip(
        in_memory(lagged_gaussian_sources(GAUSSIAN)),
        GAUSSIAN.lags,
        GAUSSIAN.deviations,
        strict=True,
    ):
        value = column(table, "value")
        assert 0 <= value.min() <= value.max() < 1000
        ramp = 20 * (column(table, "ts") / 1e6 + lag)
        noise = np.mod(value - ramp + 500, 1000) - 500
        assert noise.mean() == pytest.approx(0, abs=deviation / 25)
        assert noise.std() == pytest.approx(deviation, rel=0.03)


def test_lagged_streams_end_with_the_seconds() -> None:
    spec = GAUSSIAN._replace(seconds=2.5, arrivals="exponential", start_ts=100)
    for table in in_memory(lagged_gaussian_sources(spec)):
        ts = column(table, "ts")
        assert 100 <= ts[0] <= ts[-1] < 2_500_100
        assert len(ts) == pytest.approx(500, rel=0.2)
    nothing = in_memory(lagged_gaussian_sources(spec._replace(seconds=0)))
    assert [table.num_rows for table in nothing] == [0, 0, 0]


@pytest.mark.parametrize("arrivals", ["regular", "uniform", "exponential"])
def test_a_lagged_stream_so_slow_that_its_second_row_is_far_off(arrivals: str) -> None:
    spec = GAUSSIAN._replace(seconds=1.0, rates=(1e-9,), arrivals=arrivals)
    for table in in_memory(lagged_gaussian_sources(spec)):
        assert column(table, "ts").tolist() == ([0] if arrivals == "regular" else [])


def test_a_part_of_a_tick_has_the_rows_of_its_rounding() -> None:
    spec = GAUSSIAN._replace(seconds=1.6e-6, rates=(1e9,))
    assert in_memory(lagged_gaussian_sources(spec))[0].num_rows == 2000


# --- seeds and chunks ---

SPECS: list[Any] = [
    ZIPF._replace(rows=5000, correlation="none", importance=ImportanceModel("rare-high")),
    ZIPF._replace(
        rows=5000,
        arrivals="exponential",
        rate=0.3,
        ties=0.4,
        importance=ImportanceModel("inverse-frequency"),
    ),
    AGE._replace(rows=1000, window=50, matches=4.5, importance=ImportanceModel("exponential")),
    GAUSSIAN._replace(seconds=10, arrivals="uniform", importance=ImportanceModel("uniform")),
]
SOURCES: dict[type, Any] = {
    ZipfSpec: zipf_sources,
    AgeCurveSpec: age_curve_sources,
    LaggedGaussianSpec: lagged_gaussian_sources,
}


def generate(spec: Any, chunk_rows: int) -> list[pa.Table]:
    def table(source: StreamSource) -> pa.Table:
        batches = list(source.batches(chunk_rows))
        assert all(batch.num_rows == chunk_rows for batch in batches[:-1])
        return pa.Table.from_batches(batches, source.schema)

    return [table(source) for source in SOURCES[type(spec)](spec)]


@pytest.mark.parametrize("spec", SPECS)
def test_rows_depend_on_the_seed_alone(spec: Any) -> None:
    whole = generate(spec, 2**16)
    for chunk_rows in (1, 97, 1000):
        assert all(a.equals(b) for a, b in zip(whole, generate(spec, chunk_rows), strict=True))
    other = generate(spec._replace(seed=8), 2**16)
    for column_name in whole[0].schema.names[1:2]:
        assert not any(
            a[column_name].equals(b[column_name]) for a, b in zip(whole[1:], other[1:], strict=True)
        )


@pytest.mark.parametrize("spec", SPECS[:3])
def test_more_rows_continue_fewer(spec: Any) -> None:
    fewer = spec._replace(rows=300, rows_right=300)
    more = spec._replace(rows=700, rows_right=300)
    for short, long in zip(generate(fewer, 2**16), generate(more, 2**16), strict=True):
        assert short.slice(0, 100).equals(long.slice(0, 100))


def test_known_rows_stay_as_they_are() -> None:
    left, right = in_memory(zipf_sources(ZipfSpec(rows=8, domain=1000, seed=42)))
    assert column(left, "key").tolist() == [501, 962, 341, 760, 760, 743, 26, 145]
    assert column(right, "key").tolist() == [755, 355, 735, 233, 260, 481, 178, 918]


# --- errors ---


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": -5}, "rows -5 must be 0 or more"),
        ({"rows_right": -1}, "rows-right -1 must be 0 or more"),
        ({"domain": 0}, "domain 0 must be from 1 to"),
        ({"domain": 2**30}, "domain 1073741824 of skew 1 needs a table"),
        ({"skew_left": -1.0}, "skew-left -1.0 must be 0 or more"),
        ({"skew_right": math.nan}, "skew-right nan must be 0 or more"),
        ({"rate": 0.0}, "rate 0.0 must be from 1e-09"),
        ({"ties": 1.5}, "ties 1.5 must be from 0 to 1"),
        ({"seed": -1}, "seed -1 must be from 0"),
        ({"start_ts": 2**63 - 1}, "run past the last int64 timestamp: lower"),
        ({"rate": 123456789.123456789, "rows": 10**12}, "use a rate of fewer digits"),
        (
            {"correlation": "inverted"},
            "correlation 'inverted' is not known.*Did you mean 'inverse'",
        ),
        ({"arrivals": "poisson"}, "arrivals 'poisson' is not known: use one of regular"),
        ({"importance": ImportanceModel("rare")}, "importance 'rare' is not known"),
        ({"importance": ImportanceModel("uniform", low=-1)}, "importance-low -1 must be 0"),
        ({"importance": ImportanceModel("uniform", high=0)}, "importance-high 0 must be 1.0"),
        ({"importance": ImportanceModel("rare-high", rare_max=5)}, "rare-max 5 must be 11"),
        ({"importance": ImportanceModel("inverse-frequency", rare_max=0)}, "rare-max 0 must be"),
        (
            {"importance": ImportanceModel("exponential", mean=1e308)},
            "mean 1e.308 must be from",
        ),
    ],
)
def test_zipf_options_that_mean_nothing(change: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        zipf_sources(ZIPF._replace(**change))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": -1}, "rows -1 must be 0 or more"),
        ({"curve": "bel"}, "curve 'bel' is not known.*Did you mean 'bell'"),
        ({"curve": "decreasing", "buckets": 1}, "is 0 everywhere: use more buckets"),
        ({"matches": 6.0}, "matches 6 .* the 5 that arrive per left tuple: lower matches"),
        ({"window": 0.01}, "window 0.01 of 10 ticks cannot be cut into 20 buckets"),
        ({"buckets": 0}, "buckets 0 must be from 1"),
        ({"ticks_per_unit": 0}, "ticks-per-unit 0 must be from 1"),
        ({"importance": ImportanceModel("inverse-frequency")}, "needs keys that occur"),
    ],
)
def test_age_options_that_mean_nothing(change: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        age_curve_sources(AGE._replace(**change))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lags": (), "deviations": ()}, "0 lags make 0 streams"),
        ({"deviations": (1.0,)}, "1 deviations do not go with 3 lags"),
        ({"rates": (1.0, 2.0)}, "2 rates do not go with 3 lags"),
        ({"seconds": -1.0}, "seconds -1.0 must be 0 or more"),
        ({"eta": 0.0}, "eta 0.0 must be"),
        ({"lags": (0, -5, 15)}, "lag -5 must be 0 or more"),
        ({"deviations": (0, math.inf, 0)}, "deviation inf must be finite, and 0 or more"),
        ({"domain": 1e308, "eta": 1e-300}, "eta 1e-300.* pass the greatest float64: use a smaller"),
    ],
)
def test_gaussian_options_that_mean_nothing(change: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        lagged_gaussian_sources(GAUSSIAN._replace(**change))


# --- files ---


def small() -> dict[str, StreamSource]:
    return dict(zip(("left", "right"), zipf_sources(ZIPF._replace(rows=70_000)), strict=True))


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_parquet_files_hold_the_streams_in_row_groups(tmp_path: Path) -> None:
    written = write_streams(tmp_path / "a" / "b", small())
    assert {path.name: rows for path, rows in written.items()} == {
        "left.parquet": 70_000,
        "right.parquet": 70_000,
    }
    assert names(tmp_path / "a" / "b") == ["left.parquet", "right.parquet"]
    for path, expected in zip(
        written, in_memory(zipf_sources(ZIPF._replace(rows=70_000))), strict=True
    ):
        assert pq.read_table(path).equals(expected)
        assert pq.ParquetFile(path).metadata.row_group(0).num_rows == 2**16


def test_csv_files_hold_the_same_rows(tmp_path: Path) -> None:
    for path, source in zip(write_streams(tmp_path, small(), "csv"), small().values(), strict=True):
        expected = pa.Table.from_batches(list(source.batches(10**6)))
        assert pyarrow.csv.read_csv(path).cast(expected.schema).equals(expected)


@pytest.mark.parametrize("file_format", ["parquet", "csv"])
def test_the_same_seed_writes_the_same_bytes(tmp_path: Path, file_format: str) -> None:
    contents = [
        [path.read_bytes() for path in write_streams(tmp_path / name, small(), file_format)]
        for name in "ab"
    ]
    assert contents[0] == contents[1]


@pytest.mark.parametrize("file_format", ["parquet", "csv"])
def test_empty_streams_are_empty_files_with_columns(tmp_path: Path, file_format: str) -> None:
    sources = dict(zip("lr", zipf_sources(ZIPF._replace(rows=0)), strict=True))
    for path in write_streams(tmp_path, sources, file_format):
        read = pq.read_table if file_format == "parquet" else pyarrow.csv.read_csv
        assert (read(path).num_rows, read(path).column_names[0]) == (0, "ts")


def test_a_folder_with_files_is_refused_unless_told(tmp_path: Path) -> None:
    (tmp_path / "left.parquet").write_text("mine")
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match=r"has 2 entries, left\.parquet among them"):
        write_streams(tmp_path, small())
    assert (tmp_path / "left.parquet").read_text() == "mine"
    write_streams(tmp_path, small(), overwrite=True)
    assert names(tmp_path) == ["left.parquet", "notes.txt", "right.parquet"]
    assert pq.read_metadata(tmp_path / "left.parquet").num_rows == 70_000
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_a_failure_leaves_the_folder_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "left.parquet").write_text("mine")

    def fail(chunk_rows: int) -> Any:
        yield from list(small()["right"].batches(chunk_rows))[:1]
        raise OSError(28, "No space left on device")

    sources = small()
    sources["right"] = StreamSource(sources["right"].schema, fail)
    with pytest.raises(OutputError, match=r"cannot be written.*No space left"):
        write_streams(tmp_path, sources, overwrite=True)
    assert names(tmp_path) == ["left.parquet"]
    assert (tmp_path / "left.parquet").read_text() == "mine"


def test_what_is_interrupted_leaves_no_folder(tmp_path: Path) -> None:
    def stop(chunk_rows: int) -> Any:
        yield from list(small()["right"].batches(chunk_rows))[:1]
        raise KeyboardInterrupt

    sources = small()
    sources["right"] = StreamSource(sources["right"].schema, stop)
    with pytest.raises(KeyboardInterrupt):
        write_streams(tmp_path / "new" / "streams", sources)
    assert names(tmp_path) == []
    (tmp_path / "mine").mkdir()
    with pytest.raises(KeyboardInterrupt):
        write_streams(tmp_path / "mine", sources)
    assert names(tmp_path) == ["mine"]
    assert names(tmp_path / "mine") == []


@pytest.mark.parametrize(
    "sources",
    [
        small(),
        dict(zip(("left", "right"), age_curve_sources(AgeCurveSpec(rows=2000)), strict=True)),
        dict(enumerate(lagged_gaussian_sources(LaggedGaussianSpec(seconds=1.5)))),
    ],
)
def test_how_many_rows_are_written_is_told(
    sources: dict[str, StreamSource], tmp_path: Path
) -> None:
    seen: list[tuple[str, int, int]] = []
    written = write_streams(tmp_path, sources, progress=lambda *own: seen.append(own))
    rows = sum(written.values())
    assert seen[0] == ("rows", 0, seen[-1][2])
    assert [own[1] for own in seen] == sorted(own[1] for own in seen)
    assert seen[-1][1] == rows
    assert 0.7 * seen[-1][2] <= rows <= seen[-1][2]


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(OutputError, match="is a file, not a folder"):
        write_streams(file, small())
    with pytest.raises(OutputError, match="cannot be written"):
        write_streams(file / "below", small())
    with pytest.raises(SpecError, match="format 'orc' is not known: use one of parquet, csv"):
        write_streams(tmp_path / "new", small(), "orc")


# --- command line ---


def winnow_generate(*words: object) -> int:
    own = {"generate": command.COMMAND}
    return command.run(Asked(*parsed(["generate", *map(str, words)], own), {}))


def test_command_zipf(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    options = "--rows 50 --rows-right 60 --domain 9 --skew-right 1 --correlation inverse "
    options += "--importance rare-high --rare-fraction 0.5 --rate 2 --ties 0.1 --seed 3"
    assert winnow_generate("zipf", *options.split(), "--out", out) == 0
    assert capsys.readouterr().out == (
        f"{out}/left.parquet: 50 rows\n{out}/right.parquet: 60 rows\n"
    )
    spec = ZipfSpec(
        rows=50,
        rows_right=60,
        domain=9,
        skew_right=1.0,
        correlation="inverse",
        importance=ImportanceModel("rare-high", rare_fraction=0.5),
        rate=2.0,
        ties=0.1,
        seed=3,
    )
    for side, expected in zip(("left", "right"), in_memory(zipf_sources(spec)), strict=True):
        assert pq.read_table(out / f"{side}.parquet").equals(expected)
    with pytest.raises(OutputError, match="--overwrite"):
        winnow_generate("zipf", *options.split(), "--out", out)
    assert winnow_generate("zipf", *options.split(), "--out", out, "--overwrite") == 0


def test_command_age(tmp_path: Path) -> None:
    options = "--rows 400 --curve bell --window 50 --buckets 10 --matches 3 --rate-right 4 --seed 2"
    assert winnow_generate("age", *options.split(), "--out", tmp_path) == 0
    spec = AgeCurveSpec(
        rows=400, curve="bell", window=50, buckets=10, matches=3, rate_right=4, seed=2
    )
    for side, expected in zip(("left", "right"), in_memory(age_curve_sources(spec)), strict=True):
        assert pq.read_table(tmp_path / f"{side}.parquet").equals(expected)


def test_command_gaussian(tmp_path: Path) -> None:
    options = "--streams 2 --seconds 3 --rate 20,30 --lags 0,5 --deviations 2,50 --format csv"
    assert winnow_generate("gaussian", *options.split(), "--out", tmp_path) == 0
    assert names(tmp_path) == ["stream_1.csv", "stream_2.csv"]
    assert pyarrow.csv.read_csv(tmp_path / "stream_2.csv").num_rows == 90


def test_command_defaults_are_those_of_the_specs(tmp_path: Path) -> None:
    winnow_generate("zipf", "--rows", 9, "--domain", 5, "--out", tmp_path / "z")
    winnow_generate("age", "--rows", 9, "--out", tmp_path / "a")
    winnow_generate("gaussian", "--out", tmp_path / "g")
    expected = {
        "z/left": in_memory(zipf_sources(ZipfSpec(rows=9, domain=5)))[0],
        "a/right": in_memory(age_curve_sources(AgeCurveSpec(rows=9)))[1],
        "g/stream_3": in_memory(lagged_gaussian_sources(LaggedGaussianSpec()))[2],
    }
    for name, table in expected.items():
        assert pq.read_table(tmp_path / f"{name}.parquet").equals(table)


def test_command_errors(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="4 streams do not go with 3 lags"):
        winnow_generate("gaussian", "--streams", 4, "--out", tmp_path)
    with pytest.raises(SpecError, match="--lags is '0;5'; give numbers with commas"):
        winnow_generate("gaussian", "--lags", "0;5", "--out", tmp_path)
    with pytest.raises(SpecError, match="its kind is missing; write winnow generate and one of zi"):
        winnow_generate()


def test_help_has_the_defaults_of_the_generator() -> None:
    specs = {"zipf": ZipfSpec(0, 1), "age": AgeCurveSpec(0), "gaussian": LaggedGaussianSpec()}
    for kind in GENERATE.kinds:
        spec = specs[kind.name]._asdict()
        shared = {name for name in kind.options if name in spec and name != "importance"}
        unset = {"rows", "domain"} if kind.name != "gaussian" else set()
        assert {kind.options[name].default == spec[name] for name in shared - unset} == {True}


@pytest.mark.parametrize("generator", ["zipf", "age", "gaussian"])
def test_command_help(generator: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        winnow_generate(generator, "--help")
    assert "rare-high" in capsys.readouterr().out
