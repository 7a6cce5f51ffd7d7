"""What each command does, in a line: all that ``winnow --help`` loads of it."""

MEANINGS = {
    "replay": "replay two archived streams through a window join within a memory budget",
    "sweep": "replay one archive under a grid of policies, budgets, windows and more",
    "sample": "sample a join within a memory budget, and estimate aggregates of it",
    "estimate": (
        "estimate totals of a join within a stated error, from stretches of the archives' time"
    ),
    "bound": "find the best possible result within a memory budget, or bounds of it",
    "allocate": "divide one memory over several joins so that none does too badly",
    "multijoin": "join 2 to 8 streams on any predicate, exactly or within a CPU budget",
    "lookup": "join one archived stream with a relation that may change meanwhile",
    "explain": "say which order a multi-way join should take, and what each costs",
    "report": "show the report of outputs that were written before, as HTML too",
    "prepare": "write the lane files of two archives ahead of their replays",
    "profile": "measure what two archives are like, and say which policy suits them",
    "size": "say what a cluster must be given for a replay, from a profile",
    "generate": "write the papers' synthetic streams",
    "policies": "list the retention policies and their parameters",
}
"""By command, in the order of ``--help``."""
