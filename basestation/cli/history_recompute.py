"""`moteloom history recompute`: what readings and corrections that came late changed in the windows that were answered before."""

import argparse
import sys
import time

from basestation.cli.history_arguments import open_spark, print_gaps, refuse


def recompute(args: argparse.Namespace) -> int:
    """Print the rows that the windows answered by `--since` have now and had not, and the reverse."""
    from acquisition.ticks import rfc3339_of
    from basestation.history.differences import compare_answers
    from basestation.history.file_checks import list_days
    from basestation.history.output import write_answer
    from basestation.station.declarations import read_declarations
    from basestation.station.history_question import read_question
    from basestation.station.recomputation import plan_recomputation

    if args.extent is None or args.since is None:
        return refuse("expected `moteloom history recompute QUERY --since TIME`: the time of the earlier answer")
    if args.plot is not None:
        return refuse("--plot draws an answer, and recompute prints differences of answers")
    if args.output == "parquet" and args.out is None:
        return refuse("parquet is written to a file: add --out FILE")
    catalog, tables = read_declarations(args.data, args.config, args.schema)
    asked = read_question(args.data, catalog, tables, args.extent, None, args.begin, args.until, args.skip_damaged)
    print_gaps(asked)
    found = plan_recomputation(asked, args.since)
    since = rfc3339_of(found.since, catalog.tick_ms)
    for name, late in found.late.items():
        rows = "1 row" if late.rows == 1 else f"{late.rows:,} rows"
        days = list_days(late.days)
        print(f"moteloom: {rows} of `{name}` arrived after {since} for ticks before it, of {days}", file=sys.stderr)
    span = found.question.span
    if not found.late or span.until < span.start:
        print(f"moteloom: no window that was answered by {since} has changed; nothing is written", file=sys.stderr)
        return 0
    begun = time.monotonic()
    with open_spark(args) as session:
        table = compare_answers(
            session, asked.root, asked.plan, asked.tables, span, found.since, found.question.skipped
        )
    write_answer(table, args.output, args.out, False, catalog.tick_ms)
    print(f"{table.num_rows} rows differ, after {time.monotonic() - begun:.1f} s", file=sys.stderr)
    return 0
