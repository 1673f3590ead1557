"""WHAT was measured: samples of batches, and estimates that follow them.

Comes in: `BatchSample`s and values drawn from rows.
Goes out: costs, selectivities, load, histograms, sizes of groups, and the account of where source tuples went.
"""
