"""A network and a plan as frames of one batch.

Comes in: the raw rows of a batch, the network, the plan.
Goes out: one frame per output, with drops as filters and observations that count. Nothing here writes.
"""
