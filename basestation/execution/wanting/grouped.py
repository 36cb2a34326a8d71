"""Grouped: an index of the ranges that many queries ask of the columns of one stream (TelegraphCQ's grouped filters).

The ends of all ranges cut the values of a column into pieces, and a value finds its piece by bisection. Queries that ask
of the same columns are one form. What all of them name by one value, such as a site, comes first: it leads to those that
name that value. The next column's pieces, among those, are places of a line on which each query is a span (`spans.py`).
What is asked of further columns is asked of what was found. So the cost is that of bisection and of what matches; queries
that nothing lies in cost nothing.
"""

from bisect import bisect_right

import numpy as np

from basestation.algebra.vector import by_identity, constant
from basestation.execution.wanting.spans import Spans

_NONE = np.empty(0, np.int64)
_FEW = 16
"""So many queries of a form are asked one by one: that is cheaper than to look for pieces, or to make an index anew."""


class Grouped:
    """Who asks is known by a small number, the slot."""

    def __init__(self):
        self._forms = {}  # the columns that are asked of, those with one value first -> Form
        self._form_of = {}  # slot -> its Form; None of one in whose ranges nothing ever lies

    def __len__(self):
        return len(self._form_of)

    def add(self, slot, ranges):
        """`ranges` are by column; there is at least one."""
        if any(range_.empty for range_ in ranges.values()):
            self._form_of[slot] = None
            return
        key = tuple(sorted((not range_.point, column.id) for column, range_ in ranges.items()))
        self._form_of[slot] = form = self._forms.setdefault(key, Form(key))
        by_id = {column.id: range_ for column, range_ in ranges.items()}
        form.add(slot, tuple(by_id[id_] for _, id_ in key))

    def remove(self, slot):
        form = self._form_of.pop(slot)
        if form is not None:
            form.remove(slot)
            if not len(form):
                del self._forms[form.key]

    def any(self, columns, length):
        """A mask of the rows that lie in all the ranges of anybody."""
        found = np.zeros(length, bool)
        for form in self._forms.values() if length else ():
            found[form.any(columns, length)] = True
        return found

    def of(self, columns, length):
        """(slots, rows) of what lies in all the ranges of whom, by slot and then by row; `columns` are Vectors by id."""
        parts = [form.of(columns, length) for form in self._forms.values()] if length else []
        if len(parts) == 1 and parts[0][2]:
            return parts[0][:2]
        slots = np.concatenate([_NONE, *(part[0] for part in parts)])
        rows = np.concatenate([_NONE, *(part[1] for part in parts)])
        both = slots * length + rows  # sorted as one number each
        both.sort()
        slots = both // max(length, 1)
        return slots, both - slots * length


class Form:
    """Queries that ask of the same columns, in the same order. Those that are not in the index yet are asked one by one."""

    def __init__(self, key):
        self.key = key
        self._points = sum(not wide for wide, _ in key)  # how many columns come first that are asked for one value
        self._columns = [id_ for _, id_ in key]
        self._asked = {}  # slot -> its ranges, by column
        self._index, self._young = None, {}

    def __len__(self):
        return len(self._asked)

    def add(self, slot, ranges):
        self._asked[slot] = self._young[slot] = ranges

    def remove(self, slot):
        del self._asked[slot]
        if self._young.pop(slot, None) is None:
            self._index.leave(slot)

    def __getstate__(self):
        return vars(self) | {"_index": None, "_young": dict(self._asked)}

    def _refresh(self):
        """Make the index anew where too many are not in it, or have left it."""
        if len(self._young) > _FEW or (self._index is not None and self._index.left > len(self._asked)):
            self._index = Index(self._points, list(self._asked), list(zip(*self._asked.values(), strict=True)))
            self._young = {}

    def any(self, columns, length):
        """The rows of what lies in anybody's ranges, in no order, some of them several times."""
        self._refresh()
        vectors = [columns[id_] for id_ in self._columns]
        _, rows = self._one_by_one(vectors, length)
        return rows if self._index is None else np.concatenate([rows, self._index.any(vectors, length)])

    def of(self, columns, length):
        """(slots, rows, whether they are sorted)."""
        self._refresh()
        vectors = [columns[id_] for id_ in self._columns]
        young = self._one_by_one(vectors, length)
        if self._index is None:
            return *young, True
        parts = zip(young, self._index.of(vectors, length), strict=True)
        return *(np.concatenate(part) for part in parts), False

    def _one_by_one(self, vectors, length):
        found = []
        for slot in sorted(self._young):
            inside = None
            for vector, range_ in zip(vectors, self._young[slot], strict=True):
                for mask in _inside(vector, range_):
                    inside = mask if inside is None else inside & mask
            rows = np.arange(length) if inside is None else np.flatnonzero(inside)
            found.append((constant(slot, len(rows)), rows))
        if len(found) == 1:
            return found[0]
        slots, rows = ([_NONE, *part] for part in zip(*found, strict=True)) if found else ([_NONE], [_NONE])
        return np.concatenate(slots), np.concatenate(rows)


def _inside(vector, range_):
    """Masks all of which hold where values lie in a range."""
    if vector.valid is not None:
        yield vector.valid
    if range_.begin is not None:
        yield (vector.values >= _scalar(range_.begin)).astype(bool, copy=False)
    if range_.behind is not None:
        yield (vector.values < _scalar(range_.behind)).astype(bool, copy=False)


def _scalar(end):
    """numpy would cut off the nulls that a string ends with."""
    return np.array(end, object) if isinstance(end, str) else end


class Cuts:
    """The ends of ranges of one column. The place of a value is how many of them are not above it; that of null is -1."""

    def __init__(self, ranges):
        self._ends = sorted({end for each in ranges for end in (each.begin, each.behind) if end is not None})
        self._strings = any(isinstance(end, str) for end in self._ends[:1])
        self._sorted = None if self._strings else np.array(self._ends)

    def __len__(self):
        return len(self._ends)

    def bounds(self, ranges):
        """The places from which on, and up to which, ranges reach."""
        place = {end: at for at, end in enumerate(self._ends, 1)}
        begin = [0 if each.begin is None else place[each.begin] for each in ranges]
        behind = [len(self) + 1 if each.behind is None else place[each.behind] for each in ranges]
        return np.array(begin), np.array(behind)

    def places(self, vector):
        if self._strings:
            some, which = by_identity(vector.values)
            found = np.array([bisect_right(self._ends, string) for string in some], np.int64)[which]
        else:
            found = np.searchsorted(self._sorted, vector.values, "right")
        return found if vector.valid is None else np.where(vector.valid, found, -1)


class Index:
    """What is looked up for the queries of a form. It is made anew when many others have come, or have left."""

    def __init__(self, points, slots, ranges):
        """`ranges` has those of all slots for each column."""
        self._slots = np.array(slots, np.int64)
        self._at = {slot: at for at, slot in enumerate(slots)}
        self._there, self.left = np.ones(len(slots), bool), 0
        self._cuts = [Cuts(of) for of in ranges]
        bounds = [cuts.bounds(of) for cuts, of in zip(self._cuts, ranges, strict=True)]
        self._points, self._known = points, []
        group = np.zeros(len(slots), np.int64)
        for cuts, (begin, _) in zip(self._cuts, bounds[:points], strict=False):
            known, group = np.unique(group * (len(cuts) + 1) + begin, return_inverse=True)
            self._known.append(known)
        self._further = list(zip(range(points + 1, len(ranges)), bounds[points + 1 :], strict=True))
        wide = len(ranges) > points
        pieces = len(self._cuts[points]) + 1 if wide else 1
        begin, behind = bounds[points] if wide else (np.zeros_like(group), np.ones_like(group))
        begin, behind = group * pieces + begin, group * pieces + behind
        self._pieces = pieces
        self._starts = np.unique(np.concatenate([np.arange(group.max() + 1) * pieces, begin, behind]))
        edges = np.zeros(len(self._starts) + 1, np.int64)
        for where, more in ((begin, 1), (behind, -1)):
            np.add.at(edges, np.searchsorted(self._starts, where), more)
        self._covered = np.cumsum(edges) > 0  # by piece: whether a span holds it
        self._spans = Spans(*(np.searchsorted(self._starts, each) for each in (begin, behind)), len(self._starts))

    def any(self, vectors, length):
        """The rows of what lies in anybody's ranges; what is asked of further columns, and who has left, is looked up."""
        if self._further or self.left:
            return self.of(vectors, length)[1]
        rows, piece = self._pieces_of(vectors, length)
        return rows[self._covered[piece]]

    def _pieces_of(self, vectors, length):
        """(rows, the piece in which each of them lies), of those whose values are asked for at all."""
        rows, group = None, np.zeros(length, np.int64)
        for vector, cuts, known in zip(vectors, self._cuts, self._known, strict=False):
            place = cuts.places(vector if rows is None else vector.take(rows))
            wanted = np.where(place < 0, -1, group * (len(cuts) + 1) + place)
            group = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
            hit = np.flatnonzero(known[group] == wanted)
            rows, group = hit if rows is None else rows[hit], group[hit]
        if len(self._cuts) > self._points:
            vector = vectors[self._points]
            place = self._cuts[self._points].places(vector if rows is None else vector.take(rows))
            hit = np.flatnonzero(place >= 0)
            rows, group, place = hit if rows is None else rows[hit], group[hit], place[hit]
        else:
            place = 0
        return rows, np.searchsorted(self._starts, group * self._pieces + place, "right") - 1

    def of(self, vectors, length):
        """(slots, rows) of what lies where, in no order."""
        rows, piece = self._pieces_of(vectors, length)
        where, spans = self._spans.of(piece)
        rows = rows[where]
        for at, (begin, behind) in self._further:
            place = self._cuts[at].places(vectors[at])[rows]
            inside = (begin[spans] <= place) & (place < behind[spans])
            rows, spans = rows[inside], spans[inside]
        if self.left:
            there = self._there[spans]
            rows, spans = rows[there], spans[there]
        return self._slots[spans], rows

    def leave(self, slot):
        self._there[self._at.pop(slot)] = False
        self.left += 1
