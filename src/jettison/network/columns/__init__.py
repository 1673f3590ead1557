"""Columns and expressions, read without Spark.

Comes in: schemas and SQL text.
Goes out: which columns an expression uses, where a column's values come from, which columns anybody needs.
"""
