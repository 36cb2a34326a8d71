"""Queries over a recording that was archived: their answer in Spark, and whether it is the engine's current one.

Rows compare as bags for each window or tick. A float that Spark sums in another order may differ by 1e-9 of its value, and by the
rounding of the largest value that may have been added.
"""

import json
from dataclasses import dataclass, replace

import numpy as np

from acquisition.batch import replaced_indexes
from basestation.archive.compaction import days_of_files, merge_day
from basestation.archive.parquet import ParquetArchive
from basestation.history.archive_views import name_source, open_views
from basestation.history.compiler import compile_plan
from basestation.history.refusal import SparkRefusedError
from basestation.history.statement import HistoryRange
from basestation.replay.driver import Replay
from basestation.replay.result import Result

TOLERANCE, ROUNDING = 1e-9, 1e-14
"""Of a sum, and of the largest of some hundred values in it: they may cancel each other out."""


def corrections_of(recording, statements, until):
    """The corrections of a recording and of statements as the engine carries them out, by extent."""
    return engine_run(recording, statements, until)[1]


def archive(recording, root, rng, corrections=None):
    """Write the deliveries of a recording into an archive, in their order, cut into files at random, and then corrections."""
    files = ParquetArchive(root, recording.catalog.tick_ms)
    for name, stream in recording.streams.items():
        batch = stream.whole()
        batch = batch.take(np.argsort(batch.arrival, kind="stable"))
        batch = batch.take((batch.weight > 0) & (replaced_indexes(batch) == 0))
        cuts = sorted(rng.sample(range(1, len(batch)), rng.randint(0, min(3, len(batch) - 1)))) if len(batch) else []
        for first, last in zip([0, *cuts], [*cuts, len(batch)], strict=True):
            if first < last:
                files.append(recording.catalog.extents[name], batch.take(slice(first, last)))
        for batch in (corrections or {}).get(name, ()):
            files.append_corrections(recording.catalog.extents[name], batch)


def compact(recording, root):
    """Merge the files of each day of an archive."""
    files = ParquetArchive(root, recording.catalog.tick_ms)
    listed = files.adopt()[0]
    for day in list(days_of_files(listed)):
        merged = merge_day(root, day)
        files.settle([*(replace(file, is_removed=True) for file in day.files), merged])


def views(session, recording, root, prefix):
    """The archive of a recording as views."""
    return open_views(session, root, recording.catalog, list(recording.catalog), recording.versions, prefix)


def named_views(catalog, versions, corrected=()):
    """Sources of a catalog without a session: enough to compile. `corrected` are the extents with corrections."""
    return {e.name: name_source(e, versions.get(e.name, ()), is_corrected=e.name in corrected) for e in catalog}


def compiled(statement, sources, until):
    """The statement in Spark SQL, of a query that begins at tick 0; SparkRefusedError."""
    return compile_plan(statement.plan, sources, HistoryRange(0, until, 0, statement.clock or 0))


@dataclass
class SparkAnswer:
    """Rows as (window or tick, row); windows of a window query."""

    rows: list
    windows: list | None


def answer_of(session, query):
    """Run a CompiledQuery. SparkRefusedError where its checks find what Spark cannot do."""
    for check in query.checks:
        if session.sql(check.text).first()[0]:
            raise SparkRefusedError(check.reason)
    fields = ", ".join(f"`{name.replace('`', '``')}` AS c{at}" for at, name in enumerate(query.names))
    row = f"to_json(struct({fields}), map('ignoreNullFields', 'false'))"
    tags = (
        "_tick AS tick, 0L AS n, '' AS t" if query.windows is None else f"_tick AS tick, _n AS n, {_loop(query)} AS t"
    )
    text = f"SELECT 0 AS kind, {tags}, {row} AS row FROM (\n{query.text})"
    if query.windows is not None:
        text += f"\nUNION ALL SELECT 1, {tags}, '' FROM (\n{query.windows})"
    rows, windows = [], []
    for of in session.sql(text).toArrow().to_pylist():
        key = (of["tick"], of["n"]) if not of["t"] else (of["tick"], of["n"], _read_loop(of["t"]))
        if of["kind"]:
            windows.append(key)
        else:
            rows.append((key, tuple(json.loads(of["row"]).values())))
    return SparkAnswer(rows, None if query.windows is None else windows)


def _loop(query):
    return "to_json(array(_t))" if "_t" in query.tags else "''"


def _read_loop(text):
    [found] = json.loads(text)
    return tuple(found) if isinstance(found, list) else found


def engine_answers(recording, statements, until):
    """The Result of the engine, at the end of a replay."""
    return engine_run(recording, statements, until)[0]


def engine_run(recording, statements, until):
    """(the Result of the engine at the end of a replay, the corrections that it carried out, by extent)."""
    replay = Replay(recording, statements, until)
    replay.engine.archive_corrections()
    result = Result(replay.queries)
    for updates in replay.updates():
        result.add(updates)
    result.finish(replay.until, replay.ledger())
    corrections = {}
    for name, batch in replay.engine.take_applied():
        corrections.setdefault(name, []).append(batch)
    return result, corrections


def difference(result, number, query, got, largest=0.0):
    """The first difference between the engine's current answer and Spark's; None if there is none. Sums hold values up to `largest`."""
    current = result.current(number)
    inexact = [name in query.inexact for name in query.names]
    if got.windows is None:
        expected = _by_key(((tick, 0), row) for tick, _, row in current)
    else:
        expected = {key: list(rows) for key, rows in current.items()}
        if sorted(map(str, expected)) != sorted(map(str, got.windows)):
            return f"windows\nexpected {sorted(expected)[:20]}\ngot      {sorted(got.windows)[:20]}"
    return differing_rows(expected, _by_key(got.rows), inexact, largest)


def differing_rows(expected, found, inexact, largest=0.0):
    """The first difference between rows by window or tick; None if there is none. `inexact` says which columns may differ a little."""
    for key in expected.keys() | found.keys():
        a, b = (sorted(rows.get(key, []), key=lambda row: _order(row, inexact)) for rows in (expected, found))
        if len(a) != len(b) or not all(_alike(x, y, inexact, largest) for x, y in zip(a, b, strict=True)):
            return f"at {key}\nexpected {a[:20]}\ngot      {b[:20]}"
    return None


def _by_key(rows):
    found = {}
    for key, row in rows:
        found.setdefault(key, []).append(row)
    return found


def _order(row, inexact):
    """Values that may differ a little come by their rounded values, all others as they are."""
    return [
        (v is not None, isinstance(v, str), round(v, 6) if of and isinstance(v, float) else v)
        for v, of in zip(row, inexact, strict=True)
    ]


def _alike(a, b, inexact, largest):
    return len(a) == len(b) and all(
        (x == y and isinstance(x, float) == isinstance(y, float))
        or (of and isinstance(x, float) and isinstance(y, float) and abs(x - y) <= _allowance(x, y, largest))
        for x, y, of in zip(a, b, inexact, strict=True)
    )


def _allowance(x, y, largest):
    return max(TOLERANCE * max(abs(x), abs(y), 1.0), ROUNDING * largest)
