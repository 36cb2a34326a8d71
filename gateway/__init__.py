"""Bytes, frames and the links to motes; it knows no schema and no query."""
