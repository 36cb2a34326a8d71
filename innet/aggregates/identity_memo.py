"""IdentityMemo: calls a function once per combination of arrays."""

from collections.abc import Callable
from typing import Any, TypeVar

from acquisition.arrays import AnyArray

Made = TypeVar("Made")


class IdentityMemo:
    """Calls a function once per combination of arrays, by identity.

    States that share an array, such as a count, thus go on sharing it.
    """

    def __init__(self) -> None:
        self._made: dict[tuple[object, ...], tuple[Any, tuple[AnyArray, ...]]] = {}

    def __call__(self, make: Callable[..., Made], *arrays: AnyArray) -> Made:
        """Return make(*arrays), computed once."""
        key = make, *map(id, arrays)
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = make(*arrays), arrays  # keeps the arrays alive, so that no other gets their id
        made: Made = found[0]
        return made
