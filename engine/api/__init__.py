"""Python functions: one for each task, over paths and any frame.

`pairs.py`, `sampled.py` and `tasks.py` have what `import winnow` gives: they take paths and frames
(`frames.py`) and return a `Result`. It imports `jobs` and what lies below; `keywords.py` gives each
function the keywords of its command. A newcomer starts with `pairs.py`.
"""
