"""The command line, which has no logic of its own.

Comes in: arguments.
Goes out: text on the screen and an exit code.
"""
