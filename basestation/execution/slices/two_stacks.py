"""Sliding: windows one after the other, each over slices that all have the same groups, put together of two.

The slices of a window are cut in two. Of those before the cut each is kept together with all that follow it up to the cut,
of those behind it all are kept as one; so the next window, which has lost slices in front and has got others at its end, is
one of the first and the last one. Where no slice is left before the cut, it is made at the end, and each slice is put
together with those behind it anew. That is three times for each slice, however many a window has.
"""

from itertools import pairwise

from innet.aggregates.state_bundle import can_merge


class TwoStacks:
    """Slices are told by their Cells, which are never changed; where one became another, all is put together anew."""

    def __init__(self):
        self._parts, self._bundles = [], []  # the slices of the window before, each as it came
        self._suffixes = []  # of those before the cut, with all that follow up to it; that of the first one is the last
        self._behind = None  # those behind the cut, as one

    def over(self, parts, bundle):
        """The Bundle of a window over slices, a part for each; None where these have not all the same groups.

        `bundle` makes that of the states of Cells, if they have one.
        """
        known = self._known(parts)
        if not _alike(parts[max(known - 1, 0) :]):
            return None
        new = [bundle(part) for part in parts[known:]]
        bundles = self._bundles + new
        if any(each is None or each.form != bundles[0].form for each in new) or not can_merge(bundles):
            return None
        self._parts, self._bundles = parts, bundles
        if not self._suffixes:
            self._cut()
        else:
            for each in new:
                self._behind = each if self._behind is None else self._behind.combine(each)
        return self._suffixes[-1] if self._behind is None else self._suffixes[-1].combine(self._behind)

    def _known(self, parts):
        """How many of these, from the first on, are those of the window before; what is not among them is let go of."""
        lost = next((at for at, part in enumerate(self._parts) if part is parts[0]), len(self._parts))
        known = self._parts[lost:]
        if len(known) > len(parts) or any(a is not b for a, b in zip(known, parts, strict=False)):
            lost, known = len(self._parts), []
        self._parts, self._bundles = known, self._bundles[lost:]
        del self._suffixes[max(len(self._suffixes) - lost, 0) :]
        return len(known)

    def _cut(self):
        self._behind = None
        for each in reversed(self._bundles):
            self._suffixes.append(each.combine(self._suffixes[-1]) if self._suffixes else each)


def _alike(parts):
    """Whether each is one slice, all have the same groups, and these stand in one order of entry."""
    return all(0 < part.width == len(part) for part in parts) and all(b.follows(a) for a, b in pairwise(parts))
