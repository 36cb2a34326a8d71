"""`moteloom replay`: runs queries over recorded data, as if it arrived now."""

import argparse
import re
import sys
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from basestation.cli.query_arguments import (
    BAD_INPUT,
    REFUSED,
    add_query,
    add_schema,
    print_diagnostics,
    print_input_error,
    query_text,
    read,
)

HELP = "run queries over recorded data and print every answer and its revisions"
EXAMPLE = (
    "moteloom replay --schema examples/roadbridge/schema.sneeql --input road=examples/roadbridge/recording/road.csv \\\n"
    "    --until 3600 'SELECT site, temp FROM road WHERE temp < 0'"
)
NOT_EXECUTABLE = 4
if TYPE_CHECKING:
    from acquisition.extent import Catalog
    from basestation.replay.driver import Replay
    from basestation.replay.inputs import Input
    from basestation.replay.statements import SubmittedStatement

InputArgument: TypeAlias = tuple[str, int | None, str]
"""(extent, tick of a version, file)"""
_INPUT = re.compile(r"(?P<extent>[^=@]+)(@(?P<tick>\d+))?=(?P<file>.+)", re.DOTALL)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = f"""inputs are CSV (a header; an empty field is null, "" the empty string) or Parquet:
  sensed   _tick, _site (or site), attributes; _arrival, the tick of delivery, if it is not _tick
  pushed   _arrival, _tick if a tuple has a timestamp of its own, attributes
  stored   attributes; --input t=A --input t@600=B gives versions of the table
  streams may have _weight (-1 retracts a tuple) and _replaces (the index of the corrected
  tuple; 0 for the reading with the tick and site of the row)

A replay begins at the first delivery or tick of its inputs, and asks one-off queries at its end. REVISE, DELETE and INSERT run at the end, after the last delivery.
exit codes: 0 done, 2 wrong schema, query or time, 3 wrong input or a failed query, 4 not executable in this version

example:
  {EXAMPLE}"""
    add_schema(parser)
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        type=_input,
        metavar="EXTENT[@TICK]=FILE",
        help="the recorded data of an extent; once for each stream, once for each version of a stored extent",
    )
    parser.add_argument(
        "--from",
        dest="begin",
        type=_time,
        metavar="TIME",
        help="the first clock tick, or an RFC 3339 time; earlier deliveries are left out; default: the first delivery or tick",
    )
    parser.add_argument(
        "--until",
        type=_time,
        metavar="TIME",
        help="the last clock tick, or an RFC 3339 time; default: the last delivery, tick or version",
    )
    parser.add_argument(
        "--ask", type=_time, metavar="TIME", help="when one-off queries are asked; default: at the last clock tick"
    )
    parser.add_argument(
        "-o", "--output", choices=("table", "json", "csv"), default="table", help="json is one object a line"
    )
    add_query(parser)


def _input(text: str) -> InputArgument:
    match = _INPUT.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(f"`{text}` is not EXTENT=FILE or EXTENT@TICK=FILE")
    return match["extent"], None if match["tick"] is None else int(match["tick"]), match["file"]


def _time(text: str) -> int | datetime:
    if re.fullmatch(r"\d{1,18}", text, re.ASCII):
        return int(text)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise argparse.ArgumentTypeError(
            f"`{text}` is neither a tick, a whole number from 0, nor a time such as 2026-11-18T08:00:00Z"
        )
    return time


def _tick_of(time: int | datetime | None, tick_ms: int) -> int | None:
    """The tick at or before a time; 0 before 1970."""
    if time is None or isinstance(time, int):
        return time
    return max(0, (time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=tick_ms))


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
    from basestation.replay.driver import Replay
    from basestation.replay.inputs import read_recording
    from basestation.replay.statements import read_catalog, read_statements

    catalog = read_catalog(read(args.schema), args.schema)
    text, name = query_text(args)
    statements = read_statements([text], catalog, name)
    recording = read_recording(catalog, _inputs(args.input, catalog), statements, Path(args.schema).parent)
    if recording.catalog is not catalog:
        statements = read_statements([text], recording.catalog, name)
    begin, until, ask = (_tick_of(time, catalog.tick_ms) for time in (args.begin, args.until, args.ask))
    begin = recording.begin() if begin is None else begin
    until = recording.end() if until is None else until
    if args.begin is not None and begin > until:
        return _refuse(f"--from is tick {begin}, after the last clock tick {until}")
    if ask is not None and not begin <= ask <= until:
        return _refuse(f"--ask is tick {ask}, expected a tick of the replay: {begin} to {until}")
    replay = Replay(recording, statements, until, begin=begin, ask=until if ask is None else ask)
    return _print(replay, args.output, {given.number: given for given in statements})


def _refuse(reason: str) -> int:
    print(f"moteloom: {reason}; change --from, --until or --ask", file=sys.stderr)
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
            inputs[name] = file
    return inputs


def _print(replay: "Replay", output: str, statements: "Mapping[int, SubmittedStatement]") -> int:
    """Print the updates as the engine emits them. A failed query ends with an error; the others continue."""
    from basestation.replay.csv_output import CsvOutput
    from basestation.replay.json_output import JsonOutput
    from basestation.replay.table_output import TableOutput
    from basestation.updates.update import QueryFailure
    from gateway.diagnostics import Diagnostic

    formats: dict[str, type[TableOutput] | type[JsonOutput] | type[CsvOutput]]
    formats = {"table": TableOutput, "json": JsonOutput, "csv": CsvOutput}
    answers = formats[output](replay.queries)
    code, progress = 0, _ReplayProgress(replay.begin, replay.until)
    sys.stdout.write(answers.begin())
    for updates in replay.updates():
        progress.pause()
        failures = [update for update in updates if isinstance(update, QueryFailure)]
        sys.stdout.write(answers.updates([update for update in updates if not isinstance(update, QueryFailure)]))
        for failure in failures:
            given = statements[failure.query]
            span = given.bound.statement.span
            print_diagnostics([Diagnostic(failure.code, failure.message, given.source, span)], output == "json")
            code = BAD_INPUT
        progress.at(replay.clock)
    progress.pause()
    sys.stdout.write(answers.end(replay.until, replay.ledger()))
    if output == "table":
        for name, counts in replay.ledger().items():
            first = sorted(counts, key=lambda what: ({"received": 0, "accepted": 1}.get(what, 2), what))
            listed = ", ".join(f"{counts[what]} {what}" for what in first if counts[what])
            print(f"{name}: {listed or 'nothing received'}", file=sys.stderr)
    return code


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
            print(f"\rtick {clock} of {self._until} ({share} %)", end="", file=sys.stderr, flush=True)

    def pause(self) -> None:
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self._shown = False
