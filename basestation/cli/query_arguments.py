"""Arguments and error output of the commands that take a schema and a query."""

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from acquisition.errors import InputError

if TYPE_CHECKING:
    from gateway.diagnostics import Diagnostic

REFUSED, BAD_INPUT = 2, 3
"""Exit codes."""
MOST_ERRORS = 20
"""So many errors are printed as text."""


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
            return sys.stdin.buffer.read().decode("utf-8-sig"), "standard input"
        except UnicodeDecodeError as why:
            raise InputError("SN501", f"cannot be read: {why}", "standard input") from why
    return read(args.file), args.file


def read(path: str) -> str:
    """The text of a file. Raises InputError."""
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as why:
        raise InputError("SN501", f"cannot be read: {getattr(why, 'strerror', None) or why}", path) from why


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


def printable(text: str) -> str:
    """Text with escapes for characters that control a terminal: names and texts of others must not."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


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
