"""What each command does, in a line: all that ``winnow --help`` loads of it."""

import re

MEANINGS = {
    "replay": "replay two archived streams through a window join within a memory budget",
    "sweep": "replay two archives under a grid of policies, budgets, windows and more",
    "sample": "sample a join within a memory budget, and estimate aggregates of it",
    "estimate": (
        "estimate totals of a join, or recall within a memory, to a stated error, from a part of "
        "the archives"
    ),
    "bound": "find the best possible result within a memory budget, or bounds of it",
    "allocate": "divide one memory over several joins so that the worst does as well as it can",
    "multijoin": "join 2 to 8 streams on any predicate, exactly or within a memory or CPU budget",
    "lookup": "join one archived stream with a relation whose rows change over time",
    "explain": "say which order a multi-way join should take, and what each costs",
    "report": "show the report of outputs that were written before, as HTML too",
    "prepare": "partition and sort two archives ahead of their replays",
    "profile": "measure what two archives are like, and say which policy suits them",
    "size": "compute the memory of workers and the settings of Spark, from a profile",
    "generate": "write the papers' synthetic streams",
    "completion": "print what bash, zsh or fish needs to complete commands and options",
    "warm": "compile kernels ahead of their first use, into the cache",
    "cache": "list or remove the prepared lanes and the compiled kernels that are kept",
    "policies": "list the retention policies and their parameters",
}
"""By command, in the order of ``--help``."""

PAPERS = {
    "P1": "Ojewole, Zhu: Window Join Approximation over Data Streams with Importance Semantics "
    "(CIKM 2006)",
    "P2": "Towne, Zhu, Zuzarte, Hou: Window Query Processing for Joining Data Streams with "
    "Relations (CASCON 2007)",
    "P3": "Golab, Özsu: Processing Sliding Window Multi-Joins in Continuous Queries over Data "
    "Streams (VLDB 2003)",
    "P4": "Gedik, Wu, Yu, Liu: GrubJoin: An Adaptive Multi-Way Windowed Stream Join with Time "
    "Correlation-Aware CPU Load Shedding (EDBT 2007)",
    "P5": "Srivastava, Widom: Memory-Limited Execution of Windowed Stream Joins (VLDB 2004)",
}
"""The papers by the names by which help and documents cite them."""


def papers_in(text: str) -> dict[str, str]:
    """Return the papers that a text cites, by the names by which it does.

    Examples
    --------
    >>> list(papers_in("as in P5 and P1, not P100"))
    ['P1', 'P5']
    """
    return {name: own for name, own in PAPERS.items() if re.search(rf"\b{name}\b", text)}


def cited(text: str) -> list[str]:
    """Return a line for each paper that a text cites."""
    return [f"{name}: {own}" for name, own in papers_in(text).items()]
