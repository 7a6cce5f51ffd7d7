"""Python functions: one file for each pair, over tables and over archives.

It imports `jobs` and what lies below; `door.py` gives the functions the keywords of their command.
A newcomer starts with `replay.py`.
"""
