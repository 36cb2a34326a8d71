"""Coverage: how many readings windows should have had, and how many they had (semantics 12.3 and its corners in 14)."""

import numpy as np

from acquisition.arrays import IntArray
from basestation.execution.columns.coverage_ranges import CoverageRanges
from basestation.progress.coverage_sums import CoverageSums


def count_coverage(covers: list[CoverageRanges], windows: int) -> dict[str, tuple[IntArray, IntArray] | None]:
    """{extent: (used, due)}, each an array with an entry for each window; None for a pushed extent.

    A (site, tick) that lies in several ranges of one window counts once.
    """
    by_extent: dict[str, list[CoverageRanges]] = {}
    for each in covers:
        by_extent.setdefault(each.extent, []).append(each)
    return {name: _count_extent(by_extent[name], windows) for name in sorted(by_extent)}


def _count_extent(covers: list[CoverageRanges], windows: int) -> tuple[IntArray, IntArray] | None:
    source = covers[0].intake
    if source is None:
        return None
    sums = [each.tally for each in covers]
    if sums[0] is not None and all(one is sums[0] for one in sums):
        return _count_by_sums(covers, sums[0], windows)
    return _count_tick_by_tick(covers, windows)


def _count_by_sums(covers: list[CoverageRanges], tally: CoverageSums, windows: int) -> tuple[IntArray, IntArray]:
    """Count from sums by tick, which all ranges share. Where ranges overlap, each continues where those before it end."""
    owner, low, high = (np.concatenate([getattr(each, name) for each in covers]) for name in ("owner", "low", "high"))
    first, end = tally.places(low, high)
    overlap = len(owner) > 1 and (owner[1:] <= owner[:-1]).any()
    if overlap:
        order = np.lexsort((first, owner))
        owner, first, end = owner[order], first[order], end[order]
        least = int(first.min())
        room = max(int(end.max()), int(first.max())) - least + 1
        reached = np.maximum.accumulate(np.maximum(end, first) - least + owner * room)
        start = np.maximum(first, np.concatenate([[least], reached[:-1] - owner[1:] * room + least]))
        first = start
    used, due = np.zeros(windows, np.int64), np.zeros(windows, np.int64)
    nonempty = first < end
    owner, first, end = owner[nonempty], first[nonempty], end[nonempty]
    found, total = tally.between(first, end), tally.sites * (end - first)
    if overlap:
        np.add.at(used, owner, found)
        np.add.at(due, owner, total)
    else:
        used[owner], due[owner] = found, total
    return used, due


def _count_tick_by_tick(covers: list[CoverageRanges], windows: int) -> tuple[IntArray, IntArray]:
    """Count tick by tick: the ranges do not count alike, so sums by tick do not tell."""
    holding: list[dict[int, list[tuple[int, CoverageRanges]]]] = [{} for _ in range(windows)]
    for each in covers:
        begun, step = each.source.epochs.begun, each.interval
        for owner, low, high, at in zip(*(a.tolist() for a in (each.owner, each.low, each.high, each.at)), strict=True):
            first = max(low, begun)
            for tick in range(first + -first % step, high + 1, step):
                holding[owner].setdefault(tick, []).append((at, each))
    sites = len(covers[0].source.epochs.sites)
    used = [sum(_count_used(tick, held) for tick, held in at_tick.items()) for at_tick in holding]
    return np.array(used, np.int64), np.array([sites * len(at_tick) for at_tick in holding], np.int64)


def _count_used(tick: int, held: list[tuple[int, CoverageRanges]]) -> int:
    """The number of sites used at one tick: known, or excluded by every range that holds the tick."""
    source = held[0][1].source
    known = np.logical_or.reduce([source.known_at(tick, at, held[0][1].scope) for at in {at for at, _ in held}])
    excluded = np.logical_and.reduce([each.excluded for _, each in held])
    return int((known | excluded).sum())
