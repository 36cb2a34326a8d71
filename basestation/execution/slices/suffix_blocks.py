"""Suffix blocks: windows that end with the same slice and begin with any, each merged from three states.

The slices are cut into blocks. A block keeps each of its slices merged with all that follow it in the block. For each block, all
blocks behind it are kept as one, and so are the slices after the last block, which are open:

    slices     [ block 0      ][ block 1      ][ block 2      ][ open
    kept as    a suffix each   a suffix each   a suffix each     one
               [ behind 0     : one                           ]
    window            [ suffix ][ behind 0                    ][ open

When as many slices are open as there are blocks, they become the next block. So a slice is merged some three times, however many
windows there are. Slices are spread out to all groups first, so the windows of one end are merged together, group by group.
"""

from collections.abc import Sequence
from operator import is_

import numpy as np

from acquisition.arrays import IntArray
from basestation.algebra.record import record
from basestation.algebra.vector import cached_arange, constant
from basestation.execution.columns.cells import Cells
from basestation.execution.columns.growable_array import spare_length
from basestation.execution.columns.window_batch import NEVER
from basestation.execution.slices.slice_folder import SliceFolder


@record
class SuffixBlock:
    """Consecutive slices: `parts` has each as it came, `suffixes` each merged with those behind it."""

    parts: list[Cells]
    suffixes: Cells


class SuffixBlocks:
    """Knows slices by their Cells, which never change: where some were replaced, only their blocks are merged again."""

    def __init__(self, folder: SliceFolder) -> None:
        self._folder = folder
        self._room = 0  # the number of groups that there is room for
        self.merges = 0
        """How often slices, or what was merged of them, were merged."""
        self._clear()

    def _clear(self) -> None:
        self._blocks: list[SuffixBlock] = []
        self._dropped = 0  # how many slices of the first block are in no window any more
        self._suffixes: Cells | None = None  # those of all blocks; None: to be collected
        self._behind: Cells | None = None  # for each block, all blocks behind it, merged
        self._open_parts: list[Cells] = []  # the slices behind the last block
        self._open: Cells | None = None  # the same, merged

    def over(self, parts: list[Cells], begin: IntArray, width: int) -> Cells:
        """The cells of the windows from parts[begin[i]] on, `width` for each: those of the first groups.

        `begin` ascends. A window that begins behind all parts is blank.
        """
        if width > self._room:
            self._room = spare_length(width)
            self._clear()
        self._follow(parts)
        groups, rows = cached_arange(width), begin + self._dropped
        first_open = sum(len(block.parts) for block in self._blocks)
        split = int(np.searchsorted(rows, first_open))
        found = []
        if split:
            found.append(self._merge_closed(rows[:split], groups))
        if split < len(rows):
            found.append(self._merge_open(rows[split:] - first_open, groups))
        return self._folder.concatenate(found)

    def _merge_closed(self, rows: IntArray, groups: IntArray) -> Cells:
        """The windows that begin in blocks."""
        suffixes, rest = self._collect()
        if self._open is not None:
            repeated = self._take(self._open, np.zeros(len(self._blocks), np.int64), cached_arange(self._room))
            rest = self._combine(rest, repeated)
        ends = np.cumsum([len(block.parts) for block in self._blocks])
        block = np.searchsorted(ends, rows, "right")
        return self._combine(self._take(suffixes, rows, groups), self._take(rest, block, groups))

    def _merge_open(self, rows: IntArray, groups: IntArray) -> Cells:
        """The windows that begin behind all blocks."""
        first = int(rows[0])
        suffixes = [*self._merge_suffixes(self._open_parts[first:]), self._blank()]
        return self._take(self._folder.concatenate(suffixes), rows - first, groups)

    def _take(self, cells: Cells, rows: IntArray, groups: IntArray) -> Cells:
        """Some groups of some rows of cells that were spread out."""
        return cells.take(((rows * self._room)[:, None] + groups).ravel())

    def _spread(self, part: Cells) -> Cells:
        return self._folder.spread(part, self._room)

    def _combine(self, a: Cells, b: Cells) -> Cells:
        self.merges += 1
        return self._folder.combine(a, b)

    def _blank(self) -> Cells:
        """No slice, spread out."""
        never = constant(NEVER, self._room)
        states = [function.init(self._room) for function in self._folder.registry.functions]
        return Cells(constant(0, self._room), cached_arange(self._room), never, never, states)

    # --- slices come and go --------------------------------------------------------------------------------------------

    def _follow(self, parts: list[Cells]) -> None:
        """Know these slices, and no others."""
        self._drop_before(int(parts[0].slice[0]))
        known = self._keep_known(parts)
        for part in parts[known:]:
            dense = self._spread(part)
            self._open_parts.append(part)
            self._open = dense if self._open is None else self._combine(self._open, dense)
            if len(self._open_parts) > len(self._blocks):
                self._blocks.append(self._make_block(self._open_parts))
                self._open_parts, self._open, self._suffixes = [], None, None

    def _drop_before(self, number: int) -> None:
        """Forget the slices before one. The rest of a block needs no merge."""
        while self._blocks and self._blocks[0].parts[-1].slice[0] < number:
            del self._blocks[0]
            self._dropped, self._suffixes = 0, None
        if self._blocks:
            self._dropped = sum(part.slice[0] < number for part in self._blocks[0].parts)

    def _keep_known(self, parts: list[Cells]) -> int:
        """Keep what was merged of the slices that are the same; return how many of them there are, from the first on.

        A block with other states of the same slices is merged again. Behind slices that come or go in the middle all is.
        """
        at, skip = 0, self._dropped
        for place, block in enumerate(self._blocks):
            held = block.parts[skip:]
            now = parts[at : at + len(held)]
            if not _are_same(held, now):
                if _numbers(held) != _numbers(now):
                    del self._blocks[place:]
                    self._open_parts, self._open, self._suffixes = [], None, None
                    self._dropped = self._dropped if place else 0
                    return at
                self._blocks[place], self._suffixes = self._make_block(now), None
                self._dropped = self._dropped if place else 0
            at, skip = at + len(held), 0
        now = parts[at : at + len(self._open_parts)]
        if not _are_same(self._open_parts, now):
            self._open_parts, self._open = [], None
        return at + len(self._open_parts)

    def _make_block(self, parts: list[Cells]) -> SuffixBlock:
        return SuffixBlock(parts, self._folder.concatenate(self._merge_suffixes(parts)))

    def _merge_suffixes(self, parts: list[Cells]) -> list[Cells]:
        """Each slice spread out and merged with those behind it."""
        found: list[Cells] = []
        for part in reversed(parts):
            dense = self._spread(part)
            found.append(self._combine(dense, found[-1]) if found else dense)
        return found[::-1]

    def _collect(self) -> tuple[Cells, Cells]:
        """(the suffixes of all blocks, for each block all blocks behind it): collected again after blocks came or went."""
        if self._suffixes is None or self._behind is None:
            self._suffixes = self._folder.concatenate([block.suffixes for block in self._blocks])
            behind, at = [self._blank()], len(self._suffixes)
            for place, block in reversed(list(enumerate(self._blocks))):  # its suffixes become a part of those of all
                suffixes = self._suffixes.take(slice(at - len(block.suffixes), at))
                self._blocks[place] = SuffixBlock(block.parts, suffixes)
                behind.append(self._combine(suffixes.take(slice(0, self._room)), behind[-1]))
                at -= len(suffixes)
            self._behind = self._folder.concatenate(behind[-2::-1])
        return self._suffixes, self._behind


def _are_same(held: Sequence[Cells], now: Sequence[Cells]) -> bool:
    return len(held) == len(now) and all(map(is_, held, now))


def _numbers(parts: Sequence[Cells]) -> list[int]:
    return [int(part.slice[0]) for part in parts]
