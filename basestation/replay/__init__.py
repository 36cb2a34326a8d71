"""Replay: queries over recorded data, answered as they would have been while the data came in.

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
CSV or Parquet file; of a stored extent also a list of versions, `[(0, rows), (600, rows)]`. Columns are attributes under
their names and the system's with an underscore: see `acquisition.sources.batch_conversion`.

A query is a text, which may hold several statements, or (text, clock tick). A query without a tick is asked before the
clock starts. REVISE, DELETE and INSERT without one are carried out after the last delivery, at the end of the replay:
whoever corrects a recording means all of it, and sees every answer before and after.

Raises `DiagnosticError` for a schema or query that cannot be, `NotExecutableError` for one that cannot be run yet, and `InputError`,
which names input, row and column, for data that cannot be taken. Nothing is kept between two calls.
"""

from acquisition.errors import InputError
from basestation.language.diagnostics import DiagnosticError
from basestation.replay.driver import NotExecutableError, Replay
from basestation.replay.inputs import read_recording
from basestation.replay.result import Result
from basestation.replay.statements import read_catalog, read_statements

__all__ = [
    "DiagnosticError",
    "InputError",
    "NotExecutableError",
    "Result",
    "replay",
]


def replay(schema, inputs, queries, until=None, *, folder=".", tick_ms=1_000):
    """The Result of queries over recorded data; `folder` is where the files lie that a schema names with `from`."""
    catalog = read_catalog(schema, tick_ms=tick_ms)
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
