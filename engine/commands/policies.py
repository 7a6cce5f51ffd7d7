"""``winnow policies``."""

from __future__ import annotations

import argparse

from rich.console import Console
from rich.table import Table

from engine.policies import POLICIES, SAMPLING


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take no options."""
    del parser


def run(args: argparse.Namespace) -> int:
    """Print every policy with its parameters."""
    del args
    table = Table()
    for name in ("policy", "keeps by", "parameters", "source"):
        table.add_column(name)
    for policy in (*POLICIES.values(), *SAMPLING.values()):
        parameters = "\n".join(
            f"{p.name}: {p.meaning}" + (f" (default {p.default})" if p.default is not None else "")
            for p in policy.parameters
        )
        table.add_row(policy.name, policy.summary, parameters, policy.source)
    Console().print(table)
    return 0
