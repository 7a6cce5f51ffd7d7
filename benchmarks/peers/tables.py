"""What is told of measurements: exact joins side by side, and recall by memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.report.charts import Bars, Chart, Lines, Series
from peers.winnow_joins import FROM_FILES
from peers.worker import APPROXIMATE, ENGINES
from peers.workloads import ARCHIVES, GENERATED

Row = Mapping[str, Any]


def fastest(rows: Sequence[Row]) -> list[Row]:
    """Return winnow's exact join, then the fastest query of each other engine."""
    found: dict[str, Row] = {}
    for row in rows:
        if "seconds" not in row or row["who"] == APPROXIMATE:
            continue
        best = found.get(row["who"])
        if best is None or (-row["runs"], row["seconds"]) < (-best["runs"], best["seconds"]):
            found[row["who"]] = row
    ours = [row for who, row in found.items() if who == "winnow"]
    return ours + sorted(
        (row for who, row in found.items() if who != "winnow"), key=lambda row: row["times"]
    )


def exact(rows: Sequence[Row]) -> str:
    """Return a table of exact joins: the fastest query of each engine."""
    lines = [
        "| workload | engine | query | s | times ours | CPU s | times ours | MiB | M tuples a s |",
        "|---|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, what in dict.fromkeys((row["workload"], row["what"]) for row in rows):
        own = [row for row in rows if (row["workload"], row["what"]) == (name, what)]
        best = fastest(own)
        for at, row in enumerate(best):
            title = f"{name}, {what}: {row['outputs']:,} outputs" if at == 0 else ""
            lines.append(
                f"| {title} | {row['who']} | {row['query']} | {row['seconds']:.3g} | "
                f"{row['times']:.1f} | {row['cpu']:.3g} | {row['cpu_times']:.1f} | "
                f"{row['mib']:,} | {row['tuples'] / row['seconds'] / 1e6:.3g} |"
            )
        told = {row["who"] for row in best}
        for row in own:
            if "stopped" in row and row["who"] not in told:
                told.add(row["who"])
                lines.append(
                    f"| | {row['who']} | {row['query']} | > {row['stopped']:g} | "
                    f"> {row['times']:.0f} | | | | |"
                )
    return "\n".join(lines)


def approximate(rows: Sequence[Row]) -> str:
    """Return a table of the joins within less, with their recall."""
    lines = [
        "| workload | within | s | times the exact join | MiB | recall, outputs | importance |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for name in dict.fromkeys(row["workload"] for row in rows):
        own = [row for row in rows if row["workload"] == name and row["what"] == "count"]
        own = [row for row in own if "outputs" in row]
        ours = next((row for row in own if row["who"] == "winnow"), None)
        for at, row in enumerate(row for row in own if row["who"] == APPROXIMATE):
            if ours is None:
                break
            worth = f"{row['value'] / ours['value']:.3f}" if ours["value"] else ""
            lines.append(
                f"| {name if at == 0 else ''} | {row['query']} | {row['seconds']:.3g} | "
                f"{_times(row, own):.1f} | {row['mib']:,} | "
                f"{row['outputs'] / max(1, ours['outputs']):.3f} | {worth} |"
            )
    return "\n".join(lines)


def beside(rows: Sequence[Row]) -> str:
    """Return a line a workload: winnow's seconds, and how many times as long each engine takes."""
    others = [who for who in ENGINES if who not in ("winnow", APPROXIMATE)]
    lines = [
        f"| workload | outputs | winnow, s | MiB | {' | '.join(others)} |",
        "|---|---:|---:|---:|" + "---:|" * len(others),
    ]
    for name, what in dict.fromkeys((row["workload"], row["what"]) for row in rows):
        own = [row for row in rows if (row["workload"], row["what"]) == (name, what)]
        times = {row["who"]: f"> {row['times']:.0f}" for row in own if "stopped" in row}
        times |= {row["who"]: f"{row['times']:.1f}" for row in fastest(own)}
        ours = next((row for row in own if row["who"] == "winnow"), None)
        if ours is not None:
            cells = " | ".join(times.get(who, "") for who in others)
            lines.append(
                f"| {name}, {what} | {ours['outputs']:,} | {ours['seconds']:.3g} | "
                f"{ours['mib']:,} | {cells} |"
            )
    return "\n".join(lines)


def _times(row: Row, rows: Sequence[Row]) -> float:
    """Return how many times the exact join's seconds a row has, from files if that is as well."""
    exact = next((own["seconds"] for own in rows if own["query"] == FROM_FILES), None)
    return float(row["times"] if exact is None else row["seconds"] / exact)


def recalled(rows: Sequence[Row]) -> str:
    """Return a line a workload: recall of outputs, and of importance, by share; what it takes."""
    rows = [row for row in rows if row["what"] == "count" and "outputs" in row]
    exact = {row["workload"]: row for row in rows if row["who"] == "winnow"}
    less = [row for row in rows if row["who"] == APPROXIMATE and row["workload"] in exact]
    within = [row["query"].partition(" of ")[0] for row in less if row["query"] != FROM_FILES]
    shares = list(dict.fromkeys(within))
    lines = [
        f"| workload | of the | {' | '.join(shares)} | times the exact join |",
        "|---|---|" + "---:|" * (len(shares) + 1),
    ]
    for name in dict.fromkeys(row["workload"] for row in less):
        all_of, ours = [row for row in less if row["workload"] == name], exact[name]
        own, found = [row for row in all_of if row["query"] != FROM_FILES], {}
        for row in own:
            worth = f" / {row['value'] / ours['value']:.2f}" if ours["value"] else ""
            recall = row["outputs"] / max(1, ours["outputs"])
            found[row["query"].partition(" of ")[0]] = f"{recall:.2f}{worth}"
        kind, times = own[0]["query"].rpartition(" ")[2], [_times(row, all_of) for row in own]
        cells = " | ".join(found.get(share, "") for share in shares)
        lines.append(f"| {name} | {kind} | {cells} | {min(times):.1f} to {max(times):.1f} |")
    return "\n".join(lines)


def charts(rows: Sequence[Row]) -> list[Chart]:
    """Return plots: how many times winnow's seconds each engine takes, and recall by share."""
    counted = [row for row in rows if row["what"] == "count"]
    best = {
        name: fastest([row for row in counted if row["workload"] == name])
        for name in dict.fromkeys(row["workload"] for row in counted)
    }
    engines = dict.fromkeys(row["who"] for own in best.values() for row in own)
    seconds = {(name, row["who"]): row["times"] for name, own in best.items() for row in own}
    found: list[Chart] = [
        Bars(f"{name}: seconds, over winnow's", "times winnow's seconds",
             [who for who in engines if (name, who) in seconds],
             [Series("seconds", [seconds[name, who] for who in engines if (name, who) in seconds])])
        for name in best
    ]  # fmt: skip
    for kind in ("memory", "work"):
        curves = {}
        for row in counted:
            own = best[row["workload"]]
            kept = row["who"] == APPROXIMATE and "outputs" in row and row["query"].endswith(kind)
            if kept and own:
                share = int(row["query"].partition(" ")[0])
                recall = row["outputs"] / max(1, own[0]["outputs"])
                curves.setdefault(row["workload"], {})[share] = recall
        if curves:
            shares = sorted({share for own in curves.values() for share in own})
            lines = [
                Series(name, [own.get(share) for share in shares]) for name, own in curves.items()
            ]
            title = f"Recall by {kind}, in percent of what the exact join needs"
            found.append(Lines(title, f"{kind} (%)", "recall of outputs", shares, lines))
    return found


def left_out(rows: Sequence[Row]) -> str:
    """Return what was not measured, and why."""
    stopped: dict[tuple[str, str, float], list[str]] = {}
    for row in rows:
        if "stopped" in row:
            place = f"{row['workload']}, {row['what']}"
            stopped.setdefault((place, row["who"], row["stopped"]), []).append(row["query"])
    lines = [
        f"- {place}, {who}: stopped after {limit:g} s: {'; '.join(queries)}."
        for (place, who, limit), queries in stopped.items()
    ]
    reasons: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if "left_out" in row:
            reasons.setdefault((row["who"], row["left_out"]), []).append(row["workload"])
    lines += [f"- {', '.join(names)}, {who}: {why}." for (who, why), names in reasons.items()]
    for kind, every in (("workload", (*GENERATED, *ARCHIVES)), ("who", ENGINES)):
        if missing := [name for name in every if name not in {row[kind] for row in rows}]:
            lines.append(f"- Not measured: {', '.join(missing)}.")
    return "\n".join(lines)


def leads(rows: Sequence[Row]) -> str:
    """Return on how many workloads winnow is the fastest, and by how much at least."""
    ratios = {}
    for name, what in dict.fromkeys((row["workload"], row["what"]) for row in rows):
        best = fastest([row for row in rows if (row["workload"], row["what"]) == (name, what)])
        if len(best) > 1 and best[0]["who"] == "winnow":
            ratios[f"{name}, {what}"] = min(row["times"] for row in best[1:])
    if not ratios:
        return "Nothing was compared."
    least = min(ratios, key=ratios.__getitem__)
    first = sum(ratio > 1 for ratio in ratios.values())
    return (
        f"winnow's exact join is the fastest on {first} of {len(ratios)} workloads; the fastest "
        f"other engine takes {ratios[least]:.1f} times as long on {least}, and no less on any "
        "other."
    )


def made_by(record: Mapping[str, Any]) -> str:
    """Return at which commits, with which versions and on what it was measured."""
    by = record["by"]
    if not by:
        return ""
    commits = ", ".join(dict.fromkeys(one["commit"] for one in by))
    versions = ", ".join(f"{name} {version}" for name, version in by[-1]["versions"].items())
    machines = ", ".join(
        dict.fromkeys(f"{one['threads']} threads, {one['processor']}" for one in by)
    )
    loads = [row["load"] for row in record["rows"]]
    load = f"load {min(loads):g} to {max(loads):g}"
    return f"Measured at {commits} on {machines}, {load}; {versions}."


def marked(record: Mapping[str, Any]) -> dict[str, str]:
    """Return the texts that documents have marks for."""
    rows = record["rows"]
    return {
        "peers by": made_by(record),
        "peers leads": leads(rows),
        "peers exact": beside(rows),
        "peers approximate": recalled(rows),
    }


def printed(rows: Sequence[Row]) -> str:
    """Return what is printed of one workload."""
    found = [exact(rows), leads(rows)]
    if any(row["who"] == APPROXIMATE for row in rows):
        found.insert(1, approximate(rows))
    return "\n\n".join(own for own in [*found, left_out(rows)] if own) + "\n"
