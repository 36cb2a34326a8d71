"""CurrentAnswer: the windows or tuples of a query after all their revisions, those of the newest ticks or of a range of time.

Its rows are those of `basestation.results.flat` without `_number` and `_weight`: each is there once.
"""

import json
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from acquisition.ticks import tick_of_rfc3339
from basestation.rest.control import JsonObject, ResultPage
from basestation.rest.result_formats import columns_of, names_of
from basestation.results.flat import flat_objects

WindowKey = tuple[int, int, int | tuple[int, ...]]
"""Tick, number and iterations of a window: windows of loops may share tick and number."""


class CurrentAnswer:
    """The sum of updates that come in the order of their numbers; of equal rows a revision removes the last one (semantics 12.1).

    It holds the newest `last` windows, or the tuples of the newest `last` ticks, whose times in ms are within `begin_ms` and
    `until_ms`, both included. A window whose first answer does not come is left out. Where updates came `before` these, so are the
    tuples up to the first one's tick, unless there are no others: some of that tick may have come before.
    """

    def __init__(
        self, last: int, begin_ms: int | None = None, until_ms: int | None = None, before: bool = False
    ) -> None:
        self._last, self._begin_ms, self._until_ms, self._before = last, begin_ms, until_ms, before
        self._windows: dict[WindowKey, dict[str, Any]] = {}
        self._tuples: dict[int, JsonObject] = {}
        self._first_tick: int | None = None
        self._is_cut = False

    def add(self, lines: Iterable[str]) -> None:
        """Add updates as JSON texts."""
        for line in map(json.loads, lines):
            if line["type"] == "tuple":
                self._add_tuple(line)
            elif line["type"] == "window":
                self._add_window(line)
        if len(self._windows) > 2 * self._last:
            self._windows = dict(_newest(self._windows, self._last))
            self._is_cut = True
        if len(self._ticks()) > 2 * self._last:
            self._tuples = {row["index"]: row for row in self._newest_tuples()}
            self._is_cut = True

    def as_json(self) -> dict[str, Any]:
        """The windows and tuples, the oldest first; `truncated` where older ones of the range are left out."""
        is_cut = self._is_cut or len(self._windows) > self._last or len(self._ticks()) > self._last
        return {
            "windows": [window for _, window in _newest(self._windows, self._last)],
            "tuples": self._newest_tuples(),
            "truncated": is_cut,
        }

    def _ticks(self) -> list[int]:
        """The ticks of the tuples, each once, the oldest first."""
        return sorted({row["tick"] for row in self._tuples.values()})

    def _newest_tuples(self) -> list[JsonObject]:
        ticks = self._ticks()
        if self._before and self._first_tick is not None:
            ticks = [tick for tick in ticks if tick > self._first_tick] or ticks
        kept = set(ticks[-self._last :])
        found = [row for row in self._tuples.values() if row["tick"] in kept]
        return sorted(found, key=lambda row: (row["tick"], row["index"]))

    def _add_tuple(self, line: JsonObject) -> None:
        if self._first_tick is None and line["weight"] > 0:
            self._first_tick = line["tick"]
        if line["weight"] < 0:
            self._tuples.pop(line["index"], None)
        elif self._is_within(line):
            self._tuples[line["index"]] = _without(line, ("type", "query", "number", "weight"))

    def _add_window(self, line: JsonObject) -> None:
        t = line.get("t", 0)
        key = line["tick"], line["n"], tuple(t) if isinstance(t, list) else t
        if line["revision"] == 0:
            if self._is_within(line):
                self._windows[key] = _without(line, ("type", "query", "number"))
        elif key in self._windows:
            rows = _revise(self._windows[key]["rows"], line["removed"], line["added"])
            self._windows[key] |= {"revision": line["revision"], "coverage": line["coverage"], "rows": rows}

    def _is_within(self, line: JsonObject) -> bool:
        if self._begin_ms is None and self._until_ms is None:
            return True
        at_ms = tick_of_rfc3339(line["time"], 1)
        return (self._begin_ms is None or self._begin_ms <= at_ms) and (
            self._until_ms is None or at_ms <= self._until_ms
        )


def current_columns(page: ResultPage) -> dict[str, str]:
    """Name and type of each column of the rows of a current answer."""
    return {name: kind for name, kind in columns_of(page).items() if name not in ("_number", "_weight")}


def current_rows(page: ResultPage, found: JsonObject) -> Iterator[JsonObject]:
    """The rows of a current answer as `CurrentAnswer.as_json` has it; `page` has the schema."""
    names = names_of(page)
    for kind in "window", "tuple":
        for each in found[f"{kind}s"]:
            line = {"type": kind, "query": page.query, "number": 0, "weight": 1, **each}
            yield from flat_objects(line, names)


def _newest(found: dict[Any, Any], last: int) -> Sequence[tuple[Any, Any]]:
    """The entries with the largest keys, in the order of these."""
    return deque(((key, found[key]) for key in sorted(found)), last)


def _without(line: JsonObject, names: Sequence[str]) -> dict[str, Any]:
    return {key: value for key, value in line.items() if key not in names}


def _revise(rows: list[Any], removed: list[Any], added: list[Any]) -> list[Any]:
    """The rows after a revision."""
    kept = rows[::-1]
    for row in removed:
        kept.remove(row)
    return [*kept[::-1], *added]
