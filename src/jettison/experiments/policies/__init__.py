"""All shedders side by side: one network and one overload come in, a table and a picture go out.

`measured` has what is measured of one shedder, `on_spark` and `simulated` run them, `shown` draws; `policies` is the
experiment. `jettison compare` does the same for a user's own file.
"""
