"""Jobs: what the commands do, as stages of tasks that any executor maps.

A job is `run_NAME(options, executor, progress)`: its checked options; an
`engine.runtime.executors.Executor` that runs the tasks of every stage; and, if wanted, a function
that is called as ``progress(stage, done, total)``. It raises `WinnowError` if the options mean
nothing, an archive cannot be read, or the output cannot be written, and writes nothing then.

`frame` opens the archives and cuts them into lanes, `lane_stats` and `age_curves` describe lanes,
`split` divides the memory, `streams` opens what is read whole, `output` and `part` write; each
folder beside them is one job. It imports everything below and neither `api` nor `commands`. A
newcomer starts with `replay/run.py`.
"""
