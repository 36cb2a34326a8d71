"""InternTable: equal things are stored once, under a number from 1 on, for as long as they are used."""

from collections import Counter
from collections.abc import Hashable
from typing import Generic, TypeVar

ThingT = TypeVar("ThingT")


class InternTable(Generic[ThingT]):
    """Counts the uses of each thing. Two things are equal if their signatures are.

    With `reuses`, the numbers of dropped things are given to new ones, once the owner calls `recycle`.
    """

    def __init__(self, reuses: bool = False) -> None:
        self._reuses = reuses
        self.dropped: list[int] = []
        """The numbers of dropped things that were not recycled, if numbers are reused."""
        self._free: list[int] = []
        self._numbers: dict[Hashable, int] = {}  # by signature
        self._things: dict[int, tuple[Hashable, ThingT]] = {}
        self._uses: Counter[int] = Counter()
        self._next = 1

    def __len__(self) -> int:
        return len(self._things)

    def __getitem__(self, number: int) -> ThingT:
        return self._things[number][1]

    def items(self) -> list[tuple[int, ThingT]]:
        """Return (number, thing) of all."""
        return [(number, thing) for number, (_, thing) in self._things.items()]

    def number_of(self, signature: Hashable) -> int:
        """Return the number of the thing with this signature."""
        return self._numbers[signature]

    def take(self, signature: Hashable, thing: ThingT) -> int:
        """Add a use of the thing with this signature, which is stored if it is new, and return its number."""
        if signature not in self._numbers:
            number = self._free.pop() if self._free else self._next
            self._next = max(self._next, number + 1)
            self._numbers[signature], self._things[number] = number, (signature, thing)
        number = self._numbers[signature]
        self._uses[number] += 1
        return number

    def release(self, number: int) -> None:
        """End one use; the last one drops the thing."""
        self._uses[number] -= 1
        if not self._uses[number]:
            signature, _ = self._things.pop(number)
            del self._numbers[signature], self._uses[number]
            if self._reuses:
                self.dropped.append(number)

    def recycle(self) -> None:
        """Let new things take the numbers of dropped ones; the owner has no state under these any more."""
        self._free += self.dropped
        self.dropped = []
