"""The papers' figures and tables as experiments: set-up, claims, measurements, computed verdicts.

`experiment.py` is what an experiment is and how its claims are judged; `p1.py` to `p5_*.py` hold
the experiments of each paper and `papers.py` lists them; `run.py` measures, and `page.py` and
`plots.py` show. From the repository's root, `make reproduce`, or

    python benchmarks/reproduce [--only P4:fig11] [--quick]
"""

import os

os.environ.setdefault("WINNOW_COMPILE", "always")
"""Of all benchmarks, which import this first: warm-ups compile, and nothing that is timed."""
