"""The answer of a report in a few figures, each with what makes it understood."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from engine.report.tables import number, percent, rounded
from engine.runtime.time_units import span_text

_MOST = 6


class Answer(NamedTuple):
    """One figure."""

    name: str
    value: str
    note: str = ""


def answers_of(task: str, content: Mapping[str, Any]) -> list[Answer]:
    """Return what a report answers, the most important first."""
    return list(_TASKS.get(task, _of_join)(content))[:_MOST]


def _of_join(content: Mapping[str, Any]) -> Iterator[Answer]:
    result = content.get("result")
    if result is None:
        return
    if "recall" not in content:
        yield Answer(
            "Outputs", number(result["outputs"]), f"of importance {number(result['importance'])}"
        )
        return
    exact, lost = content["exact"], content["lost"]
    found = f"{number(result['outputs'])} of {number(exact['outputs'])} outputs were found"
    yield Answer("Recall", percent(content["recall"]), found)
    if exact["importance"] != exact["outputs"]:
        note = f"{number(result['importance'])} of {number(exact['importance'])} was found"
        yield Answer("Importance recall", percent(content["importance_recall"]), note)
    yield Answer(
        "Lost", number(lost["outputs"]), f"outputs, of importance {number(lost['importance'])}"
    )
    bound = content.get("bound")
    if bound is not None:
        yield _share("Of the best possible", bound)
        whole = of_any_split(bound)
        if whole is not None:
            yield _share("Of the best of any split", whole)
    elif lost["outputs"] and "policy" in content:
        yield Answer("Of the best possible", "not known", "winnow bound finds it")


def of_any_split(bound: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the best of any split where it is another one than that of the memory as split."""
    whole: dict[str, Any] | None = bound["any_split"]
    if whole is None or all(bound[name] == own for name, own in whole.items()):
        return None
    return whole


def _share(name: str, bound: Mapping[str, Any]) -> Answer:
    least, most = (percent(bound["share_of_best"][own]) for own in ("least", "most"))
    if bound["gap"] == 0.0:
        return Answer(name, least, f"which is an importance of {number(bound['upper'])}")
    low, high = number(bound["lower"]), number(bound["upper"])
    value = f"{least.removesuffix(' %')} to {most}"
    return Answer(name, value, f"the best importance is {low} to {high}")


def bounded_sum(content: Mapping[str, Any]) -> str:
    """Return which sum of the outputs a bound is of: ``outputs`` or ``importance``."""
    return "outputs" if content["objective"]["name"] == "outputs" else "importance"


def _of_bound(content: Mapping[str, Any]) -> Iterator[Answer]:
    name = bounded_sum(content)
    kind = "Least" if content["objective"]["name"] == "minimum" else "Best possible"
    exact = content["exact"][name]
    low, high = number(content["lower"]), number(content["upper"])
    optimal = content["gap"] == 0.0
    of_exact = [percent(content[own] / exact if exact else 1.0) for own in ("lower", "upper")]
    yield Answer(
        f"{kind} {name}", low if optimal else f"{low} to {high}",
        f"proven by {content['method']}",
    )  # fmt: skip
    if not content["objective"]["threshold"]:  # or it is another sum than the exact join's
        yield Answer(
            "Of the exact join",
            of_exact[0] if optimal else f"{of_exact[0].removesuffix(' %')} to {of_exact[1]}",
            f"which comes to {number(exact)}",
        )
    yield Answer("Gap", percent(content["gap"]), "between the proven bounds")


def _of_sample(content: Mapping[str, Any]) -> Iterator[Answer]:
    confidence = f"{100 * content['confidence']:g} %"
    for name, own in content["estimates"].items():
        interval = ""
        if own["low"] is not None:
            interval = f"{_near(own['low'])} to {_near(own['high'])} with {confidence}; "
        yield Answer(
            f"{name.capitalize()}, estimated", _near(own["estimate"]),
            f"{interval}exactly {number(own['exact'])}",
        )  # fmt: skip
        if own["relative_error"] is not None:
            yield Answer("Relative error", percent(own["relative_error"]), f"of {name}")
    sample = content["sample"]
    yield Answer("Sampled", number(sample["rows"]), "outputs")


def _of_estimate(content: Mapping[str, Any]) -> Iterator[Answer]:
    confidence = f"{100 * content['confidence']:g} %"
    for own in content["aggregates"]:
        if own["estimates"] != 1:
            yield Answer(own["aggregate"], number(own["estimates"]), "estimates, see the table")
        elif own["low"] is None:
            yield Answer(own["aggregate"], _near(own["estimate"]), f"none: {own['no_interval']}")
        elif own["low"] == own["high"]:
            yield Answer(own["aggregate"], _near(own["estimate"]), "exactly")
        else:
            note = f"{_near(own['low'])} to {_near(own['high'])} with {confidence}"
            yield Answer(own["aggregate"], _near(own["estimate"]), note)
    share, of = content["read"]["share"], number(content["exact"]["bytes"])
    if share > 1:
        note = f"{of} bytes, as some were read more than once"
        yield Answer("Read", f"{share:.2f} times", note)
    else:
        yield Answer("Read", percent(share), f"of {of} bytes")


def _near(value: float | None) -> str:
    """Return an estimate without digits that say nothing."""
    if value is None:
        return "none"
    return rounded(value, whole=abs(value) >= 1e4 or value == int(value))


def _of_sweep(content: Mapping[str, Any]) -> Iterator[Answer]:
    many = len(content["grid"]["windows"]) > 1
    tick = content["grid"]["tick"]
    for own in content["advice"]:
        target, best = own["target"], own["best"]
        where = f", window {span_text(own['window']['left'], tick)}" if many else ""
        measure = target["measure"].replace("_", " ")
        name = f"Least memory for {measure} of {100 * target['value']:g} %{where}"
        if best is None:
            near = own["nearest"]
            reached = "" if near is None else f"nearest {percent(near[target['measure']])}"
            yield Answer(name, "none in the grid", reached)
            continue
        note = f"{number(best['tuples'])} tuples with policy {best['policy']}"
        yield Answer(name, best["memory"], f"{note}: {percent(best[target['measure']])}")
    yield Answer("Replays", number(content["grid"]["cells"]), "every setting of the grid")


def _of_profile(content: Mapping[str, Any]) -> Iterator[Answer]:
    yield Answer("Outputs", number(content["exact"]["outputs"]), "of the exact join")
    for one in content["advice"]["trials"]:
        share = one[one["measure"]]
        yield Answer(
            f"Advised in {one['memory']}", one["policy"],
            f"{one['measure'].replace('_', ' ')} {percent(share['value'])}, split {one['split']}",
        )  # fmt: skip


def _of_allocation(content: Mapping[str, Any]) -> Iterator[Answer]:
    metric, worst = content["metric"], "worst join"
    for how in ("alloc", "prop"):
        own = content[how]
        found = own["predicted"] if own["replayed"] is None else own["replayed"]
        said = "predicted" if own["replayed"] is None else "replayed"
        value = "no bound" if found is None else percent(found)
        yield Answer(f"{metric.capitalize()} of the {worst}, {how.upper()}", value, said)
    yield Answer("Memory", number(content["memory"]["tuples"]), "tuples over all joins")


def _of_lookup(content: Mapping[str, Any]) -> Iterator[Answer]:
    rows = content["rows"]["stream"]
    share = percent(content["matched"] / rows if rows else 1.0)
    yield Answer("Outputs", number(content["outputs"]))
    yield Answer("Rows with a fact", share, f"{number(content['matched'])} of {number(rows)}")


def _of_order(content: Mapping[str, Any]) -> Iterator[Answer]:
    names = [own["name"] for own in content["streams"]]
    for own in content.get("directions", [content]):
        order = " ".join(names[stream - 1] for stream in own["chosen"])
        which = f", stream {names[own['direction'] - 1]}" if "direction" in own else ""
        cost = own["chosen_cost"]
        note = f"{number(cost)} comparisons, the best {number(own['best_cost'])}"
        yield Answer(f"Join order{which}", order, note)


_TASKS: dict[str, Callable[[Mapping[str, Any]], Iterator[Answer]]] = {
    "bound": _of_bound,
    "sample": _of_sample,
    "estimate": _of_estimate,
    "sweep": _of_sweep,
    "profile": _of_profile,
    "allocate": _of_allocation,
    "lookup": _of_lookup,
    "explain": _of_order,
}
