"""Places for drops: the arcs where a drop may stand, and the shares that it may keep.

Comes in: a network and its profile.
Goes out: locations, keep levels, keys that both sides of a join share, and drops assembled from shares.
"""
