"""Arguments and error output of the commands that take a schema and a query."""

import argparse
import json
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, BinaryIO

from acquisition.errors import InputError
from gateway.cli.terminal import printable

if TYPE_CHECKING:
    from gateway.diagnostics import Diagnostic

REFUSED, BAD_INPUT = 2, 3
"""Exit codes."""
MOST_ERRORS = 20
"""So many errors are printed as text."""
LONGEST_TEXT = 10_000_000
"""The most bytes of a query or a schema. A device may never end."""


def add_query(parser: argparse.ArgumentParser) -> None:
    """The arguments `(QUERY | -f FILE)`."""
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("query", nargs="?", metavar="QUERY", help="SNEEql text; several statements are separated by `;`")
    group.add_argument("-f", "--file", metavar="FILE", help="read the text from a file; `-` is standard input")


def add_schema(parser: argparse.ArgumentParser) -> None:
    """The argument `--schema FILE`."""
    parser.add_argument("--schema", required=True, metavar="FILE", help="the declarations of the extents")


def query_text(args: argparse.Namespace) -> tuple[str, str | None]:
    """The text of the query, and its name in errors. Raises InputError."""
    if args.file is None:
        return args.query, None
    if args.file == "-":
        if sys.stdin is None:
            raise InputError("SN501", "cannot be read: it is closed", "standard input")
        try:
            return _text(sys.stdin.buffer, "standard input"), "standard input"
        except (OSError, UnicodeDecodeError) as why:
            raise _unreadable("standard input", why) from why
    return read(args.file), args.file


def read(path: str) -> str:
    """The text of a file. Raises InputError."""
    try:
        with open(path, "rb") as file:
            return _text(file, path)
    except (OSError, UnicodeDecodeError) as why:
        raise _unreadable(path, why) from why


def _text(file: BinaryIO, name: str) -> str:
    content = file.read(LONGEST_TEXT + 1)
    if len(content) > LONGEST_TEXT:
        raise InputError("SN501", f"cannot be read: it is longer than {LONGEST_TEXT:,} bytes", name)
    return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")


def _unreadable(name: str, why: OSError | UnicodeDecodeError) -> InputError:
    return InputError("SN501", f"cannot be read: {getattr(why, 'strerror', None) or why}", name)


def print_diagnostics(diagnostics: "Iterable[Diagnostic]", as_json: bool, **of: object) -> None:
    """Print errors as JSON lines on standard output, with the further keys `of`, or the first as text on standard error."""
    left_out = 0
    for number, diagnostic in enumerate(diagnostics):
        if as_json:
            print(json.dumps(diagnostic.as_json() | of, ensure_ascii=False))
        elif number < MOST_ERRORS:
            print(printable(diagnostic.render()), end="\n\n", file=sys.stderr)
        else:
            left_out += 1
    if left_out:
        print(f"{left_out:,} more errors; `-o json` prints all", file=sys.stderr)


def print_input_error(error: InputError, as_json: bool) -> None:
    """Print an error of an input as one line with file, row and column."""
    if as_json:
        print(
            json.dumps(
                {
                    "type": "error", "kind": "input", "code": error.code, "file": error.file, "row": error.row,
                    "column": error.column, "message": error.message, "expected": [], "help": error.help,
                },
                ensure_ascii=False,
            )
        )  # fmt: skip
    else:
        print(printable(f"{error.code}: {error}{'; ' + error.help if error.help else ''}"), file=sys.stderr)
