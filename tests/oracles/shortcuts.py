"""Short ways to ask the oracle, for tests whose expected values are written by hand."""

from tests.oracles.errors import RejectedError
from tests.oracles.recompute import run


def sensed(values, site=1, every=1, name="v"):
    """Readings of one site at 0, every, 2 every, …; `...` where none came."""
    return [{"_tick": i * every, "_site": site, name: v} for i, v in enumerate(values) if v is not ...]


def pushed(*rows, name="v"):
    """(delivery, value) or (delivery, timestamp, value)."""
    return [
        {"_arrival": r[0], **({"_tick": r[1]} if len(r) == 3 else {}), name: r[-1]} for r in rows
    ]  # fmt: skip


def ask(schema, inputs, query, **options):
    """The Answer to one query."""
    return run(schema, inputs, [query], **options).answers[0]


def windows(schema, inputs, query, **options):
    """[(tick, rows)] as they stand in the end, rows of one column as bare values."""
    answer = ask(schema, inputs, query, **options)
    found = answer.current()
    return [(key[0], [bare(r) for r in found[key]]) for key in sorted(found, key=lambda k: (k[0], k[1]))]


def stream(schema, inputs, query, **options):
    """[(tick, index, row)] as it stands in the end."""
    return [(tick, index, bare(row)) for tick, index, row in ask(schema, inputs, query, **options).current()]


def updates_of(schema, inputs, query, **options):
    """Every update: (clock, tick, revision, removed, added) or (clock, tick, index, weight, row)."""
    answer = ask(schema, inputs, query, **options)
    if answer.kind == "stream":
        return [(u.clock, u.tick, u.index, u.weight, bare(u.row)) for u in answer.tuples]
    return [
        (u.clock, u.tick, u.revision, [bare(r) for r in u.removed], [bare(r) for r in u.added]) for u in answer.windows
    ]


def rejection_kind(schema, query, inputs=None, **options):
    """The kind of error that a query is refused with."""
    try:
        run(schema, inputs or {}, [query], **options)
    except RejectedError as e:
        return e.kind
    return None


def value(expression, row=None, types="a:integer, b:integer, x:float, y:float, s:string, u:string"):
    """An expression over one row of a table."""
    row = {"a": 0, **(row or {})}
    return windows(f"t: stored ({types})", {"t": [(0, [row])]}, f"SELECT {expression} FROM t")[0][1][0]


def holds(predicate, row=None):
    """True, False or None (unknown), found out as WHERE p, WHERE NOT p."""
    row = {"a": 0, **(row or {})}
    schema, data = "t: stored (a:integer, b:integer, x:float, y:float, s:string, u:string)", {"t": [(0, [row])]}
    for result, condition in ((True, predicate), (False, f"NOT ({predicate})")):
        if windows(schema, data, f"SELECT 1 FROM t WHERE {condition}")[0][1]:
            return result
    return None


def bare(row):
    return row[0] if len(row) == 1 else row
