"""moteloom restore: put a backup in the place of a station's data, after checking it."""

import argparse

from basestation.cli.journal_command import add_file_and_data, run_on_journal

HELP = "check a backup and put it in the place of a stopped station's data"
EXAMPLE = "moteloom restore --data moteloom-data monday.db"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = f"""The file of before stays beside it as station.db.before-restore.
exit codes: 0 done, 1 not possible, nothing is changed

example:
  {EXAMPLE}"""
    add_file_and_data(parser, "what `moteloom backup` wrote")


def run(options: argparse.Namespace) -> int:
    from basestation.station.journal_file import restore

    def action() -> str:
        restore(options.file, options.data)
        return f"{options.data} is as it was in {options.file}"

    return run_on_journal(action)
