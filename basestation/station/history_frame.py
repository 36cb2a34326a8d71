"""The history of stations for Python programs: as `moteloom history`, to data frames of Spark."""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from acquisition.sources.time_bounds import Time, read_time
from basestation.archive.spark.java import find_java
from basestation.archive.spark.master import parse_master
from basestation.archive.spark.session import HEAP, join_session
from basestation.history.answer import open_answer
from basestation.history.output import SYSTEM
from basestation.station.declarations import read_declarations
from basestation.station.history_question import read_question

if TYPE_CHECKING:
    from basestation.archive.spark.session import DataFrame, SparkSession

When = int | str | datetime
"""A tick, a time, or a text: RFC 3339, `+2h` from the first tick in the archive, `-30min` from the last."""


def history(
    query: str,
    data: str | Path = "moteloom-data",
    *,
    config: str | Path | None = None,
    schema: str | Path | None = None,
    begin: When | None = None,
    until: When | None = None,
    session: "SparkSession | None" = None,
    master: str = "local[2]",
    memory: str = HEAP,
) -> "DataFrame":
    """Return the answer of a query over an archive as a data frame of Spark, which computes it when it is read.

    `data` is the data directory of a station, or a folder of many (`station=NAME`). `begin` and `until` are the first and the last window.
    An answer over time has `_time`, `_tick`, and `_n` where a tick may have several windows; rows come by time.
    It runs in the Spark of `session`, or of the program; where there is none, `master` and `memory` say where and how large it starts.

    Raises DiagnosticError for a wrong query, InputError for a wrong file, and subclasses of MoteloomError where the archive or Spark has no answer.
    """
    folder = Path(data)
    where = parse_master(master)
    if not where.is_connect:
        find_java()  # the error names the remedy; that of PySpark does not
    catalog, tables = read_declarations(folder, _text(config), _text(schema))
    question = read_question(folder, catalog, tables, query, None, _time(begin), _time(until))
    own = join_session(session, where, memory)
    frame = open_answer(own, folder, question.plan, tables, question.span)
    if question.plan.is_one_off:
        return frame.drop(*SYSTEM)
    return frame.selectExpr(f"timestamp_millis(_tick * {catalog.tick_ms}L) AS _time", "*")


def _text(path: str | Path | None) -> str | None:
    return None if path is None else str(path)


def _time(when: When | None) -> Time | None:
    return read_time(when) if isinstance(when, str) else when
