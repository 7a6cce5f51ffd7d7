"""Lanes: one independent join each (contract, section 8), prepared as files and read in batches.

It imports `facts`, `archives` and what lies below. A newcomer starts with `prepare.py`, which runs
both passes over the archives, and `manifest.py`, which says what a prepared lane is.
"""
