"""The texts beside this file, cut at their `----` lines."""

from pathlib import Path

HERE = Path(__file__).parent


def texts(name):
    """The texts of a file, each with the comments that stand in it."""
    return (HERE / name).read_text(encoding="utf-8").split("\n----\n")


QUERIES = texts("queries.txt")
SCHEMAS = texts("schemas.txt")
