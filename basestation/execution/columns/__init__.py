"""Columns: columnar containers for tuples and windows, and for values by their number; they avoid copies."""
