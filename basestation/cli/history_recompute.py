"""`moteloom history recompute`: what readings and corrections that came late changed in the windows that were answered before."""

import argparse
import sys
import time

from basestation.cli.history_arguments import open_spark, print_gaps, refuse
from basestation.cli.query_arguments import query_text


def recompute(args: argparse.Namespace) -> int:
    """Print the rows that the windows answered by `--since` have now and had not, and the reverse."""
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
    for line in found.describe():
        print(f"moteloom: {line}", file=sys.stderr)
    begun = time.monotonic()
    if found.is_empty:
        table = no_differences(asked.plan, prepare(asked.plan, asked.tables, asked.span))
    else:
        with open_spark(args) as session:
            table = compare_answers(
                session, asked.root, asked.plan, asked.tables, found.question.span, found.since, asked.skipped
            )
    write_answer(table, args.output, args.out, False, catalog.tick_ms)
    print(f"{found.describe_differences(table.num_rows)}, after {time.monotonic() - begun:.1f} s", file=sys.stderr)
    return 0
