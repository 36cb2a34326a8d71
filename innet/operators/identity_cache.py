"""A cache of what follows from an operator alone: a planner needs it for each candidate state.

Comparing operators by value takes longer than most of these computations, so it compares by identity. The values are immutable, and kept alive.
"""

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

Value = TypeVar("Value")
Found = TypeVar("Found")

MOST = 8_192
"""Values of one function that are kept; then it begins anew."""


def cache_by_identity(function: Callable[[Value], Found]) -> Callable[[Value], Found]:
    """Let a pure function of an immutable value be computed once for each object."""
    known: dict[int, tuple[Value, Found]] = {}

    @wraps(function)
    def find(value: Value) -> Found:
        entry = known.get(id(value))
        if entry is None:
            if len(known) >= MOST:
                known.clear()
            entry = known[id(value)] = value, function(value)
        return entry[1]

    return find


def cache_newest(function: Callable[[Value], Found]) -> Callable[[Value], Found]:
    """Let a pure function of a value that nothing changes be computed once while it is called with the same object."""
    newest: list[tuple[Value, Found]] = []

    @wraps(function)
    def find(value: Value) -> Found:
        for known, found in newest:
            if known is value:
                return found
        found = function(value)
        newest[:] = [(value, found)]
        return found

    return find
