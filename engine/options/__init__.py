"""What each job is given, checked: one description a job, from whichever door it came.

It imports everything that computes, and nothing that runs a job. A newcomer starts with
`replay.py`.
"""
