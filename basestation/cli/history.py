"""moteloom history: asks the archive of a station in SNEEql, answered by a local Spark."""

import argparse
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from acquisition.sources.time_bounds import tick_of
from basestation.cli.query_arguments import (
    BAD_INPUT,
    REFUSED,
    print_diagnostics,
    query_text,
    read,
)
from basestation.cli.recording_arguments import parse_time
from basestation.cli.station_arguments import DATA

if TYPE_CHECKING:
    from acquisition.extent import Catalog
    from basestation.history.archive_views import ExtentFiles, Version
    from basestation.history.statement import HistoryRange
    from basestation.planner.plan import Plan

HELP = "ask the archive of a station, over days and months, with Spark on this machine"
EXAMPLE = "moteloom history 'SELECT site, AVG(temp) AS mean FROM lab [FROM NOW-1 HOUR TO NOW SLIDE 1 HOUR] GROUP BY site' --from -7d"
FAILED, NOT_EXECUTABLE = 1, 4
LIST = "ls"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = f"""Windows are the ones that the live engine gave, with all readings in the archive, late ones too.
Times are ticks, times such as 2026-11-18T08:00:00Z, or offsets: +2h from the first reading, -7d from the last.
A station that runs goes on undisturbed; readings since its last roll are not in the archive yet.
exit codes: 0 done, 1 Spark or the data directory cannot be used, 2 wrong query or time, 3 a file that cannot be read,
  4 Spark cannot answer the query exactly (docs/history.md)

examples:
  {EXAMPLE}
  moteloom history ls"""
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("query", nargs="?", metavar="QUERY", help=f"SNEEql text; or `{LIST}`: what the archive holds")
    group.add_argument("-f", "--file", metavar="FILE", help="read the text from a file; `-` is standard input")
    parser.add_argument(
        "--data", type=Path, default=Path(DATA), metavar="DIR", help="the data of the station; default: %(default)s"
    )
    schema = parser.add_mutually_exclusive_group()
    schema.add_argument("-c", "--config", metavar="DEPLOYMENT", help="the deployment; default: that of the station")
    schema.add_argument("--schema", metavar="FILE", help="or the declarations of the extents; ticks are seconds")
    parser.add_argument(
        "--from", dest="begin", type=parse_time, metavar="TIME", help="the first window; default: the first reading"
    )
    parser.add_argument(
        "--to", dest="until", type=parse_time, metavar="TIME", help="the last window; default: the last reading"
    )
    parser.add_argument(
        "-o", "--output", choices=("table", "csv", "json", "parquet"), default="table", help="json is one object a line"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="write to a file; parquet needs one")
    parser.add_argument(
        "--memory",
        type=_memory,
        default="512m",
        metavar="SIZE",
        help="the heap of Spark, such as 2g; default: %(default)s",
    )


def _memory(text: str) -> str:
    if not re.fullmatch(r"[1-9]\d*[mg]", text):
        raise argparse.ArgumentTypeError(f"`{text}` is no size of a heap: expected such as 512m or 2g")
    return text


def run(args: argparse.Namespace) -> int:
    import pyarrow as pa

    from acquisition.errors import InputError
    from basestation.archive.spark.java import SparkUnavailableError
    from basestation.history.refusal import SparkRefusedError
    from basestation.station.journal_file import JournalError
    from gateway.diagnostics import DiagnosticError

    as_json = args.output == "json"
    try:
        return _list(args) if args.query == LIST else _answer(args)
    except DiagnosticError as error:
        print_diagnostics(error.diagnostics, as_json)
        return REFUSED
    except SparkRefusedError as error:
        print(
            f"moteloom: Spark cannot answer this exactly: {error}; docs/history.md lists what it can", file=sys.stderr
        )
        return NOT_EXECUTABLE
    except (InputError, pa.ArrowInvalid) as error:
        print(f"moteloom: {error}", file=sys.stderr)
        return BAD_INPUT
    except JournalError as error:
        print(f"moteloom: {error}; {error.help}", file=sys.stderr)
        return FAILED
    except SparkUnavailableError as error:
        print(f"moteloom: {error}", file=sys.stderr)
        return FAILED


def _refuse(reason: str) -> int:
    print(f"moteloom: {reason}", file=sys.stderr)
    return REFUSED


def _answer(args: argparse.Namespace) -> int:
    from basestation.history.answer import find_extents, prepare
    from basestation.history.archive_views import describe_extent
    from basestation.history.compiler import needs_order
    from basestation.history.statement import HistoryRange
    from basestation.planner.plan import Plan
    from basestation.replay.statements import read_statements

    if args.output == "parquet" and args.out is None:
        return _refuse("parquet is written to a file: add --out FILE")
    catalog, tables = _declared(args)
    text, name = query_text(args)
    statements = read_statements([text], catalog, name)
    if len(statements) != 1 or not isinstance(statements[0].bound, Plan):
        return _refuse("expected one query; the archive does not change")
    plan = statements[0].bound
    extents = find_extents(plan)
    files = [found for extent in extents if (found := describe_extent(args.data, extent.name)) is not None]
    streams = [extent.name for extent in extents if extent.name not in tables]
    if streams and not files:
        return _refuse(
            f"the archive in {args.data} holds no reading of `{'`, `'.join(streams)}`; a station rolls its readings "
            "into it once an hour, or as its --archive says"
        )
    first = min((found.first for found in files), default=0)
    last = max((found.last for found in files), default=0)
    ends = first, last
    if needs_order(plan.root):  # it goes by arrival
        last = max([last, *(found.last_arrival for found in files)])
    try:
        begin = first if args.begin is None else tick_of(args.begin, ends, catalog.tick_ms, "UTC")
        until = last if args.until is None else tick_of(args.until, ends, catalog.tick_ms, "UTC")
    except ValueError as why:
        return _refuse(str(why))
    if until < begin:
        return _refuse(f"--from is tick {begin}, after the last window at tick {until}")
    if files and (begin > last or until < first):
        return _refuse(
            f"the archive has readings of the ticks {first} to {last}; the range {begin} to {until} has none"
        )
    if any(found.corrections for found in files):
        from basestation.history.refusal import SparkRefusedError

        raise SparkRefusedError("the archive holds corrections of tuples")
    span = HistoryRange(begin, until, first, until)
    prepare(plan, tables, span)  # what Spark cannot answer is refused before it starts
    return _print(args, plan, catalog, tables, span)


def _print(
    args: argparse.Namespace,
    plan: "Plan",
    catalog: "Catalog",
    tables: "Mapping[str, Sequence[Version]]",
    span: "HistoryRange",
) -> int:
    from basestation.archive.spark.session import start_session
    from basestation.history.answer import answer
    from basestation.history.output import write_answer

    begun = time.monotonic()
    print("starting Spark, which takes some 7 s", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="moteloom-spark-") as scratch:
        os.nice(5)  # the station on this machine comes first
        session = start_session(Path(scratch), heap=args.memory)
        try:
            print(f"Spark is there after {time.monotonic() - begun:.1f} s", file=sys.stderr)
            table = answer(session, args.data, plan, tables, span)
        finally:
            session.stop()
    write_answer(table, args.output, args.out, plan.is_one_off, catalog.tick_ms)
    print(f"{table.num_rows} rows after {time.monotonic() - begun:.1f} s", file=sys.stderr)
    return 0


def _declared(args: argparse.Namespace) -> "tuple[Catalog, dict[str, list[Version]]]":
    """The catalog, and the versions of its tables."""
    from basestation.history.archive_views import read_tables
    from basestation.replay.statements import read_catalog

    if args.schema is None and args.config is None:
        from basestation.station.saved_state import read_saved_state

        state = read_saved_state(args.data)
        return state.catalog, {n: [(v.tick, v.columns) for v in found] for n, found in state.tables.items()}
    if args.schema is not None:
        catalog, folder = read_catalog(read(args.schema), args.schema), Path(args.schema).parent
    else:
        from basestation.planner.deployed_catalog import read_deployed_catalog
        from innet.deployment.toml_reader import read_deployment

        deployment = read_deployment(args.config)
        catalog, folder = read_deployed_catalog(deployment), Path(deployment.extents.name or ".").parent
    return catalog, read_tables(catalog, folder)


def _list(args: argparse.Namespace) -> int:
    from basestation.history.archive_views import describe_extent

    folder = args.data / "archive"
    names = sorted(path.name.removeprefix("extent=") for path in folder.glob("extent=*"))
    found = [each for name in names if (each := describe_extent(args.data, name)) is not None]
    if not found:
        return _refuse(f"there is no archive in {args.data}; `--data` names the data of a station")
    for each in found:
        _print_extent(each, args.output)
    return 0


def _print_extent(found: "ExtentFiles", output: str) -> None:
    if output == "json":
        fields = {
            "extent": found.extent, "files": found.files, "rows": found.rows, "bytes": found.bytes,
            "days": len(found.days), "first_day": found.days[0], "last_day": found.days[-1],
            "first_tick": found.first, "last_tick": found.last,
        }  # fmt: skip
        print(json.dumps(fields, ensure_ascii=False))
        return
    days = f"{found.days[0]} to {found.days[-1]}"
    print(
        f"{found.extent:<16} {found.rows:>12,} readings  {len(found.days):>4} days  {days}  {found.files:>6} files  {found.bytes / 1e6:>9.1f} MB"
    )
