"""`benchmarks/reproduce`: every figure has an experiment, and its verdict is what is measured."""

from __future__ import annotations

import copy
import importlib
import json
from pathlib import Path
from typing import Any

import browser
import numpy as np
import pytest
from pages import Parsed
from places import BENCHMARKS, ROOT

FIGURES = [
    *(f"P1:fig{n}" for n in range(1, 12)), "P1:tab1",
    *(f"P2:fig{n}" for n in range(2, 7)),
    *(f"P3:tab{n}" for n in range(2, 9)), "P3:fig2", "P3:fig3a", "P3:fig3b", "P3:fig4a", "P3:fig4b",
    "P4:fig2", "P4:fig4", *(f"P4:fig{n}" for n in range(7, 16)),
    *(f"P5:fig{n}" for n in range(5, 12)),
]  # fmt: skip
PRINTED = [
    "P1:fig1", "P2:fig2", "P2:fig3", *(f"P3:tab{n}" for n in range(2, 8)),
]  # fmt: skip
"""What the papers' texts determine: examples and costs."""
RESULTS = BENCHMARKS / "results" / "reproduce.json"


@pytest.fixture
def reproduce(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that imports a module of the package."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return lambda name: importlib.import_module(f"reproduce.{name}")


def test_every_figure_has_an_experiment(reproduce: Any) -> None:
    experiments = reproduce("papers").EXPERIMENTS
    assert sorted(experiments) == sorted(FIGURES)
    for name, one in experiments.items():
        assert len({claim.says for claim in one.claims}) == len(one.claims) > 0, name
        assert one.source, name
        assert one.setup, name
        assert one.free, name
        assert set(one.quick) <= set(one.points), name


def test_a_name_that_is_no_experiment_is_refused(reproduce: Any) -> None:
    with pytest.raises(SystemExit, match="P9:fig1 is no experiment; give one of P1:fig1"):
        reproduce("papers").chosen(["P9:fig1"])
    assert [one.name for one in reproduce("papers").chosen(["P2:fig4", "P2:fig2"])] == [
        "P2:fig2",
        "P2:fig4",
    ]


def test_a_quick_run_measures_what_the_papers_determine(reproduce: Any, tmp_path: Path) -> None:
    asked = [word for name in PRINTED for word in ("--only", name)]
    assert reproduce("run").main(["--quick", "--jobs", "1", "--out", str(tmp_path), *asked]) == 0
    found = json.loads((tmp_path / "reproduce.json").read_text())["experiments"]
    assert {name: own["verdict"] for name, own in found.items()} == dict.fromkeys(PRINTED, "holds")
    page = (tmp_path / "reproduce.md").read_text()
    assert "| [P3:tab5](#p3tab5-costs-of-join-orders) | Costs of join orders | holds |" in page
    assert found["P3:tab7"]["data"]["cost"]["3142"] == [47976.92]


def test_a_doctored_result_flips_the_verdict(reproduce: Any) -> None:
    one = reproduce("papers").EXPERIMENTS["P3:tab5"]
    data = {
        line: {at: [one.measure(at, 1)[line]] for at in ("1234", "2134")}
        for line in ("cost", "rank")
    } | {}
    for at in ("worst", "chosen"):
        data["cost"][at] = [one.measure(at, 1)["cost"]]
    judged = reproduce("experiment").judged
    assert judged(one, data).verdict == "holds"
    doctored = copy.deepcopy(data)
    doctored["cost"]["2134"] = [19_601.0]
    assert judged(one, doctored).verdict == "holds in 5 of 6 points"
    for line in ("cost", "rank"):
        doctored[line] = {at: [7.0] for at in doctored[line]}
    assert judged(one, doctored).verdict == "differs"
    text = reproduce("page").claims_of(one, doctored)
    assert "| 1234 costs 16,000 | differs |" in text


def drawn(*levels: float, spread: float) -> dict[str, dict[str, list[float]]]:
    """Return lines a, b, ... of those levels at one point, 8 seeds each."""
    draw = np.random.default_rng(3)
    return {
        name: {"1": (level + spread * draw.normal(size=8)).tolist()}
        for name, level in zip("abcd", levels, strict=False)
    }


@pytest.mark.parametrize(
    ("levels", "spread", "words"),
    [
        ((3.0, 2.0, 1.0), 0.1, ["holds", "holds"]),
        ((3.0, 1.0, 2.0), 0.1, ["holds", "differs"]),
        ((3.0, 3.0, 1.0), 0.5, ["even", "holds"]),
    ],
)
def test_steps_of_an_order_follow_the_measurements(
    reproduce: Any, levels: tuple[float, ...], spread: float, words: list[str]
) -> None:
    experiment = reproduce("experiment")
    claim = experiment.order("a > b > c", "a", "b", "c")
    checks = claim.check(drawn(*levels, spread=spread))
    assert [check.word for check in checks] == words
    assert [check.at for check in checks] == ["a > b, 1", "b > c, 1"]


def test_an_order_has_no_steps_where_nothing_is_shed(reproduce: Any) -> None:
    claim = reproduce("experiment").order("", "a", "b", exact="c")
    data = {name: {"1": [4.0, 5.0], "2": [4.0, 5.0]} for name in "abc"}
    data["a"]["2"] = [3.9, 4.8]
    assert [check.at for check in claim.check(data)] == ["a > b, 2"]


def test_verdicts(reproduce: Any) -> None:
    experiment = reproduce("experiment")
    check = experiment.Check
    held, even, off = (check("", word) for word in ("holds", "even", "differs"))
    assert experiment.verdict([]) == "not measured"
    assert experiment.verdict([held, held]) == "holds"
    assert experiment.verdict([held, even, off]) == "holds in 1 of 3 points"
    assert experiment.verdict([even, off]) == "differs"


def test_computed_lines(reproduce: Any) -> None:
    experiment = reproduce("experiment")
    data = {"a": {"1": [2.0, 0.0], "2": [6.0]}, "b": {"1": [4.0, 0.0], "2": [3.0]}}

    def values(line: Any) -> dict[str, list[float]]:
        return {at: own.tolist() for at, own in experiment.series(data, line).items()}

    assert values(experiment.over("a", "b")) == {"1": [0.5, 1.0], "2": [2.0]}
    assert values(experiment.less("a", "b")) == {"1": [-2.0, 0.0], "2": [3.0]}
    assert values(experiment.excess("a", "b"))["2"] == [1.0]
    assert values(experiment.error("b", "a"))["2"] == [0.5]
    assert values(experiment.relative("a", "2")) == {"1": [1 / 3], "2": [1.0]}
    assert values(experiment.at_point("b", "1")) == {"": [4.0, 0.0]}
    assert experiment.named(experiment.over(experiment.less("a", "b"), "b")) == "(a - b) / b"


def test_half_the_interval_of_a_mean_is_students(reproduce: Any) -> None:
    half_width = reproduce("experiment").half_width
    assert half_width(np.array([1.0])) == 0.0
    # t(0.975, 4) = 2.776, the deviation of 1 to 5 is sqrt(2.5)
    assert half_width(np.arange(1.0, 6.0)) == pytest.approx(2.776 * 2.5**0.5 / 5**0.5, rel=1e-3)


def test_the_recorded_verdicts_and_the_page_are_what_the_recorded_data_say(reproduce: Any) -> None:
    experiments, results = reproduce("papers").EXPERIMENTS, json.loads(RESULTS.read_text())
    assert list(results["experiments"]) == list(experiments)
    again = {
        name: reproduce("run").with_verdicts(one, results["experiments"][name])
        for name, one in experiments.items()
    }
    assert again == results["experiments"]
    for name in PRINTED:
        assert results["experiments"][name]["verdict"] == "holds", name
    drawn = {
        name: f"reproduce/{file.name}"
        for name in experiments
        if (file := ROOT / "docs" / "reproduce" / f"{name.replace(':', '-')}.png").exists()
    }
    page = reproduce("page").page_of(results, list(experiments.values()), drawn, quick=False)
    assert page == (ROOT / "docs" / "reproduce.md").read_text()


def report_in(reproduce: Any, folder: Path) -> Path:
    """Write the report of what is recorded, of other engines too."""
    experiments, results = reproduce("papers").EXPERIMENTS, json.loads(RESULTS.read_text())
    row = {
        "workload": "W2", "what": "count", "query": "q", "tuples": 2000, "outputs": 50,
        "value": 10.0, "cpu": 0.5, "mib": 90, "runs": 3, "times": 1.0, "cpu_times": 1.0,
    }  # fmt: skip
    rows = [
        row | {"who": "winnow", "seconds": 0.25},
        row | {"who": "Polars", "seconds": 1.0, "times": 4.0},
        row | {"who": "winnow within less", "query": "10 % of the memory", "outputs": 20,
               "seconds": 0.5, "times": 2.0},
        {"workload": "W2", "what": "count", "who": "Spark streams", "left_out": "too many"},
        {"workload": "W2", "what": "count", "who": "pandas", "query": "q", "stopped": 60.0,
         "times": 240.0},
    ]  # fmt: skip
    by = {"commit": "c0ffee", "threads": 2, "processor": "chip", "versions": {"polars": "2"}}
    peers = {"by": [by], "rows": [own | {"load": 0.5} for own in rows]}
    place = folder / "report.html"
    every = list(experiments.values())
    place.write_text(reproduce("report").report_of(results, every, peers, place, quick=False))
    return place


def test_the_report_has_every_figure_and_links_that_lead_somewhere(
    reproduce: Any, tmp_path: Path
) -> None:
    place = report_in(reproduce, tmp_path)
    found = Parsed(place.read_text())
    anchors = {value for _, name, value in found.attributes if name == "id"}
    links = [link for link in found.value("a", "href") if link is not None]
    assert anchors >= {name.replace(":", "-") for name in FIGURES} | {"peers", "glossary"}
    assert {link[1:] for link in links if link.startswith("#")} <= anchors
    files = [link for link in links if not link.startswith("#")]
    assert len(files) == len(FIGURES)
    for link in files:
        assert (tmp_path / link).resolve().is_file(), link
    assert not [own for own in found.attributes if own[1] in {"src", "style"}]
    text = place.read_text()
    assert "winnow&#x27;s exact join is the fastest on 1 of 1 workloads" in text
    assert "takes 4.0 times as long on W2, count" in text
    assert "W2, Spark streams: too many." in text
    assert "W2, count, pandas: stopped after 60 s: q." in text
    assert "Measured at c0ffee on 2 threads, chip, load 0.5 to 0.5; polars 2." in text
    drawn = sum(len(own.points) > 1 for own in reproduce("papers").EXPERIMENTS.values())
    assert found.tags["figure"] >= drawn - 5


@pytest.mark.skipif(browser.found() is None, reason="there is no Chromium: make extras gets one")
@pytest.mark.parametrize("width", [390, 1280])
def test_the_report_loads_and_fits_a_phone_and_a_desk(
    reproduce: Any, tmp_path: Path, width: int
) -> None:
    place = report_in(reproduce, tmp_path)
    with browser.opened() as page:
        page.open(place, width)
        assert page.complaints() == []
        assert page.value("document.documentElement.scrollWidth") == width
        assert page.value("document.querySelectorAll('svg.plot').length") > 40
        page.value("document.querySelector('a[href=\"#P4-fig11\"]').click()")
        assert abs(page.value("document.getElementById('P4-fig11').getBoundingClientRect().y")) < 2
