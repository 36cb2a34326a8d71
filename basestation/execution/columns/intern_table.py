"""Kinds: things that are alike by a signature, each there once and known by a number from 1, for as long as it is used."""

from collections import Counter


class InternTable:
    def __init__(self):
        self._numbers, self._things, self._uses = {}, {}, Counter()
        self._next = 1

    def __len__(self):
        return len(self._things)

    def __getitem__(self, number):
        return self._things[number][1]

    def items(self):
        """(number, thing) of all."""
        return [(number, thing) for number, (_, thing) in self._things.items()]

    def take(self, signature, thing):
        """The number of a thing that is like this one: it is used once more."""
        if signature not in self._numbers:
            self._numbers[signature], self._things[self._next] = self._next, (signature, thing)
            self._next += 1
        number = self._numbers[signature]
        self._uses[number] += 1
        return number

    def release(self, number):
        """It is used once less."""
        self._uses[number] -= 1
        if not self._uses[number]:
            signature, _ = self._things.pop(number)
            del self._numbers[signature], self._uses[number]
