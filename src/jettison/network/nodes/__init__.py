"""Several nodes: which operator runs where (placement), and the part of a network that one node runs (fragments).

Comes in: a network's operators and the nodes that are declared for it.
Goes out: a checked `Placement`, and a `Fragment` per node, whose graph is a network of its own.
"""
