"""GrubJoin: multi-way window joins within a CPU budget, by window harvesting (P4 5).

A newcomer starts with `operator.py`. `learning` decides what of the windows is read, `probing`
reads it.
"""
