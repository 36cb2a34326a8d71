"""Predicate index: finds for many queries at once the rows that satisfy their predicates (grouped filters of CACQ)."""
