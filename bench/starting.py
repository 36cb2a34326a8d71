"""How long it takes to start (`moteloom --help`, importing the engine), and to read texts. `python -m bench.starting`.

An installed package has its bytecode. So bytecode is written before times are taken, to a folder of its own, whatever the
environment variables are. The very first start, which compiles, is shown beside it.
"""

import os
import subprocess
import sys
import tempfile
import time
from statistics import median

from basestation.language.parser import parse
from bench import record
from bench.tasks import Q3
from gateway.source import Source

ROUNDS = 15
COMMANDS = {  # what -> (arguments of Python, goal in seconds)
    "python that does nothing": (["-c", "pass"], None),
    "import numpy": (["-c", "import numpy"], None),
    "import the engine": (["-c", "import basestation.execution.engine"], 0.2),
    "moteloom --help": (["-c", "import sys; from gateway.cli import main; sys.exit(main(['--help']))"], 0.3),
}
LONG = "ten thousand characters of queries"
LONG_GOAL = 0.1


FIRST = "import the engine, the very first time"


def seconds(arguments, bytecode):
    environment = os.environ | {"PYTHONPYCACHEPREFIX": bytecode, "PYTHONDONTWRITEBYTECODE": ""}
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, *arguments], cwd=record.ROOT, env=environment, stdout=subprocess.DEVNULL, check=True
    )
    return time.perf_counter() - start


def reading():
    """Seconds that it takes to read a long text without a mistake."""
    query = f"{Q3};\n"
    text = query * (10_000 // len(query))
    start = time.perf_counter()
    parsed = parse(Source(text))
    spent = time.perf_counter() - start
    assert not parsed.diagnostics
    return spent


def main():
    goals = {what: goal for what, (_, goal) in COMMANDS.items()} | {LONG: LONG_GOAL}
    times = {what: [] for what in [*goals, FIRST]}
    with tempfile.TemporaryDirectory() as bytecode:
        seconds(COMMANDS["import numpy"][0], bytecode)
        times[FIRST].append(seconds(COMMANDS["import the engine"][0], bytecode))
        for arguments, _ in COMMANDS.values():
            seconds(arguments, bytecode)
        for _ in range(ROUNDS):
            times[LONG].append(reading())
            for what, (arguments, _) in COMMANDS.items():
                times[what].append(seconds(arguments, bytecode))
    figures = []
    for what, goal in (goals | {FIRST: None}).items():
        for figure, of in (("fastest", min), ("median", median), ("slowest", max)):
            figures.append((what, figure, round(of(times[what]), 4), "s"))
        against = "" if goal is None else f", goal {goal} s"
        shown = "   ".join(f"{figure} {value:.3f} s" for _, figure, value, _ in figures[-3:])
        print(f"{what:<40}{shown}{against}")
    record.keep_figures("starting", "default", figures)


if __name__ == "__main__":
    main()
