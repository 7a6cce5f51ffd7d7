"""Python functions: for each task one over any frame, and for some one of archives besides.

`pairs.py`, `sampled.py` and `tasks.py` have what `import winnow` gives: they take paths and frames
(`frames.py`) and return a `Result`. Those of archives return the report and write rows only where
`out` says. It imports `jobs` and what lies below; `keywords.py` gives each function the keywords of
its command. A newcomer starts with `pairs.py`.
"""
