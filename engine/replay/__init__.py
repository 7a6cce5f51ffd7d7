"""Two-way joins within a memory budget on the CPU (contract, sections 2 and 3).

It imports `policies`, `value_model` and what lies below. A newcomer starts with `lane.py`, then
`kernel.py`: one instant after the other.
"""
