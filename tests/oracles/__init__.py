"""Oracles: slow, obvious programs that say what the right answer is.

`recompute.run` interprets SNEEql from the definitions; `in_sqlite` asks SQLite about single windows; `generate` makes
cases. None of them shares anything with the engine but the parser, the syntax nodes and the words for units.
"""
