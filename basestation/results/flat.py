"""Flat answers: one JSON object for each row of an answer, as dashboards and message brokers read them.

    {"_time":"2026-11-19T08:38:00Z","_query":1,"_number":7,"_revision":0,"_weight":1,"_used":54,"_due":54,"mean":21.9,"n":54}

`_number` is that of the line in the query's feed: a reader that has seen it drops the object. A revision removes rows with
`_weight` -1 and adds rows with 1. `_used` and `_due` add up the coverage of all sensed extents, null where there is none.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from basestation.results.wire import Json


def flat_objects(line: Json, columns: Sequence[str]) -> Iterator[Json]:
    """One object for each row of a line of a feed; none for a line without rows, such as a mark."""
    head: Json = {"_time": line["time"], "_query": line["query"], "_number": line["number"]}
    if line["type"] == "tuple":
        yield head | {"_index": line["index"], "_weight": line["weight"]} | _named(columns, line["row"])
    elif line["type"] == "window":
        head |= {"_revision": line["revision"]}
        if "t" in line:
            head["_t"] = line["t"]
        counted = [each for each in line["coverage"].values() if each is not None]
        used, due = (sum(each[at] for each in counted) if counted else None for at in (0, 1))
        for name, weight in (("removed", -1), ("rows", 1), ("added", 1)):
            for row in line.get(name, ()):
                yield head | {"_weight": weight, "_used": used, "_due": due} | _named(columns, row)


def _named(columns: Sequence[str], row: Sequence[Any]) -> Json:
    return dict(zip(columns, row, strict=True))
