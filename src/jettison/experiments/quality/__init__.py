"""Quality of data (Stream Economics, chapter 5): priorities and minimum accuracies, on Kafka and simulated.

Comes in: the seed's two applications, loads and machines. Goes out: minima and priorities held, accuracies, moves.
"""
