"""How many of the pushable operators run on motes. No answer depends on it; traffic and energy do."""

from enum import StrEnum


class PushdownPolicy(StrEnum):
    """`planned` lets the cost model decide for each query; the other two are for comparison."""

    EVERYTHING = "everything"
    NOTHING = "nothing"
    PLANNED = "planned"
