"""How long it takes to start: `moteloom --help`, and importing the engine. `python -m bench.starting`."""

import subprocess
import sys
import time
from statistics import median

from bench import record

ROUNDS = 15
COMMANDS = {  # what -> (arguments of Python, goal in seconds)
    "python that does nothing": (["-c", "pass"], None),
    "import numpy": (["-c", "import numpy"], None),
    "import the engine": (["-c", "import basestation.execution.engine"], 0.2),
    "moteloom --help": (["-c", "import sys; from gateway.cli import main; sys.exit(main(['--help']))"], 0.3),
}


def seconds(arguments):
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], cwd=record.ROOT, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def main():
    times = {what: [] for what in COMMANDS}
    for _ in range(ROUNDS):
        for what, (arguments, _) in COMMANDS.items():
            times[what].append(seconds(arguments))
    figures = []
    for what, (_, goal) in COMMANDS.items():
        for figure, of in (("fastest", min), ("median", median), ("slowest", max)):
            figures.append((what, figure, round(of(times[what]), 4), "s"))
        against = "" if goal is None else f", goal {goal} s"
        told = "   ".join(f"{figure} {value:.3f} s" for _, figure, value, _ in figures[-3:])
        print(f"{what:<28}{told}{against}")
    record.keep_figures("starting", "default", figures)


if __name__ == "__main__":
    main()
