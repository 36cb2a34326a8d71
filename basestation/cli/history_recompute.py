"""`moteloom history recompute`: what readings and corrections that came late changed in the windows that were answered before."""

import argparse
import sys
import time
from typing import TYPE_CHECKING

from basestation.cli.history_arguments import open_spark, print_gaps, refuse
from basestation.cli.query_arguments import query_text

if TYPE_CHECKING:
    from basestation.history.late_arrivals import LateArrivals


def recompute(args: argparse.Namespace) -> int:
    """Print the rows that the windows answered by `--since` have now and had not, and the reverse."""
    from acquisition.ticks import rfc3339_of
    from basestation.history.answer import prepare
    from basestation.history.differences import compare_answers, no_differences
    from basestation.history.output import write_answer
    from basestation.station.declarations import read_declarations
    from basestation.station.history_question import read_question
    from basestation.station.recomputation import plan_recomputation

    if (args.extent is None) == (args.file is None) or args.since is None:
        return refuse(
            "expected `moteloom history recompute QUERY --since TIME`, or -f FILE in place of the query: "
            "the time is that of the earlier answer"
        )
    if args.plot is not None:
        return refuse("--plot draws an answer, and recompute prints differences of answers")
    if args.output == "parquet" and args.out is None:
        return refuse("parquet is written to a file: add --out FILE")
    catalog, tables = read_declarations(args.data, args.config, args.schema)
    text, name = (args.extent, None) if args.file is None else query_text(args)
    asked = read_question(args.data, catalog, tables, text, name, args.begin, args.until, args.skip_damaged)
    print_gaps(asked)
    found = plan_recomputation(asked, args.since)
    since, span = rfc3339_of(found.since, catalog.tick_ms), found.question.span
    for name, late in found.late.items():
        _print_late(name, late, since)
    begun = time.monotonic()
    if found.is_empty:
        table = no_differences(prepare(asked.plan, asked.tables, asked.span))
    else:
        with open_spark(args) as session:
            table = compare_answers(
                session, asked.root, asked.plan, asked.tables, span, found.since, found.question.skipped
            )
    write_answer(table, args.output, args.out, False, catalog.tick_ms)
    windows = f"windows up to {rfc3339_of(found.last, catalog.tick_ms)}"
    print(f"{_count(table.num_rows)} of {windows} differ, after {time.monotonic() - begun:.1f} s", file=sys.stderr)
    return 0


def _print_late(name: str, late: "LateArrivals", since: str) -> None:
    from basestation.history.late_arrivals import list_runs

    if late.rows:
        days = list_runs(late.days)
        print(f"moteloom: {_count(late.rows)} of `{name}` came late, after {since}, of {days}", file=sys.stderr)
    if late.beyond:
        says = f"came after {since}, beyond the horizon of `{name}`: windows lack them, `{name}.HISTORY` has them"
        print(f"moteloom: {_count(late.beyond)} {says}", file=sys.stderr)


def _count(rows: int) -> str:
    return "1 row" if rows == 1 else f"{rows:,} rows"
