"""Columns: what tuples, windows and what is known of them by number are held in, without a copy where none is needed."""
