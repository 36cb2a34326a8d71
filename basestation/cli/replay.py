"""`moteloom replay`: runs queries over recorded data, as if it arrived now."""

import argparse
import re
import sys
import time
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from acquisition.sources.time_bounds import Time, tick_of
from basestation.cli.query_arguments import (
    BAD_INPUT,
    MOST_ERRORS,
    REFUSED,
    add_query,
    print_diagnostics,
    print_input_error,
    query_text,
    read,
)
from basestation.cli.recording_arguments import (
    add_recording,
    apply_format_file,
    parse_tick,
    parse_time,
    read_format,
)
from gateway.cli.terminal import write_control

HELP = "run queries over recorded data and print every answer and its revisions"
EXAMPLE = (
    "moteloom replay --schema examples/roadbridge/schema.sneeql --input road=examples/roadbridge/recording/road.csv \\\n"
    "    --until 3600 'SELECT site, temp FROM road WHERE temp < 0'\n"
    "  moteloom replay --schema lab.sneeql --input lab=log.csv --time-column when --zone Europe/Zurich --from -1day \\\n"
    "    'SELECT AVG(temp) AS mean FROM lab [FROM NOW-59 MIN TO NOW SLIDE 1 HOUR]' --snap"
)
NOT_EXECUTABLE = 4
LEAST_MEMORY = 700_000_000
if TYPE_CHECKING:
    from acquisition.extent import Catalog
    from basestation.replay.driver import Replay
    from basestation.replay.inputs import Input
    from basestation.replay.shortened_clock import SkippedAnswers
    from basestation.replay.statements import SubmittedStatement
    from basestation.replay.tick_times import TickTimes

InputArgument: TypeAlias = tuple[str, int | None, str]
"""(extent, tick of a version, file)"""
_INPUT = re.compile(r"(?P<extent>[^=@]+)(@(?P<tick>\d+))?=(?P<file>.+)", re.DOTALL)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = f"""inputs are CSV (a header; an empty field is null, "" the empty string; maybe compressed) or Parquet:
  sensed   _tick, _site (or site), attributes; _arrival, the tick of delivery, if it is not _tick
  pushed   _arrival, _tick if a tuple has a timestamp of its own, attributes
  stored   attributes; --input t=A --input t@600=B gives versions of the table
  a sensed extent with one site needs no _site; columns that no attribute names are not read
  streams may have _weight (-1 retracts a tuple) and _replaces (the index of the corrected
  tuple; 0 for the reading with the tick and site of the row)

A replay begins at the first delivery or tick of its inputs, and asks one-off queries at its end. REVISE, DELETE and INSERT run at the end, after the last delivery.
exit codes: 0 done, 1 answers cannot be written or memory ran out, 2 wrong schema, query or time,
  3 wrong input or a failed query, 4 not executable in this version, 130 interrupted

example:
  {EXAMPLE}"""
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--schema", metavar="FILE", help="the declarations of the extents")
    source.add_argument(
        "-c", "--config", metavar="DEPLOYMENT", help="the file of a deployment, which has a schema and a tick"
    )
    parser.add_argument(
        "--tick", type=parse_tick, metavar="SPAN", help="the length of a tick with --schema, such as 1ms; default: 1s"
    )
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        type=_input,
        metavar="EXTENT[@TICK]=FILE",
        help="the recorded data of an extent; once for each stream, once for each version of a stored extent; `-` is standard input",
    )
    parser.add_argument(
        "--from",
        dest="begin",
        type=parse_time,
        metavar="TIME",
        help="the first clock tick: a tick, a time, +2h from the first tick on record, or -2h from the last; earlier deliveries are left out",
    )
    parser.add_argument(
        "--until",
        type=parse_time,
        metavar="TIME",
        help="the last clock tick; default: the last delivery, tick or version",
    )
    parser.add_argument(
        "--ask", type=parse_time, metavar="TIME", help="when one-off queries are asked; default: at the last clock tick"
    )
    parser.add_argument(
        "-o",
        "--output",
        choices=("table", "json", "csv"),
        default="table",
        help="json is one object a line; csv has a row for each that an update adds or retracts, with its coverage",
    )
    parser.add_argument(
        "--time",
        choices=("utc", "local", "tick"),
        help="how answers show ticks; default: utc if the data is dated, else tick; json has both",
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help="print each window without rows, coverage that stays as it was, and each window of long stretches without data",
    )
    add_recording(parser)
    add_query(parser)


def _input(text: str) -> InputArgument:
    match = _INPUT.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(f"`{text}` is not EXTENT=FILE or EXTENT@TICK=FILE")
    return match["extent"], None if match["tick"] is None else int(match["tick"]), match["file"]


def run(args: argparse.Namespace) -> int:
    """Run the command; the exit code."""
    from acquisition.errors import InputError
    from basestation.replay.driver import NotExecutableError
    from gateway.diagnostics import DiagnosticError

    as_json = args.output == "json"
    try:
        return _replay(args)
    except InputError as error:
        print_input_error(error, as_json)
        return BAD_INPUT
    except NotExecutableError as error:
        print_diagnostics(error.diagnostics, as_json)
        return NOT_EXECUTABLE
    except DiagnosticError as error:
        print_diagnostics(error.diagnostics, as_json)
        return REFUSED


def _replay(args: argparse.Namespace) -> int:
    from basestation.replay.driver import SKIP_FROM, Replay
    from basestation.replay.inputs import read_recording
    from basestation.replay.statements import read_statements

    apply_format_file(args)
    catalog = _catalog(args)
    text, name = query_text(args)
    statements = read_statements([text], catalog, name)
    folder = Path(args.schema or args.config).parent
    form = read_format(args, catalog.tick_ms)
    recording = read_recording(catalog, _inputs(args.input, catalog), statements, folder, form)
    if recording.catalog is not catalog:
        statements = read_statements([text], recording.catalog, name)
    if not args.allow_rejected:
        recording.check()
    ends = recording.begin(), recording.end()
    try:
        begin = _tick(args, args.begin, ends, catalog.tick_ms, ends[0])
        until = _tick(args, args.until, ends, catalog.tick_ms, ends[1])
        ask = _tick(args, args.ask, ends, catalog.tick_ms, until)
    except ValueError as error:
        return _refuse(str(error), "")
    if args.begin is not None and begin > until:
        return _refuse(f"--from is tick {begin}, after the last clock tick {until}")
    if args.ask is not None and not begin <= ask <= until:
        return _refuse(f"--ask is tick {ask}, expected a tick of the replay: {begin} to {until}")
    replay = Replay(recording, statements, until, begin=begin, ask=ask, skip_from=None if args.all else SKIP_FROM)
    if replay.steps_without_data:
        steps = (
            f"{replay.steps_without_data:,} windows or epochs without data are computed one by one, which takes long"
        )
        print(
            f"{steps}: a query depends on time that passes; --from and --until can leave them out",
            file=sys.stderr,
            flush=True,
        )
    code = _print(replay, args, {given.number: given for given in statements})
    for note in recording.notes() if args.output != "json" else ():
        print(note, file=sys.stderr)
    return code


def _tick(args: argparse.Namespace, time: Time | None, ends: tuple[int, int], tick_ms: int, default: int) -> int:
    return default if time is None else tick_of(time, ends, tick_ms, args.zone)


def _catalog(args: argparse.Namespace) -> "Catalog":
    """The catalog of the schema or deployment."""
    from basestation.replay.statements import read_catalog

    if args.schema is not None:
        return read_catalog(read(args.schema), args.schema, args.tick or 1_000)
    from acquisition.errors import InputError
    from basestation.planner.deployed_catalog import read_deployed_catalog
    from innet.deployment.toml_reader import read_deployment

    try:
        return read_deployed_catalog(read_deployment(args.config))
    except OSError as why:
        raise InputError("SN501", f"cannot be read: {why.strerror}", args.config) from why


def _refuse(reason: str, remedy: str = "; change --from, --until or --ask") -> int:
    print(f"moteloom: {reason}{remedy}", file=sys.stderr)
    return REFUSED


def _inputs(given: Iterable[InputArgument], catalog: "Catalog") -> "dict[str, Input]":
    """The inputs of `read_recording`: files of streams, versions of tables. It reports names that do not exist."""
    from acquisition.errors import InputError
    from acquisition.extent import ExtentKind

    inputs: dict[str, Input] = {}
    for name, tick, file in given:
        extent = catalog.find(name)
        stored = extent is not None and extent.kind is ExtentKind.STORED
        if tick is not None and extent is not None and not stored:
            raise InputError("SN510", f"`{name}` is {extent.kind}; only a stored extent has versions", file)
        if stored:
            inputs.setdefault(name, []).append((tick or 0, file))
        elif name in inputs:
            raise InputError("SN510", f"a second input for `{name}`", file, help="a stream has one recording")
        else:
            inputs[name] = _standard_input() if file == "-" else file
    return inputs


def _standard_input() -> bytes:
    """The content of standard input. Raises InputError."""
    from acquisition.errors import InputError

    if sys.stdin is None:
        raise InputError("SN501", "cannot be read: it is closed", "standard input")
    return sys.stdin.buffer.read()


def _print(replay: "Replay", args: argparse.Namespace, statements: "Mapping[int, SubmittedStatement]") -> int:
    """Print the updates as the engine emits them. A failed query ends with an error; the others continue."""
    from basestation.replay.csv_output import CsvOutput
    from basestation.replay.json_output import JsonOutput
    from basestation.replay.statements import find_extents
    from basestation.replay.table_output import TableOutput
    from basestation.replay.tick_times import TickTimes, is_dated
    from basestation.updates.update import QueryFailure
    from gateway.diagnostics import Diagnostic

    tick_ms = replay.recording.catalog.tick_ms
    dated = is_dated(replay.begin, tick_ms) or args.output == "json"
    times = TickTimes(tick_ms, args.time == "local") if args.time != "tick" and (args.time or dated) else None
    answers: TableOutput | JsonOutput | CsvOutput
    if args.output == "table":
        answers = TableOutput(replay.queries, times, args.all)
    else:
        answers = JsonOutput(replay.queries, times) if args.output == "json" else CsvOutput(replay.queries, times)
    code, failed, progress = 0, 0, _ReplayProgress(replay.begin, replay.until)
    sys.stdout.write(answers.begin())
    skipped: list[SkippedAnswers] = []
    for updates in replay.updates():
        progress.pause()
        sys.stdout.write(answers.skipped(replay.skipped))
        skipped += replay.skipped
        replay.skipped.clear()
        failures = [update for update in updates if isinstance(update, QueryFailure)]
        sys.stdout.write(answers.updates([update for update in updates if not isinstance(update, QueryFailure)]))
        for failure in failures:
            code, failed = BAD_INPUT, failed + 1
            if failed > MOST_ERRORS and args.output != "json":
                continue
            given = statements[failure.query]
            span = given.bound.statement.span
            print_diagnostics([Diagnostic(failure.code, failure.message, given.source, span)], args.output == "json")
        progress.at(replay.clock)
    progress.pause()
    sys.stdout.write(answers.end(replay.until, replay.ledger()))
    if args.output != "json":
        if failed > MOST_ERRORS:
            print(f"{failed - MOST_ERRORS:,} more queries failed; `-o json` prints all", file=sys.stderr)
        _print_ledger(replay, find_extents(statements.values()), times)
    if args.output == "csv":
        windows = {query.number for query in replay.queries if query.kind == "window"}
        _print_skipped((each for each in skipped if each.tuples or each.query in windows), times)
    return code


def _print_skipped(skipped: "Iterable[SkippedAnswers]", times: "TickTimes | None") -> None:
    """Print which answers in stretches without data have no lines."""
    for each in skipped:
        span = f"tick {each.first} to {each.last}"
        if times is not None:
            span = f"{times.text(each.first)} to {times.text(each.last)}"
        what = "tuples of windows" if each.tuples else "windows"
        text = f"query {each.query}: {each.count:,} {what} from {span} have the same rows; --all prints them"
        print(text, file=sys.stderr)


def _print_ledger(replay: "Replay", read: Collection[str], times: "TickTimes | None") -> None:
    """Print how many tuples of each extent met each fate, and which windows reach back before the data.

    Nothing is missing of an extent that is not `read` and got nothing, so it is left out.
    """
    for name, counts in replay.ledger().items():
        if name not in read and not any(counts.values()):
            continue
        first = sorted(counts, key=lambda what: ({"received": 0, "accepted": 1}.get(what, 2), what))
        listed = ", ".join(f"{counts[what]} {what}" for what in first if counts[what])
        print(f"{name}: {listed or 'nothing received'}", file=sys.stderr)
    for number, tick in replay.first_full_windows().items():
        when = f"tick {tick}" if times is None else times.text(tick)
        print(f"query {number}: windows before {when} reach back before the data", file=sys.stderr)


class _ReplayProgress:
    """One line on standard error with the progress of a long replay; none without a terminal."""

    def __init__(self, begin: int, until: int) -> None:
        self._begin, self._until = begin, until
        self._visible = sys.stderr.isatty() and not sys.stdout.isatty()
        self._next = time.monotonic() + 1
        self._shown = False

    def at(self, clock: int) -> None:
        if self._visible and time.monotonic() >= self._next:
            self._next = time.monotonic() + 0.2
            self._shown = True
            share = 100 * (clock - self._begin) // max(1, self._until - self._begin)
            write_control(sys.stderr, f"\rtick {clock} of {self._until} ({share} %)")
            sys.stderr.flush()

    def pause(self) -> None:
        if self._shown:
            write_control(sys.stderr, "\r\x1b[K")
            sys.stderr.flush()
            self._shown = False
