"""Jobs: what the commands do, as stages of tasks that any executor maps.

`opening` reads and prepares, `lane_stats` summarises lanes, `split` divides the budget, `output`
and `part` write; each folder beside them is one job. It imports everything below and neither
`api` nor `commands`. A newcomer starts with `replay/run.py`.
"""
