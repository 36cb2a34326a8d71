"""moteloom audit: who changed what at a station, from where and with which result, from its data directory."""

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from basestation.cli.station_arguments import DATA

if TYPE_CHECKING:
    from basestation.rest.access import AuditEntry

HELP = "show which user changed what at a station, and which requests were refused"
EXAMPLE = "moteloom audit --last 20"
FAILED = 1
PAGE = 1_000
REFUSED_FROM = 400


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = f"""An entry is kept before its action begins; one without a result was cut off.
exit codes: 0 done, 1 the data directory cannot be used

example:
  {EXAMPLE}
  moteloom audit --user anna -o json
  moteloom audit --refused"""
    parser.add_argument("--user", metavar="NAME", help="only actions of this user")
    parser.add_argument("--refused", action="store_true", help="only requests that were refused or failed")
    parser.add_argument("--after", type=_number, default=0, metavar="N", help="begin behind the entry with this number")
    parser.add_argument("--last", type=_number, metavar="N", help="only the newest N of them")
    parser.add_argument(
        "--data", type=Path, default=Path(DATA), metavar="DIR", help="of the station; default: %(default)s"
    )
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="json is one object a line")


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 16):
        raise argparse.ArgumentTypeError(f"`{text[:20]}` is no whole number from 0 on")
    return int(text)


def run(options: argparse.Namespace) -> int:
    from collections import deque

    from basestation.station.access_file import AccessFile
    from basestation.station.journal_file import JournalError

    chosen: deque[AuditEntry] = deque(maxlen=options.last)
    try:
        with AccessFile(options.data) as access:
            after = options.after
            while found := access.audit(after, PAGE, options.user):
                after = found[-1].number
                chosen += (entry for entry in found if not options.refused or (entry.status or 0) >= REFUSED_FROM)
                if options.last is None:
                    _print(chosen, options.output)
                    chosen.clear()
    except JournalError as error:
        print(f"moteloom: {error}; {error.help}", file=sys.stderr)
        return FAILED
    _print(chosen, options.output)
    return 0


def _print(entries: "Iterable[AuditEntry]", output: str) -> None:
    for entry in entries:
        found = entry.as_json()
        if output == "json":
            print(json.dumps(found, ensure_ascii=False))
            continue
        result = "no result" if entry.status is None else str(entry.status)
        result += f" {entry.code}" if entry.code else ""
        about = "" if entry.query is None else f", query {entry.query}"
        token = "" if entry.token is None else f" (token {entry.token})"
        where = f" from {entry.address}" if entry.address else ""
        print(f"{entry.number:>6}  {found['time']}  {entry.user or '-'}{token}{where}: {entry.action}: {result}{about}")
