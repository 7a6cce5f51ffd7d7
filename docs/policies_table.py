"""Writes the tables of policies in the documents from the registry; `make docs` runs it.

    python docs/policies_table.py [--check]

With ``--check`` nothing is written and the exit status is 1 if a table is stale.
"""  # noqa: INP001 - a script, not a package

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from pathlib import Path

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


def short_table() -> str:
    """Return policies, what they keep and where they come from."""
    return _table(("policy", "keeps by", "source"), lambda p: (f"`{p.name}`", p.summary, p.source))


def full_table() -> str:
    """Return the same with the parameters and the data structure on the CPU."""
    return _table(
        ("policy", "keeps by", "parameters", "found by", "source"),
        lambda p: (f"`{p.name}`", p.summary, _default(p), p.structure.name.lower(), p.source),
    )


DOCUMENTS = {"README.md": short_table, "docs/policies.md": full_table}


def renewed(text: str, table: str) -> str:
    """Return `text` with `table` between its marks."""
    begin, end = "<!-- policies -->\n", "<!-- /policies -->"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    if not pattern.search(text):
        raise SystemExit(f"a document has no marks {begin.strip()} and {end}: put them back")
    return pattern.sub(lambda _: begin + "\n" + table + "\n" + end, text)


def stale() -> dict[Path, str]:
    """Return what should stand in the documents that are not up to date."""
    found = {}
    for name, table in DOCUMENTS.items():
        path = ROOT / name
        text = path.read_text()
        wanted = renewed(text, table())
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
