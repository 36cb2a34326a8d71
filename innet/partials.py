"""Partial: what motes hand upwards instead of readings: the state of one group over part of one slice, and who is in it.

A partial is the state of the very aggregate objects that the base station computes with (`innet.aggregates`), in the
fields of their layout, which are integers. Partials of the same group and slice merge in any order to the same; each
reading is in one of them only, so nothing counts twice, and one that is lost takes nothing along but its own readings.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from innet.aggregates import create_aggregate
from innet.aggregates.protocol import StateField
from innet.aggregates.state_fields import merge_fields
from innet.operators.slices import SlicePattern

MAX_SLOTS = 128
"""Up to so many sites a partial says who contributed; with more, how many did."""

Key = tuple[int | None, ...]
Fields = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PartialShape:
    """What base station and motes agreed on about the partials of one aggregation, with the program.

    `slots` are the sites that may contribute; a site's place among them is its bit. `keys` is the number of group
    columns, `kinds` are the aggregates whose states are kept (names of `innet.aggregates`, over integers).
    """

    aggregation: int
    slots: tuple[int, ...]
    keys: int
    kinds: tuple[str, ...]
    slices: SlicePattern

    @property
    def layouts(self) -> tuple[tuple[StateField, ...], ...]:
        return tuple(create_aggregate(kind, "integer").layout() for kind in self.kinds)

    @property
    def has_bitmap(self) -> bool:
        return len(self.slots) <= MAX_SLOTS

    @property
    def group_bytes(self) -> int:
        """What a mote needs to keep one group of a slice: which, who, how many readings, and the states."""
        who = -(-len(self.slots) // 8) if self.has_bitmap else 4
        bits = sum(field.bits for layout in self.layouts for field in layout)
        return 4 + 5 * self.keys + who + 4 + -(-bits // 8)

    def who(self, site: int) -> int:
        """The contributors, if a site is the only one."""
        return 1 << self.slots.index(site) if self.has_bitmap else 1


@dataclass(frozen=True, slots=True)
class Partial:
    """What is known of one group in one slice. `who` has the bits of the contributors, or is their number.

    `states` has the fields of each state in the order of its layout. A bare partial has neither group nor states: it
    is of readings that were filtered, and still count as heard.
    """

    slice: int
    who: int
    readings: int
    group: Key = ()
    states: tuple[Fields, ...] | None = None

    @property
    def bare(self) -> bool:
        return self.states is None


def merge_partials(a: Partial, b: Partial, kinds: Sequence[str], bitmap: bool) -> Partial:
    """Two partials of the same slice and group as one.

    With a bitmap, a site that is in both is in the one once; counted sites are added, so a site that is in both counts
    twice: `who` is then an upper bound, and `readings` is what coverage is made of.
    """
    states = None
    if a.states is not None and b.states is not None:
        pairs = zip(kinds, a.states, b.states, strict=True)
        states = tuple(merge_fields(kind, left, right) for kind, left, right in pairs)
    who = a.who | b.who if bitmap else a.who + b.who
    return Partial(a.slice, who, a.readings + b.readings, a.group, states)
