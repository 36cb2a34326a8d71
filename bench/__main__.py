"""`python -m bench [--full] [NAME …]`: all measurements, or those named: tasks W1 to W8, and the scripts below."""

import argparse
import subprocess
import sys

from bench import record, report
from bench.tasks import TASKS

SCRIPTS = {  # name -> whether it takes --full
    "starting": False, "sharing": True, "flat": False, "codec": False, "joins": False, "simulation": False, "network": True,
    "where": False, "epochs": False, "station": True,
}  # fmt: skip


def main():
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--full", action="store_true", help="every size besides, each once; takes two hours")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join([*TASKS, *SCRIPTS]))
    options = parser.parse_args()
    unknown = set(options.names) - {*TASKS, *SCRIPTS}
    if unknown:
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join([*TASKS, *SCRIPTS])}")
    full = ["--full"] if options.full else []
    tasks = [name for name in options.names if name in TASKS]
    runs = [["bench.run", *full, *tasks]] if tasks or not options.names else []
    runs += [
        [f"bench.{name}", *(full if sized else [])]
        for name, sized in SCRIPTS.items()
        if name in options.names or not options.names
    ]
    for module, *arguments in runs:
        print(f"bench: {module} {' '.join(arguments)}".rstrip(), flush=True)
        if subprocess.run([sys.executable, "-m", module, *arguments], cwd=record.ROOT).returncode:
            return 1
    report.main()
    return 0


if __name__ == "__main__":
    sys.exit(main())
