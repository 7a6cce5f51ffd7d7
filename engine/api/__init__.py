"""Python functions: one file for each pair, over tables and over archives.

It imports `jobs` and what lies below; `keywords.py` gives each function the keywords of its
command. A newcomer starts with `replay.py`.
"""
