"""moteloom restore: put a backup in the place of a station's data, after checking it."""

import argparse
import sys
from pathlib import Path

from basestation.cli.station_arguments import DATA

HELP = "check a backup and put it in the place of a stopped station's data"
EXAMPLE = "moteloom restore --data moteloom-data monday.db"
FAILED = 1


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = f"""The file of before stays beside it as station.db.before-restore.
exit codes: 0 done, 1 not possible, nothing is changed

example:
  {EXAMPLE}"""
    parser.add_argument("file", type=Path, metavar="FILE", help="what `moteloom backup` wrote")
    parser.add_argument(
        "--data", type=Path, default=Path(DATA), metavar="DIR", help="of the station; default: %(default)s"
    )


def run(options: argparse.Namespace) -> int:
    from basestation.station.journal_file import JournalError, restore

    try:
        restore(options.file, options.data)
    except JournalError as error:
        print(f"moteloom: {error}; {error.help}", file=sys.stderr)
        return FAILED
    print(f"{options.data} is as it was in {options.file}", file=sys.stderr)
    return 0
