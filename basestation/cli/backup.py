"""moteloom backup: a copy of a station's data, also while it runs."""

import argparse
import sys
from pathlib import Path

from basestation.cli.station_arguments import DATA

HELP = "copy the data of a running or stopped station into one file"
EXAMPLE = "moteloom backup --data moteloom-data monday.db"
FAILED = 1


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = f"""exit codes: 0 done, 1 not possible

example:
  {EXAMPLE}"""
    parser.add_argument("file", type=Path, metavar="FILE", help="the copy; it is replaced when the new one is whole")
    parser.add_argument(
        "--data", type=Path, default=Path(DATA), metavar="DIR", help="of the station; default: %(default)s"
    )


def run(options: argparse.Namespace) -> int:
    from basestation.station.journal_file import JournalError, backup

    try:
        backup(options.data, options.file)
    except JournalError as error:
        print(f"moteloom: {error}; {error.help}", file=sys.stderr)
        return FAILED
    print(f"{options.file}: {options.file.stat().st_size:,} bytes", file=sys.stderr)
    return 0
