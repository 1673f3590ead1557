"""How a run is started: options in groups, checked where they are made, without Spark.

Comes in: what a user gives to `jt.start`, or writes into the `run` section of a file.
Goes out: frozen `Shedding`, `Costs` and `Checkpoint`, each with a default for everything.
"""
