"""Journal command: what `moteloom backup` and `moteloom restore` have in common."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from basestation.cli.station_arguments import DATA

FAILED = 1


def add_file_and_data(parser: argparse.ArgumentParser, file: str) -> None:
    """The arguments FILE, whose help is `file`, and --data."""
    parser.add_argument("file", type=Path, metavar="FILE", help=file)
    parser.add_argument(
        "--data", type=Path, default=Path(DATA), metavar="DIR", help="of the station; default: %(default)s"
    )


def run_on_journal(action: Callable[[], str]) -> int:
    """Carry out an action and print its outcome, or why it is not possible; return the exit code."""
    from basestation.station.journal_file import JournalError

    try:
        outcome = action()
    except JournalError as error:
        print(f"moteloom: {error}; {error.help}", file=sys.stderr)
        return FAILED
    print(outcome, file=sys.stderr)
    return 0
