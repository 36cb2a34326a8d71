"""Sliding: windows one after the other, each over slices that all have the same groups, put together of two.

The slices of a window are cut in two. Of those before the cut each is kept together with all that follow it up to the cut,
of those behind it all are kept as one; so the next window, which has lost slices in front and has got others at its end, is
one of the first and the last one. Where no slice is left before the cut, it is made at the end, and each slice is put
together with those behind it anew. That is three times for each slice, however many a window has.
"""

from itertools import pairwise


class Sliding:
    """Slices are told by their Cells, which are never changed; where one became another, all is put together anew."""

    def __init__(self):
        self._before, self._suffixes = (
            [],
            [],
        )  # the slices before the cut, the last one first, and each with those up to the cut
        self._behind, self._whole = [], None  # those behind the cut, and all of them

    def over(self, parts, merged):
        """All groups of a window over slices, a part for each; None where these have not all the same groups.

        `merged` makes Cells of two, group by group.
        """
        count = self._known(parts)
        if not _alike(parts[max(count - 1, 0) :]):
            return None
        if not count:
            self._cut(parts, merged)
        for part in parts[count:] if count else ():
            self._behind.append(part)
            self._whole = part if self._whole is None else merged(self._whole, part)
        return self._suffixes[-1] if self._whole is None else merged(self._suffixes[-1], self._whole)

    def _known(self, parts):
        """Of how many of these, from the first on, it is known what they are together; all else is let go of."""
        while self._before and self._before[-1] is not parts[0]:
            self._before.pop()
            self._suffixes.pop()
        known = [*reversed(self._before), *self._behind]
        if len(known) > len(parts) or any(a is not b for a, b in zip(known, parts, strict=False)):
            self._before, self._suffixes = [], []
        return len(known) if self._before else 0

    def _cut(self, parts, merged):
        self._before, self._suffixes = parts[::-1], []
        for part in self._before:
            self._suffixes.append(merged(part, self._suffixes[-1]) if self._suffixes else part)
        self._behind, self._whole = [], None


def _alike(parts):
    """Whether each is one slice, all have the same groups, and these stand in one order of entry."""
    return all(len(part) == part.width for part in parts) and all(b.follows(a) for a, b in pairwise(parts))
