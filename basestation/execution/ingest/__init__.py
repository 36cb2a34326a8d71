"""Ingest: takes what reaches the base station of an extent or a fold in: admits, orders, corrects and counts it."""
