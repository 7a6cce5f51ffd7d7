"""The table of options, each declared once, and the jobs that they describe, checked.

It imports everything that computes, and nothing that runs a job. A newcomer starts with
`option.py`, then `replay.py`.
"""
