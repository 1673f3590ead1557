"""Whole windows as the unit of shedding: fates, needs, gaps, groups.

Comes in: a network with windows, and the share of windows that a plan may drop.
Goes out: schedules whose fates are pure functions of a window's index and group, and the event times that kept
windows need.
"""
