"""The current answer of a query: its updates, consolidated window by window."""

from collections.abc import Iterable

from basestation.revisions.update import Update, consolidate


def current(updates: Iterable[Update]) -> list[Update]:
    """One update per window, in the order of ticks: what the window holds now, with its latest revision's coverage."""
    windows: dict[tuple[int, int], list[Update]] = {}
    for update in updates:
        windows.setdefault((update.tick, update.n), []).append(update)
    return [consolidate(windows[key]) for key in sorted(windows)]
