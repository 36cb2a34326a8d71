"""moteloom history: asks the archive of stations in SNEEql, answered by a local Spark or a cluster."""

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from basestation.cli.history_arguments import add_spark, open_spark, parse_data, print_errors, print_gaps, refuse
from basestation.cli.history_list import list_extents, list_sites
from basestation.cli.history_recompute import recompute
from basestation.cli.picture_file import open_picture_file, parse_picture, write_picture
from basestation.cli.query_arguments import query_text
from basestation.cli.recording_arguments import parse_time
from basestation.cli.station_arguments import DATA

if TYPE_CHECKING:
    from basestation.station.history_question import HistoryQuestion

HELP = "ask the archive of stations, over days and months, with Spark on this machine or a cluster"
EXAMPLE = "moteloom history 'SELECT site, AVG(temp) AS mean FROM lab [FROM NOW-1 HOUR TO NOW SLIDE 1 HOUR] GROUP BY site' --from -7d"
LIST, RECOMPUTE = "ls", "recompute"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = f"""Windows are the ones that the live engine gave, with all readings in the archive, late ones too.
Times are ticks, times such as 2026-11-18T08:00:00Z, or offsets: +2h from the first reading, -7d from the last.
A station that runs goes on undisturbed; readings since its last roll are not in the archive yet.
A folder of data directories `station=NAME` is one history, with the name in the column `_station`.
exit codes: 0 done, 1 Spark or the data directory cannot be used, 2 wrong query or time, 3 a file that cannot be read,
  4 Spark cannot answer the query exactly (docs/history.md), 130 interrupted

examples:
  {EXAMPLE}
  moteloom history ls
  moteloom history ls lab --from -30d --plot lab.svg
  moteloom history recompute 'SELECT MAX(temp) AS most FROM lab [FROM NOW-1 DAY TO NOW SLIDE 1 DAY]' --since 2026-11-18"""
    parser.add_argument(
        "query",
        nargs="?",
        metavar="QUERY",
        help=f"SNEEql text; `{LIST}`: what the archive holds; `{RECOMPUTE}`: what late arrivals changed",
    )
    parser.add_argument("-f", "--file", metavar="FILE", help="read the text from a file; `-` is standard input")
    parser.add_argument(
        "extent",
        nargs="?",
        metavar="EXTENT",
        help=f"after `{LIST}`: how complete its readings are, by site; after `{RECOMPUTE}`: the query",
    )
    parser.add_argument(
        "--data",
        type=parse_data,
        default=Path(DATA),
        metavar="DIR",
        help="the data of the station; default: %(default)s",
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
        "--since", type=parse_time, metavar="TIME", help=f"of `{RECOMPUTE}`: compare with what had arrived by then"
    )
    parser.add_argument(
        "-o", "--output", choices=("table", "csv", "json", "parquet"), default="table", help="json is one object a line"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="write to a file; parquet needs one")
    parser.add_argument(
        "--plot",
        type=parse_picture,
        metavar="FILE",
        help="draw the answer over time; of an extent, its sites and days; FILE.svg or FILE.png",
    )
    parser.add_argument(
        "--skip-damaged",
        action="store_true",
        help="read each file to its end first, name those that are damaged, and answer from the others",
    )
    add_spark(parser)
    parser.add_argument(
        "--progress", action="store_true", help="show how far Spark is, on standard error; a terminal shows it anyway"
    )


def run(args: argparse.Namespace) -> int:
    return print_errors(lambda: _carry_out(args), args.output == "json")


def _carry_out(args: argparse.Namespace) -> int:
    if args.since is not None and args.query != RECOMPUTE:
        return refuse(f"--since is of `{RECOMPUTE}`; the first window of an answer is that of --from")
    if args.query == RECOMPUTE:
        return recompute(args)
    if (args.query is None) == (args.file is None):
        return refuse(f"expected one query, or -f FILE, or `{LIST}`, or `{RECOMPUTE}`; for example: {EXAMPLE}")
    if args.query == LIST:
        return list_extents(args) if args.extent is None else list_sites(args)
    if args.extent is not None:
        return refuse(f"expected one query, found `{args.extent}` after it; only `{LIST}` takes an extent")
    return _answer(args)


def _answer(args: argparse.Namespace) -> int:
    from basestation.station.declarations import read_declarations
    from basestation.station.history_question import read_question

    if args.output == "parquet" and args.out is None:
        return refuse("parquet is written to a file: add --out FILE")
    catalog, tables = read_declarations(args.data, args.config, args.schema)
    text, name = query_text(args)
    question = read_question(args.data, catalog, tables, text, name, args.begin, args.until, args.skip_damaged)
    print_gaps(question)
    return _print(args, question)


def _print(args: argparse.Namespace, question: "HistoryQuestion") -> int:
    from basestation.history.answer import answer
    from basestation.history.answer_chart import draw_answer, is_drawable
    from basestation.history.output import write_answer

    plan = question.plan
    if args.plot is not None and (plan.is_one_off or not is_drawable(plan)):
        return refuse(
            "--plot draws numbers over time; this query has " + ("one answer" if plan.is_one_off else "no number")
        )
    open_picture_file(args.plot)
    begun = time.monotonic()
    with open_spark(args) as session:
        table = answer(session, question.root, plan, question.tables, question.span, question.skipped)
    if args.plot is not None:
        write_picture(args.plot, draw_answer(args.plot.stem, table, plan.catalog.tick_ms))
    write_answer(table, args.output, args.out, plan.is_one_off, plan.catalog.tick_ms)
    print(f"{table.num_rows} rows after {time.monotonic() - begun:.1f} s", file=sys.stderr)
    return 0
