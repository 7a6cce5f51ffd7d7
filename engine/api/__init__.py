"""Python functions: one file for each pair, over tables and over archives.

It imports `jobs` and what lies below. A newcomer starts with `replay.py`.
"""
