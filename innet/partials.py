"""Partial aggregates as motes send them: the state of one group in one slice, with its contributors.

A partial holds the states of the aggregate objects that the base station uses (`innet.aggregates`), as the integer
fields of their layouts. Partials of the same group and slice merge in any order to the same result. Each reading is in
one partial only, so nothing counts twice, and a lost partial loses its own readings only.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from innet.aggregates import mote_layout
from innet.aggregates.protocol import StateField
from innet.aggregates.state_fields import merge_fields
from innet.operators.slices import SlicePattern

MAX_SLOTS = 128
"""Up to this many sites, a partial names its contributors by a bitmap; above it, it counts them."""

Key = tuple[int | None, ...]
Fields = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PartialShape:
    """The layout of the partials of one aggregation, agreed between base station and motes with the program.

    `aggregation` is its number in frames. `slots` are the sites that may contribute; the index of a site is its bit.
    `keys` is the number of group columns. `kinds` are the aggregates with a state (names of `innet.aggregates`, over
    integers). `slices` is where the stream is cut.
    """

    aggregation: int
    slots: tuple[int, ...]
    keys: int
    kinds: tuple[str, ...]
    slices: SlicePattern

    @property
    def layouts(self) -> tuple[tuple[StateField, ...], ...]:
        """The fields of each state, in the order of `kinds`."""
        return tuple(mote_layout(kind) for kind in self.kinds)

    @property
    def has_bitmap(self) -> bool:
        """Whether partials name their contributors; otherwise they count them."""
        return len(self.slots) <= MAX_SLOTS

    @property
    def group_bytes(self) -> int:
        """Bytes of RAM that a mote needs for one group of one slice: slice, keys, contributors, readings, states."""
        contributors = -(-len(self.slots) // 8) if self.has_bitmap else 4
        bits = sum(field.bits for layout in self.layouts for field in layout)
        return 4 + 5 * self.keys + contributors + 4 + -(-bits // 8)


@dataclass(frozen=True, slots=True)
class Partial:
    """The partial aggregate of one group in one slice.

    `contributors` is the bitmap of the contributing sites, or their number. `readings` counts the readings inside. `states` has
    the fields of each state, in the order of its layout. A bare partial has neither group nor states: it accounts for
    filtered readings, which count for coverage.
    """

    slice: int
    contributors: int
    readings: int
    group: Key = ()
    states: tuple[Fields, ...] | None = None

    @property
    def bare(self) -> bool:
        """Whether it accounts for filtered readings only."""
        return self.states is None


def merge_partials(a: Partial, b: Partial, kinds: Sequence[str], bitmap: bool) -> Partial:
    """Merge two partials of the same slice and group.

    A bitmap holds a site of both partials once. Without a bitmap (`bitmap` is False) the numbers are added, so the number
    of contributors is an upper bound; coverage uses `readings`, which is exact.
    """
    states = None
    if a.states is not None and b.states is not None:
        pairs = zip(kinds, a.states, b.states, strict=True)
        states = tuple(merge_fields(kind, left, right) for kind, left, right in pairs)
    contributors = a.contributors | b.contributors if bitmap else a.contributors + b.contributors
    return Partial(a.slice, contributors, a.readings + b.readings, a.group, states)
