"""The wire format of answers: JSON dictionaries, one for each line of a replay and each result of REST.

    {"type":"schema","query":1,"kind":"window","columns":[{"name":"site","type":"integer"}, …]}
    {"type":"window","query":1,"tick":600,"n":1,"revision":0,"coverage":{"road":[44,44]},"rows":[[3,"hot"], …]}
    {"type":"window","query":1,"tick":600,"n":1,"revision":1,"coverage":{…},"removed":[[…]],"added":[[…]]}
    {"type":"tuple","query":1,"tick":600,"index":7,"weight":1,"row":[3,"hot"]}
    {"type":"epoch","query":1,"tick":600,"coverage":{"road":[4,4]}}
    {"type":"mark","query":1,"tick":600,"value":…}
    {"type":"ended","query":1,"tick":660,"code":"SN511","message":"…"}

Windows of a loop have "t". The coverage of a pushed extent is null. Values of a scaled column are doubles.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from acquisition.ticks import rfc3339_of
from basestation.algebra.expression import Column
from basestation.results.feed import NumberedUpdate
from basestation.results.schema import ResultSchema
from basestation.updates.update import (
    Coverage,
    EpochMarks,
    Interleaved,
    PunctuationUpdate,
    QueryFailure,
    TupleUpdates,
    Update,
    WindowUpdate,
    WindowUpdates,
)

Json: TypeAlias = dict[str, Any]
"""A JSON object. Its values are whatever JSON holds, so they have no narrower type."""


def schema_as_json(schema: ResultSchema) -> Json:
    """The line that precedes the updates of a query."""
    return {"type": "schema", "query": schema.number, "kind": schema.kind, "columns": columns_as_json(schema.columns)}


def columns_as_json(columns: Iterable[Column]) -> list[Json]:
    """Name and type of each column; scale and unit where it has them."""
    return [
        {"name": c.label, "type": str(c.type)}
        | {key: value for key, value in (("scale", c.scale), ("unit", c.unit)) if value is not None}
        for c in columns
    ]


def update_as_json(update: Update, scales: Sequence[int | None]) -> Iterator[Json]:
    """One dictionary for each window, mark, or tuple of an update."""
    match update:
        case WindowUpdates():
            yield from (_window(each, scales) for each in update)
        case TupleUpdates():
            tags = zip(update.tick.tolist(), update.index.tolist(), update.weight.tolist(), strict=True)
            for (tick, index, weight), row in zip(tags, update.rows.to_lists(scales), strict=True):
                yield {
                    "type": "tuple", "query": update.query, "tick": tick, "index": index, "weight": weight, "row": row,
                }  # fmt: skip
        case EpochMarks():
            for mark in update:
                coverage = coverage_as_json(mark.coverage)
                yield {"type": "epoch", "query": mark.query, "tick": mark.tick, "coverage": coverage}
        case Interleaved():
            for piece in update.pieces():
                yield from update_as_json(piece, scales)
        case PunctuationUpdate():
            yield {"type": "mark", "query": update.query, "tick": update.tick, "value": update.value}
        case QueryFailure(code=code, message=message):
            yield {"type": "ended", "query": update.query, "tick": update.clock, "code": code, "message": message}


def _window(update: WindowUpdate, scales: Sequence[int | None]) -> Json:
    line: Json = {"type": "window", "query": update.query, "tick": int(update.tick), "n": int(update.n)}
    if update.t is not None:
        line["t"] = update.t
    line |= {"revision": update.revision, "coverage": coverage_as_json(update.coverage)}
    if update.revision == 0:
        return line | {"rows": update.added.to_lists(scales)}
    return line | {"removed": update.removed.to_lists(scales), "added": update.added.to_lists(scales)}


def coverage_as_json(coverage: Coverage) -> dict[str, list[int] | None]:
    """[used, due] of each sensed extent, None of a pushed one."""
    return {name: None if of is None else [int(of[0]), int(of[1])] for name, of in coverage.items()}


def numbered_lines(numbered: NumberedUpdate, schema: ResultSchema, tick_ms: int) -> Iterator[Json]:
    """The lines of an update, each with its number in the feed and its tick as an RFC 3339 time."""
    for number, line in enumerate(update_as_json(numbered.update, schema.scales), numbered.number):
        yield {"number": number} | line | {"time": rfc3339_of(line["tick"], tick_ms)}
