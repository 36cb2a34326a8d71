"""Coverage: which readings windows should have had, and which they had (SEMANTICS 12.3 and its corners in 14)."""

import numpy as np


def count_coverage(covers, windows):
    """{extent: (used, due)}, each an array with an entry for each window; None for a pushed extent.

    Used and due are told over the set of (site, tick) in all ranges of a window, each once.
    """
    by_extent = {}
    for each in covers:
        by_extent.setdefault(each.extent, []).append(each)
    return {name: _extent(by_extent[name], windows) for name in sorted(by_extent)}


def _extent(covers, windows):
    intake = covers[0].intake
    if intake is None:
        return None
    tallies = [each.tally for each in covers]
    if tallies[0] is not None and all(tally is tallies[0] for tally in tallies):
        return _alike(covers, tallies[0], windows)
    return _one_by_one(covers, windows)


def _alike(covers, tally, windows):
    """All ranges count alike: where they overlap, each goes on where those before it end."""
    owner, low, high = (np.concatenate([getattr(each, name) for each in covers]) for name in ("owner", "low", "high"))
    first, behind = tally.places(low, high)
    several = len(owner) > 1 and (owner[1:] <= owner[:-1]).any()
    if several:
        order = np.lexsort((first, owner))
        owner, first, behind = owner[order], first[order], behind[order]
        least = int(first.min())
        room = max(int(behind.max()), int(first.max())) - least + 1
        reached = np.maximum.accumulate(np.maximum(behind, first) - least + owner * room)
        start = np.maximum(first, np.concatenate([[least], reached[:-1] - owner[1:] * room + least]))
        first = start
    used, due = np.zeros(windows, np.int64), np.zeros(windows, np.int64)
    some = first < behind
    owner, first, behind = owner[some], first[some], behind[some]
    found, total = tally.between(first, behind), tally.sites * (behind - first)
    if several:
        np.add.at(used, owner, found)
        np.add.at(due, owner, total)
    else:
        used[owner], due[owner] = found, total
    return used, due


def _one_by_one(covers, windows):
    """Occurrences that count differently: every tick of every window is looked at."""
    holding = [{} for _ in range(windows)]
    for each in covers:
        begun, step = each.source.epochs.begun, each.interval
        for owner, low, high, at in zip(*(a.tolist() for a in (each.owner, each.low, each.high, each.at)), strict=True):
            first = max(low, begun)
            for tick in range(first + -first % step, high + 1, step):
                holding[owner].setdefault(tick, []).append((at, each))
    sites = len(covers[0].source.epochs.sites)
    used = [sum(_used(tick, held) for tick, held in at_tick.items()) for at_tick in holding]
    return np.array(used, np.int64), np.array([sites * len(at_tick) for at_tick in holding], np.int64)


def _used(tick, held):
    """How many sites are used at one tick: known, or excluded by every occurrence whose range holds it."""
    source = held[0][1].source
    known = np.logical_or.reduce([source.known_at(tick, at, held[0][1].scope) for at in {at for at, _ in held}])
    excluded = np.logical_and.reduce([each.excluded for _, each in held])
    return int((known | excluded).sum())
