"""LoadMemo: loads that many placements have in common, computed once in a decision.

A planner compares hundreds of placements that differ in an operator or two. Most operators therefore have the loads that they had
before. Statistics, trees and operators are compared by identity, which is fast; the memo keeps them alive.
"""

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

Found = TypeVar("Found")
MOST = 1_024
"""Loads of an operator at all motes take some 10 kB, as those of readings do; then it begins anew."""


class LoadMemo:
    """Computes a value once for each key. Nothing that it returned may be changed."""

    def __init__(self) -> None:
        self._found: dict[Hashable, Any] = {}
        self._kept: dict[int, object] = {}

    def find(self, key: Hashable, parts: tuple[object, ...], compute: Callable[[], Found]) -> Found:
        """Return the value that was computed for an equal key and the same parts, or compute it."""
        whole = key, *map(id, parts)
        if whole not in self._found:
            if len(self._found) >= MOST:
                self._found.clear()
                self._kept.clear()
            for part in parts:
                self._kept[id(part)] = part
            self._found[whole] = compute()
        found: Found = self._found[whole]
        return found
