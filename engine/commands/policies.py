"""``winnow policies``."""

from __future__ import annotations

from engine.commands.asked import Asked
from engine.options.command import Command
from engine.options.meanings import MEANINGS, cited
from engine.policies import POLICIES, SAMPLING
from engine.report.tables import table_of, terminal

COMMAND = Command(
    "policies",
    MEANINGS["policies"],
    (),
    example="winnow policies",
)


def run(asked: Asked) -> int:
    """Print every policy with its parameters."""
    del asked
    headings = ("policy", "keeps by", "parameters", "source")
    table = table_of(headings, texts=range(len(headings)))
    for policy in (*POLICIES.values(), *SAMPLING.values()):
        parameters = "\n".join(
            f"{p.name}: {p.meaning}" + (f" (default {p.default})" if p.default is not None else "")
            for p in policy.parameters
        )
        table.add_row(policy.name, policy.summary, parameters, policy.source)
    console = terminal()
    console.print(table)
    sources = " ".join(own.source for own in (*POLICIES.values(), *SAMPLING.values()))
    for line in cited(sources):
        console.print(line, style="dim", highlight=False)
    return 0
