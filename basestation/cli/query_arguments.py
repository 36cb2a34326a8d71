"""Asking: what verbs that take a schema and a query have in common: where the texts come from, how errors go out."""

import json
import sys
from pathlib import Path

from acquisition.errors import InputError

REFUSED, BAD_INPUT = 2, 3


def add_query(parser):
    """The arguments `(QUERY | -f FILE)`."""
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("query", nargs="?", metavar="QUERY", help="SNEEql text; several statements are separated by `;`")
    group.add_argument("-f", "--file", metavar="FILE", help="read the text from a file; `-` is standard input")


def add_schema(parser):
    parser.add_argument("--schema", required=True, metavar="FILE", help="the extents that can be asked")


def query_text(args):
    """The text to be run and the name that errors give it."""
    if args.file is None:
        return args.query, None
    if args.file == "-":
        try:
            return sys.stdin.buffer.read().decode("utf-8-sig"), "standard input"
        except UnicodeDecodeError as why:
            raise InputError("SN501", f"cannot be read: {why}", "standard input") from why
    return read(args.file), args.file


def read(path):
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as why:
        raise InputError("SN501", f"cannot be read: {getattr(why, 'strerror', None) or why}", path) from why


def print_diagnostics(diagnostics, as_json, **of):
    """Errors as JSON lines among the answers, with what they are `of`, or as text for people beside them."""
    for diagnostic in diagnostics:
        if as_json:
            print(json.dumps(diagnostic.as_json() | of, ensure_ascii=False))
        else:
            print(diagnostic.render(), end="\n\n", file=sys.stderr)


def print_input_error(error, as_json):
    """Bad input has no text to point at: one line with file, row and column."""
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
        print(f"{error.code}: {error}{'; ' + error.help if error.help else ''}", file=sys.stderr)
