"""The life of a run: it is checked and started, its query runs, and it ends; `spark.batch` has what a batch does.

Comes in: what `jt.start` is given.
Goes out: a `Run`, which can be asked, waited for and stopped, and says why it failed.
"""
