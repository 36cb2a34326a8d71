"""Replay: runs queries over recorded data, as if it arrived now.

    >>> from basestation.replay import replay
    >>> result = replay(
    ...     "road: sensed (site:integer, temp:integer) every 1 min at sites 1, 2",
    ...     {"road": [{"_tick": 0, "_site": 1, "temp": 20}, {"_tick": 0, "_site": 2, "temp": 23}]},
    ...     "SELECT MAX(temp) AS hottest FROM road [NOW]",
    ... )
    >>> result.current()
    {(0, 1): [(23,)]}
    >>> result.windows()[0].coverage
    {'road': [2, 2]}
    >>> result.ledger["road"]["accepted"]
    2

An input is a list of dictionaries, a dictionary of lists or numpy arrays, an Arrow table, a data frame, or the path of a
CSV or Parquet file. A stored extent also takes a list of versions, `[(0, rows), (600, rows)]`. Columns have the names of
attributes; system columns begin with an underscore: see `acquisition.sources.batch_conversion`.

A query is a text with one or more statements, or (text, clock tick). A query without a tick begins before the clock
starts. REVISE, DELETE and INSERT without a tick run at the end of the replay, after the last delivery: they correct the
whole recording, and the result has every answer before and after.

Raises `DiagnosticError` for a wrong schema or query, `NotExecutableError` for a query that this version cannot execute, and
`InputError` for wrong data, with input, row and column. Two calls share no state.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from acquisition.errors import InputError
from basestation.replay.driver import NotExecutableError, Replay
from basestation.replay.inputs import Input, read_recording
from basestation.replay.result import Result
from basestation.replay.statements import read_catalog, read_statements
from gateway.diagnostics import DiagnosticError

__all__ = [
    "DiagnosticError",
    "InputError",
    "NotExecutableError",
    "Result",
    "replay",
]


def replay(
    schema: str,
    inputs: Mapping[str, Input],
    queries: str | tuple[str, int] | Iterable[str | tuple[str, int | None]],
    until: int | None = None,
    *,
    folder: str | Path = ".",
    tick_ms: int = 1_000,
) -> Result:
    """The Result of queries over recorded data.

    `until` is the last clock tick; default: the last delivery. Files that a schema names with `from` are relative to
    `folder`. A tick has `tick_ms` milliseconds.
    """
    catalog = read_catalog(schema, tick_ms=tick_ms)
    texts: list[str | tuple[str, int | None]]
    texts = [queries] if isinstance(queries, str | tuple) else list(queries)
    statements = read_statements(texts, catalog)
    recording = read_recording(catalog, inputs, statements, folder)
    if recording.catalog is not catalog:
        statements = read_statements(texts, recording.catalog)
    run = Replay(recording, statements, until)
    result = Result(run.queries)
    for updates in run.updates():
        result.add(updates)
    result.finish(run.until, run.ledger())
    return result
