"""Generated data: rates of arrival, columns, distributions, presets.

Comes in: a seed and a declaration of columns and rates, as frozen values.
Goes out: rows as pure functions of (seed, column, row number), so that any range of rows can be generated again.
"""
