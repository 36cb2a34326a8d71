"""Grouped: an index of the ranges that many queries ask of the columns of one stream (TelegraphCQ's grouped filters).

Queries that ask of the same columns are one form, which has an index (`index.py`). A few that came since it was made are
asked one by one. So the cost is that of looking values up and of what matches; queries that nothing lies in cost nothing.
"""

import numpy as np

from basestation.algebra.vector import cached_arange, constant
from basestation.execution.streams.predicate_index.range_index import RangeIndex

_NONE = np.empty(0, np.int64)
_FEW, _YOUNG = 4, 16
"""So many queries of a form are asked one by one: that is cheaper than to look them up; and so many beside an index, than to make
it anew."""


class GroupedFilter:
    """Who asks is known by a small number, the slot."""

    def __init__(self):
        self._forms = {}  # the columns that are asked of, those with one value first -> Form
        self._form_of = {}  # slot -> its Form; None of one in whose ranges nothing ever lies

    def __len__(self):
        return len(self._form_of)

    def add(self, slot, ranges):
        """`ranges` are by column; there is at least one."""
        if any(range_.is_empty for range_ in ranges.values()):
            self._form_of[slot] = None
            return
        key = tuple(sorted((not range_.is_point, column.id) for column, range_ in ranges.items()))
        self._form_of[slot] = form = self._forms.setdefault(key, FilterGroup(key))
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


class FilterGroup:
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
        few = _FEW if self._index is None else _YOUNG
        if len(self._young) > few or (self._index is not None and self._index.left > len(self._asked)):
            self._index = RangeIndex(self._points, list(self._asked), list(zip(*self._asked.values(), strict=True)))
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
            rows = cached_arange(length) if inside is None else inside.nonzero()[0]
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
    if range_.stop is not None:
        yield (vector.values < _scalar(range_.stop)).astype(bool, copy=False)


def _scalar(end):
    """numpy would cut off the nulls that a string ends with."""
    return np.array(end, object) if isinstance(end, str) else end
