"""moteloom push: deliver tuples of a file or of standard input to a pushed extent of a running station."""

import argparse
import json
import sys
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from basestation.cli.station_arguments import add_station, client_of, print_station_error

if TYPE_CHECKING:
    from moteloom.client import StationClient

HELP = "deliver tuples of a file, or of standard input as they come, to an extent"
EXAMPLE = "moteloom push traffic belt.jsonl"
FORMATS = {
    "jsonl": "application/x-ndjson", "json": "application/json", "csv": "text/csv",
    "arrow": "application/vnd.apache.arrow.stream", "senml": "application/senml+json",
}  # fmt: skip
SUFFIXES = {".csv": "csv", ".json": "json", ".arrow": "arrow", ".arrows": "arrow", ".senml": "senml"}
BAD_ROWS = 3
BATCH_BYTES = 8 << 20
"""Of lines that are sent in one request."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = f"""Each receipt means that its tuples are durable. Wrong rows are printed with their number and
reason; the others are taken. JSON lines from standard input are delivered as they come.
exit codes: 0 all rows are taken, 2 refused, 3 some rows are wrong, or no such file,
  4 no station answers

example:
  {EXAMPLE}
  read-scales | moteloom push traffic"""
    parser.add_argument("extent", metavar="EXTENT", help="a pushed extent of the station")
    parser.add_argument("file", nargs="?", default="-", metavar="FILE", help="default: `-`, standard input")
    parser.add_argument(
        "--format", choices=FORMATS, help="default: by the suffix of the file; jsonl for any other and standard input"
    )
    add_station(parser)


def run(options: argparse.Namespace) -> int:
    """Run the command; the exit code."""
    from moteloom.client import StationError

    form = options.format or SUFFIXES.get(Path(options.file).suffix, "jsonl")
    try:
        if options.file == "-":
            return _push(options, form, cast(BufferedReader, sys.stdin.buffer))
        with open(options.file, "rb") as stream:
            return _push(options, form, stream)
    except StationError as error:
        return print_station_error(error, options.output == "json")
    except OSError as why:
        print(f"moteloom: {options.file} cannot be read: {why.strerror}", file=sys.stderr)
        return BAD_ROWS


def _push(options: argparse.Namespace, form: str, stream: BufferedReader) -> int:
    from moteloom.client import StationError

    client, accepted, rejected, rows = client_of(options), 0, 0, 0
    for body in split_lines(stream) if form == "jsonl" else [stream.read()]:
        try:
            receipt = _deliver(client, options.extent, body, FORMATS[form])
        except StationError:
            if rows:
                done = f"rows 1 to {rows:,} were answered: accepted {accepted:,}, rejected {rejected:,}"
                print(
                    f"moteloom: {done}; begin behind them to repeat it. Rows of the refusal count from there",
                    file=sys.stderr,
                )
            raise
        for wrong in receipt["errors"]:
            wrong["row"] += rows
            place = f"row {wrong['row']}" + (f", column {wrong['column']}" if wrong["column"] else "")
            print(f"moteloom: {place}: {wrong['code']}: {wrong['message']}", file=sys.stderr)
        if options.output == "json":
            print(json.dumps(receipt), flush=True)
        accepted, rejected = accepted + receipt["accepted"], rejected + receipt["rejected"]
        rows += body.count(b"\n")
    if options.output != "json":
        print(f"accepted {accepted:,}, rejected {rejected:,}")
    return BAD_ROWS if rejected else 0


def _deliver(client: "StationClient", extent: str, body: bytes, media_type: str) -> dict[str, Any]:
    """The receipt of a body, also of one without a right row: the next one may have some."""
    from moteloom.client import StationError

    try:
        return client.push(extent, body, media_type)
    except StationError as error:
        if error.problem.get("code") != "rejected":
            raise
        return {
            "extent": extent,
            "accepted": 0,
            "rejected": error.problem["rejected"],
            "errors": error.problem["errors"],
        }


def split_lines(stream: BufferedReader) -> Iterator[bytes]:
    """Whole lines as soon as they are there, some BATCH_BYTES at a time at most."""
    rest = b""
    while chunk := stream.read1(BATCH_BYTES):
        data = rest + chunk
        end = data.rfind(b"\n") + 1
        if end:
            yield data[:end]
        rest = data[end:]
    if rest:
        yield rest
