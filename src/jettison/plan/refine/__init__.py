"""Refinements: functions from plan to plan.

Comes in: a plan and what it must respect (floors, staleness, worth, the lookahead of windows).
Goes out: another plan. A refinement keeps no state and reads no clock.
"""
