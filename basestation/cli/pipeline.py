"""moteloom pipeline: readings of many archives as daily Parquet, and rollups of them, kept up to date by Spark."""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from basestation.cli.history_arguments import add_spark, parse_data, print_errors, refuse
from basestation.cli.simulation import parse_span

if TYPE_CHECKING:
    from acquisition.extent import Catalog
    from basestation.history.pipeline import Pipeline
    from basestation.planner.plan import Plan

HELP = "keep readings of many archives as daily Parquet, with rollups of them, by Spark"
EXAMPLE = (
    "moteloom pipeline --data /srv/moteloom --out /srv/rollups "
    "--rollup 'hourly=SELECT _station, site, AVG(temp) AS mean FROM lab [FROM NOW-59 MIN TO NOW SLIDE 1 HOUR] GROUP BY _station, site'"
)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = f"""A run takes in the files that are new since the last one, and writes anew the days that they change. A run that is cut short is repeated.
Prints the folders that it wrote, and their days. With --every, a run that fails is reported, and the next one repeats it.
exit codes: 0 done, 1 Spark or the data directory cannot be used, 2 wrong rollup, 3 a file that cannot be read,
  4 Spark cannot compute a rollup exactly, 130 interrupted

example:
  {EXAMPLE}"""
    parser.add_argument(
        "--data",
        type=parse_data,
        required=True,
        metavar="DIR",
        help="the data of a station, or a folder of many (station=NAME)",
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="readings/, rollups/ and checkpoints/")
    parser.add_argument(
        "--rollup", action="append", default=[], metavar="NAME=QUERY", help="a query over time windows; may be repeated"
    )
    schema = parser.add_mutually_exclusive_group()
    schema.add_argument("-c", "--config", metavar="DEPLOYMENT", help="the deployment; default: that of the stations")
    schema.add_argument("--schema", metavar="FILE", help="or the declarations of the extents; ticks are seconds")
    parser.add_argument("--every", type=parse_span, metavar="SPAN", help="go on, and look for new files so often")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="json is one object a line")
    add_spark(parser, has_connect=False)


def run(args: argparse.Namespace) -> int:
    return print_errors(lambda: _run(args), args.output == "json")


def _run(args: argparse.Namespace) -> int:
    from acquisition.extent import ExtentKind
    from basestation.archive.spark.session import start_session
    from basestation.history.pipeline import Pipeline, Rollup, check_rollup, name_sites
    from basestation.station.declarations import read_declarations

    catalog, tables = read_declarations(args.data, args.config, args.schema)
    catalog = name_sites(catalog)
    rollups: list[Rollup] = []
    for given in args.rollup:
        name, equals, text = given.partition("=")
        if not equals or name in {rollup.name for rollup in rollups}:
            return refuse(f"expected NAME=QUERY with a name of its own, found `{given}`")
        plan = _read_plan(text, catalog)
        if plan is None:
            return refuse(f"rollup `{name}`: expected one query")
        rollups.append(Rollup(name, text, plan))
        try:
            check_rollup(rollups[-1])
        except ValueError as why:
            return refuse(f"rollup: {why}")
    readings = {
        e.name: plan
        for e in catalog
        if e.kind is not ExtentKind.STORED and (plan := _read_plan(f"SELECT * FROM {e.name}", catalog)) is not None
    }
    print("starting Spark, which takes some 7 s", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="moteloom-spark-") as scratch:
        session = start_session(Path(scratch), args.master, args.memory, is_background=True)
        try:
            pipeline = Pipeline(session, args.data, args.out, readings, tables, rollups)
            if args.every is None:
                _print(_run_once(pipeline), args.output)
                return 0
            repeat(lambda: _run_once(pipeline), args.every, args.output, time.sleep)
        finally:
            session.stop()


def _run_once(pipeline: "Pipeline") -> "Mapping[str, set[str]]":
    """Take in new files; report the days that had to stay as they were."""
    written = pipeline.run()
    for folder, days in sorted(pipeline.kept.items()):
        listed = ", ".join(sorted(days))
        print(
            f"moteloom: {folder} stays as it was on {listed}: a station has dropped readings of it; late ones are left out",
            file=sys.stderr,
        )
    return written


def repeat(
    run: "Callable[[], Mapping[str, set[str]]]", every_ms: int, output: str, sleep: "Callable[[float], None]"
) -> NoReturn:
    """Run for ever. A run that fails is reported and repeated; SparkUnavailableError where Spark itself has ended."""
    import pyarrow as pa

    from basestation.archive.spark.java import SparkUnavailableError
    from basestation.archive.spark.session import report_failures
    from gateway.errors import MoteloomError

    while True:
        try:
            with report_failures():
                written = run()
            _print(written, output)
        except SparkUnavailableError:
            raise
        except (MoteloomError, pa.ArrowInvalid, OSError) as error:
            print(f"moteloom: {error}; the next run repeats this one", file=sys.stderr, flush=True)
        sleep(every_ms / 1000)


def _read_plan(text: str, catalog: "Catalog") -> "Plan | None":
    """The plan of one query; None for other statements."""
    from basestation.planner.plan import Plan
    from basestation.replay.statements import read_statements

    statements = read_statements([text], catalog)
    return statements[0].bound if len(statements) == 1 and isinstance(statements[0].bound, Plan) else None


def _print(written: "Mapping[str, set[str]]", output: str) -> None:
    for folder, days in sorted(written.items()):
        listed: Sequence[str] = sorted(days)
        if output == "json":
            print(json.dumps({"folder": folder, "days": listed}), flush=True)
        elif listed:
            print(f"{folder:<32} {len(listed):>5} days  {listed[0]} to {listed[-1]}", flush=True)
