"""One file per result that we reproduce or claim. `jettison experiment list` shows them.

In comes nothing but the length of the run. Out goes a `Result`: metrics, checks that can fail, a table and a picture.
"""
