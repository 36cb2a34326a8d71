"""Correction SQL: the tuples of an archive with corrections, as revised so far, or in all their versions (semantics 12.2, 10.7).

A tuple has its deliveries and corrections in the order of clock ticks. The rows from a delivery or INSERT to the next DELETE are one tuple; a
later delivery of the same key is another one. Copies of a reading that stand between them do not count.

    clock    3          5           7          9          12
    rows     delivery   REVISE      DELETE     copy       REVISE
    _life    1          1           1          2          2
"""

from collections.abc import Sequence

from acquisition.extent import Extent, ExtentKind, LatePolicy
from basestation.algebra.expression import Column
from basestation.history.scalar_sql import name_of
from basestation.history.statement import Check, SparkStatement
from basestation.history.stations import STATION, is_of_stations

_SEQUENCE = "_clock, _rev > 0, _rev, _pos"
"""In a clock tick deliveries come first, then statements in their order."""


def read_lives(statement: SparkStatement, extent: Extent, rows: str) -> str:
    """The rows of the archive by tuple: with `_life`, its number among those of its key, `_dlv`, when it was delivered, and `_nth` in it.

    `rows` is a query with `_tick`, `_site`, `_clock`, `_pos`, `_weight`, `_rev` and the columns.
    """
    key = _key(extent)
    if extent.kind is ExtentKind.SENSED:
        before = "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
        life = f"coalesce(sum(if(_weight < 0, 1, 0)) OVER (PARTITION BY {key} ORDER BY {_SEQUENCE} {before}), 0)"
    else:  # the index of a tuple comes again after a restore of the station
        copies = f"row_number() OVER (PARTITION BY {key}, _clock, _rev ORDER BY _weight)"
        rows = f"SELECT * FROM (SELECT *, {copies} AS _copy FROM (\n{rows})) WHERE _copy = 1 OR _pos = 0"
        so_far = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
        life = f"sum(if(_rev = 0, 1, 0)) OVER (PARTITION BY {key} ORDER BY {_SEQUENCE} {so_far})"
    lives = statement.add("lives", f"SELECT *, {life} AS _life FROM (\n{rows})")
    of_life = f"OVER (PARTITION BY {key}, _life ORDER BY {_SEQUENCE}"
    numbered = (
        f"SELECT *, row_number() {of_life}) AS _nth, first_value(_clock) {of_life}) AS _dlv, "
        f"first_value(_pos) {of_life}) AS _first_pos, first_value(_weight) {of_life}) AS _begun FROM {lives}"
    )
    return statement.add("numbered", f"SELECT * FROM (\n{numbered}) WHERE _begun = 1 AND (_nth = 1 OR _rev > 0)")


def read_current(statement: SparkStatement, extent: Extent, lives: str, attributes: Sequence[Column]) -> str:
    """Each tuple as continuous queries see it: corrections reach back to the horizon, in other extents than `late revise` nowhere."""
    seen = "_nth = 1"
    if extent.late is LatePolicy.REVISE:
        seen += f" OR _tick >= _clock - {extent.horizon or 0}"
    latest = f"row_number() OVER (PARTITION BY {_key(extent)}, _life ORDER BY _nth DESC)"
    return statement.add(
        "current",
        f"SELECT _tick, _site, _dlv, _first_pos AS _pos{_columns(attributes)} FROM (\n"
        f"SELECT *, {latest} AS _back FROM {lives} WHERE {seen}) WHERE _back = 1 AND _weight = 1",
    )


def read_versions(statement: SparkStatement, extent: Extent, lives: str, attributes: Sequence[Column]) -> str:
    """Each version of each tuple, with `_since` and `_until`: the clock ticks at which it began and ended; null at the ends of a tuple."""
    until = f"lead(_clock) OVER (PARTITION BY {_key(extent)}, _life ORDER BY _nth)"
    ended = f"SELECT *, if(_nth = 1, NULL, _clock) AS _since, {until} AS _until FROM {lives}"
    return statement.add(
        "versions",
        f"SELECT _tick, _site, _dlv, _first_pos AS _pos, _life, _since, _until{_columns(attributes)} FROM (\n{ended}) WHERE _weight = 1",
    )


def check_deletions(statement: SparkStatement, extent: Extent, lives: str, reason: str) -> None:
    """Refuse where a tuple was deleted while its tick might still be incomplete."""
    early = f"_weight < 0 AND _clock <= greatest(_tick, _dlv) + {extent.wait}"
    statement.checks.append(Check(f"SELECT 1 FROM {lives} WHERE {early}", reason))


def _key(extent: Extent) -> str:
    key = "_site, _tick" if extent.kind is ExtentKind.SENSED else "_tick, _pos"
    return f"{key}, {STATION}" if is_of_stations(extent) else key


def _columns(attributes: Sequence[Column]) -> str:
    return "".join(f", {name_of(column)}" for column in attributes)
