"""Writes what documents take from the code: tables, rows of new options, the Python reference.

`make docs` runs it:

    python docs/tables.py [--check]

The page of a command has a row for each option. An option without one gets its help text, default
and an example, after the option declared before it; better words may then replace them. Rows of
options that are gone are removed. With ``--check`` nothing is written, and the exit status is 1 if
a document is stale.
"""  # noqa: INP001 - a script, not a package

from __future__ import annotations

import argparse
import inspect
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import winnow
from engine.commands.line import all_commands
from engine.options.by_stream import ByStream
from engine.options.command import Group
from engine.options.kinds import Flag, Number, Whole
from engine.options.named import Parameters
from engine.options.option import Option
from engine.options.replay import FACT, JOIN, STREAMS, WHERE
from engine.options.streams import Memory, Probe
from engine.policies import POLICIES, SAMPLING, Policy

ROOT = Path(__file__).resolve().parent.parent


def _default(policy: Policy) -> str:
    """Return a policy's parameters with meaning and default, as one table cell."""
    cells = []
    for parameter in policy.parameters:
        default = parameter.default
        value = f"{default:g}" if isinstance(default, float) else default
        names = " or ".join(f"`{name}`" for name in (parameter.name, *parameter.aliases))
        cells.append(
            f"{names}: {parameter.meaning}" + ("" if default is None else f" (default `{value}`)")
        )
    return "<br>".join(cells) or "none"


def _table(header: tuple[str, ...], row: Callable[[Policy], tuple[str, ...]]) -> str:
    rows = [header, ("---",) * len(header), *map(row, [*POLICIES.values(), *SAMPLING.values()])]
    return "".join("| " + " | ".join(cells) + " |\n" for cells in rows)


def full_table() -> str:
    """Return policies, what they keep, their parameters and structure, and where they come from."""
    return _table(
        ("policy", "keeps by", "parameters", "found by", "source"),
        lambda p: (f"`{p.name}`", p.summary, _default(p), p.structure.name.lower(), p.source),
    )


def spark_table() -> str:
    """Return which tests of Spark passed with which versions of it and of Python, as last run."""
    found = json.loads((ROOT / "benchmarks" / "results" / "spark_versions.json").read_text())
    other = {version.split(" Python ")[1] for version in found if " Python " in version}
    plain = [version for version in found if " Python " not in version]
    rows = [["what", *(f"Spark {version}" for version in plain)], ["---"] * (len(plain) + 1)]
    rows += [
        [name, *(_counted(found[version]["features"].get(name)) for version in plain)]
        for name in found[plain[0]]["features"]
    ]
    rows += [[""], ["rows of this table", *rows[0][1:]], rows[1]]
    for python in ("", *sorted(other)):
        own = [found.get(f"{version} Python {python}" if python else version) for version in plain]
        number = python or ".".join(found[plain[0]]["python"].split(".")[:2])
        rows.append([f"Python {number}", *(_together(one) for one in own)])
    return "".join("| " + " | ".join(cells) + " |\n" if any(cells) else "\n" for cells in rows)


def _lines(name: str, of: str = "lines") -> list[dict[str, Any]]:
    """Return the lines of a record of `benchmarks`."""
    record = json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text())
    found: list[dict[str, Any]] = record[of]
    return found


def first_use_table() -> str:
    """Return what commands take with an empty cache, again, and with all kernels compiled."""
    rows = ["| command | first | again | after `winnow warm` |", "|---|---:|---:|---:|"]
    for line in _lines("first_use", "rows"):
        name, _, more = line["command"].partition(", ")
        cells = (
            f"{line[kind]:.1f}" if kind in line else "" for kind in ("cold", "again", "compiled")
        )
        rows.append(f"| `{name}`{more and ', ' + more} | " + " | ".join(cells) + " |")
    return "\n".join(rows) + "\n"


def harvest_table() -> str:
    """Return what harvested joins take over the exact join, by the clock and on the CPU."""
    rows = [
        "| predicate | window | by | part | exact, s | harvested, s | ratio | on CPU | recall |",
        "|---|---:|---|---:|---:|---:|---:|---:|---:|",
    ]
    for line in (own for own in _lines("harvest_cost") if own["throttle"] == 0.25):
        cpu = line["cpu_seconds"]["harvested"] / line["cpu_seconds"]["exact"]
        rows.append(
            f"| `{line['predicate']}` | {line['window']} s | {line['by']} | {line['throttle']:g} | "
            f"{line['exact']:.2f} | {line['harvested']:.2f} | {line['ratio']:.2f} | {cpu:.2f} | "
            f"{line['recall']:.1%} |"
        )
    return "\n".join(rows).replace("%", " %") + "\n"


def retained_table() -> str:
    """Return what a replay under a band takes over one on equal keys, by policy and matches."""
    ratios: dict[str, list[float]] = {}
    for line in _lines("retained_cost"):
        ratios.setdefault(line["policy"], []).append(line["ratio"])
    rows = ["| policy | 1 match | 10 matches |", "|---|---:|---:|"]
    rows += [f"| `{name}` | {few:.1f} | {many:.1f} |" for name, (few, many) in ratios.items()]
    return "\n".join(rows) + "\n"


def _together(run: Mapping[str, Any] | None) -> str:
    """Return how many features passed, failed or were skipped."""
    if run is None:
        return "not run"
    counts = Counter(_counted(own).strip("*").split()[-1] for own in run["features"].values())
    return ", ".join(f"{number} {outcome}" for outcome, number in sorted(counts.items()))


def _counted(tests: Mapping[str, int] | None) -> str:
    if tests is None:
        return "not run"
    if tests.get("failed"):
        return f"**{tests['failed']} failed**"
    return f"{tests['passed']} passed" if tests.get("passed") else "skipped"


_HEADING = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)
_OPTIONS = "**Parameters**\n\n"
_LISTED = {"Parameters", "Returns", "Raises", "Attributes", "See Also"}


def reference() -> str:
    """Return all that `import winnow` gives, in the words of its docstrings."""
    parts = []
    shared = set(_markdown(winnow.replay).partition(_OPTIONS)[2].partition("\n\n")[0].splitlines())
    for name in winnow.__all__:
        value = getattr(winnow, name)
        if isinstance(value, ModuleType):
            own = [
                (f"winnow.{name}.{key}", one)
                for key, one in vars(value).items()
                if inspect.isfunction(one) and one.__module__ == value.__name__ and key[0] != "_"
            ]
            parts.append(f"## winnow.{name}\n\n{_markdown(value)}")
            parts += [f"### {_called(path, one)}\n\n{_markdown(one)}" for path, one in own]
        elif callable(value):
            text = _markdown(value)
            if value is not winnow.replay:
                text = _without(text, shared)
            parts.append(f"## {_called(f'winnow.{name}', value)}\n\n{text}")
            if inspect.isclass(value):
                parts += [
                    f"### {_called(f'{name}.{key}', one)}\n\n{_markdown(one)}"
                    for key, one in vars(value).items()
                    if key[0] != "_"
                    and (inspect.isfunction(one) or isinstance(one, (property, cached_property)))
                ]
    return "\n\n".join(parts) + "\n"


def _without(text: str, shared: set[str]) -> str:
    """Return a function's reference, with options that are `winnow.replay`'s by name alone."""
    before, mark, rest = text.partition(_OPTIONS)
    options, end, after = rest.partition("\n\n")
    lines = options.splitlines()
    same = [line for line in lines if line in shared]
    if len(same) < 3:
        return text
    at = max(i for i, line in enumerate(lines) if line in shared) + 1
    names = ", ".join(line.removeprefix("- ").partition(":")[0] for line in same)
    lines.insert(at, f"- as of [`winnow.replay`](#winnowreplayleft-right-): {names}")
    own = "\n".join(line for line in lines if line not in shared)
    return f"{before}{mark}{own}{end}{after}"


def _called(path: str, value: object) -> str:
    """Return how something is called: what must be given; options have their own list."""
    if not inspect.isfunction(value):
        return f"`{path}`"
    given = inspect.signature(value).parameters.values()
    names = [
        {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(own.kind.name, "") + own.name
        for own in given
        if own.name != "self" and (own.default is own.empty or own.kind is not own.KEYWORD_ONLY)
    ]
    more = any(own.kind is own.KEYWORD_ONLY and own.default is not own.empty for own in given)
    return f"`{path}({', '.join([*names, *(['...'] if more else [])])})`"


def _markdown(value: object) -> str:
    """Return a docstring of numpydoc as Markdown."""
    text = inspect.getdoc(value) or ""
    pieces = _HEADING.split(text.replace("``", "`"))
    found = [pieces[0].strip()]
    for heading, body in zip(pieces[1::2], pieces[2::2], strict=True):
        own = body.strip()
        if heading == "Examples":
            own = f"```text\n{own}\n```"
        elif heading in _LISTED:
            own = _items(own)
        found.append(f"**{heading}**\n\n{own}")
    return "\n\n".join(own for own in found if own)


def _items(text: str) -> str:
    """Return a list's names in code, each with its meaning on the same line."""
    lines, between = [], ""
    for line in text.splitlines():
        if line and not line[0].isspace():
            name, colon, kind = line.partition(" : ")
            lines.append(f"- `{name}`" + (f" ({kind})" if colon else ""))
            between = ": "
        elif line.strip() and lines:
            lines[-1] += between + line.strip()
            between = " "
    return "\n".join(lines).replace("\n- `*`\n", "\n")


DOCUMENTS = {
    "docs/api.md": ("reference", reference),
    "docs/cache.md": ("first use", first_use_table),
    "docs/harvest.md": ("harvest cost", harvest_table),
    "docs/multijoin.md": ("retained cost", retained_table),
    "docs/policies.md": ("policies", full_table),
    "docs/spark.md": ("versions", spark_table),
}

_SHARED = (STREAMS, WHERE, FACT, JOIN, Group("", (Memory, Probe)))
_ELSEWHERE = {
    "replay": (FACT,),
    "sweep": _SHARED[:3],
    **dict.fromkeys(("bound", "sample"), _SHARED),
    **dict.fromkeys(("profile", "estimate"), _SHARED[:-1]),
}
"""By command, groups of options that the page of facts or of `winnow replay` explains."""
_ROW = re.compile(r"^\| `(--[\w-]+)` \|.*\| `([^`|]+)` \|\n", re.MULTILINE)
_EXAMPLES = {Whole: "3", Number: "0.5", ByStream: "left=3", Parameters: "alpha=2"}


def options_by_page() -> dict[Path, dict[str, Option]]:
    """Return the options that each page explains, by their names on the command line."""
    found = {ROOT / "docs" / "facts.md": _written(FACT.options)}
    for name, module in all_commands().items():
        page = ROOT / "docs" / f"{name}.md"
        elsewhere = {own for group in _ELSEWHERE.get(name, ()) for own in group.options}
        options = module.COMMAND.options
        if page.exists():
            found[page] = _written({n: own for n, own in options.items() if n not in elsewhere})
    return found


def _written(options: Mapping[str, Option]) -> dict[str, Option]:
    return {own.written: own for own in options.values() if not own.positional}


def _row(option: Option) -> str:
    value = option.choices[-1] if option.choices else _EXAMPLES.get(type(option.kind), "12")
    example = option.written if isinstance(option.kind, Flag) else f"{option.written} {value}"
    default = option.default
    shown = "none" if default in (None, False, ()) else f"`{option.kind.shown(default)}`"
    return f"| `{option.written}` | {option.help} | {shown} | `{example}` |\n"


def with_options(text: str, options: Mapping[str, Option]) -> str:
    """Return a page with a row for each of its options, and for no others."""
    text = _ROW.sub(lambda row: row[0] if row[1] in options else "", text)
    order = list(options)
    for i, name in enumerate(order):
        rows = {row[1]: row for row in _ROW.finditer(text)}
        if name not in rows:
            before = [rows[other].end() for other in order[:i] if other in rows]
            after = [rows[other].start() for other in order[i:] if other in rows]
            if not before and not after:
                raise SystemExit(f"no table has a row for {name}: begin one in its page")
            at = before[-1] if before else after[0]
            text = text[:at] + _row(options[name]) + text[at:]
    return text


def renewed(text: str, mark: str, table: str) -> str:
    """Return `text` with `table` between its marks."""
    begin, end = f"<!-- {mark} -->\n", f"<!-- /{mark} -->"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    if not pattern.search(text):
        raise SystemExit(f"a document has no marks {begin.strip()} and {end}: put them back")
    return pattern.sub(lambda _: begin + "\n" + table + "\n" + end, text)


def stale() -> dict[Path, str]:
    """Return what should stand in the documents that are not up to date."""
    pages = options_by_page()
    found = {}
    for path in {*pages, *(ROOT / name for name in DOCUMENTS)}:
        wanted = text = path.read_text()
        if path in pages:
            wanted = with_options(wanted, pages[path])
        if str(path.relative_to(ROOT)) in DOCUMENTS:
            mark, table = DOCUMENTS[str(path.relative_to(ROOT))]
            wanted = renewed(wanted, mark, table())
        if wanted != text:
            found[path] = wanted
    return found


def main() -> int:
    """Write what is stale, or only tell."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    found = stale()
    for path, text in found.items():
        sys.stdout.write(f"{path.relative_to(ROOT)} {'is stale' if check else 'written'}\n")
        if not check:
            path.write_text(text)
    return 1 if check and found else 0


if __name__ == "__main__":
    sys.exit(main())
