"""Wanting: who of many wants which tuples, all of them looked up together."""
