"""The examples in the papers' figures, as tables of (ts, key, importance)."""

from __future__ import annotations

from typing import Any

from naive import Table
from naive_optimum import Fact

P1_R: Table = [(0, 1, 1.0), (1, 9, 20.0), (2, 1, 1.0), (3, 3, 5.0), (4, 4, 5.0), (5, 2, 1.0)]
P1_S: Table = [(0, 3, 5.0), (1, 1, 1.0), (2, 1, 1.0), (3, 1, 1.0), (4, 9, 20.0), (5, 1, 1.0)]
"""P1 figure 1, w = 4."""
P2_R: Table = [(0, 1, 5.0), (1, 0, 1.0), (2, 1, 4.0), (3, 0, 8.0), (4, 2, 3.0), (5, 5, 2.0)]
P2_S: Table = [(0, 1, 1.0), (1, 3, 5.0), (2, 3, 2.0), (3, 8, 6.0), (4, 3, 4.0), (5, 5, 3.0)]
P2_F: Fact = [
    *((0, 3, -1, None), (1, 5, -1, None), (0, 8, -1, None)),
    *((4, 5, -1, None), (1, 3, -1, 5), (5, 8, 3, None)),
]
"""P2 figures 2 and 3, m = 4."""
P1: dict[str, Any] = {"left": P1_R, "right": P1_S}
P2: dict[str, Any] = {"left": P2_R, "right": P2_S, "fact": P2_F}
WINDOWS = {"window_left": 3, "window_right": 3}  # w = m = 4
BUDGETS = {"budget_left": 2, "budget_right": 2}
