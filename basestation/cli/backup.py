"""moteloom backup: a copy of a station's data, also while it runs."""

import argparse

from basestation.cli.journal_command import add_file_and_data, run_on_journal

HELP = "copy the data of a running or stopped station into one file"
EXAMPLE = "moteloom backup --data moteloom-data monday.db"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = f"""exit codes: 0 done, 1 not possible

example:
  {EXAMPLE}"""
    add_file_and_data(parser, "the copy; it is replaced when the new one is whole")


def run(options: argparse.Namespace) -> int:
    from basestation.station.journal_file import backup

    def action() -> str:
        backup(options.data, options.file)
        return f"{options.file}: {options.file.stat().st_size:,} bytes"

    return run_on_journal(action)
