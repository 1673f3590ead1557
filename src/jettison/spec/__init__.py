"""Networks in files: YAML in both directions, and the `run` section.

Comes in: the text of a file.
Goes out: a `Graph` and a checked `run` section, or an error that names the place in the file, the value, and what is
allowed there.
"""
