"""Raw numbers as CSV in bench/results/: one file for each kind of measurement, rows of a run under one time."""

import csv
import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
RESULTS = Path(__file__).parent / "results"


def conditions(size):
    """Return the first columns of every row of a run. `size` is how much was requested: default, full, or a choice."""
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "size": size,
        "machine": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def keep(name, rows):
    """Append rows (dicts that all have the same keys) to a file; one that has other columns is an error."""
    file = RESULTS / f"{name}.csv"
    RESULTS.mkdir(exist_ok=True)
    new = not file.exists()
    if not new and (have := _header(file)) != list(rows[0]):
        raise ValueError(f"{file} has the columns {have}, not {list(rows[0])}")
    with file.open("a", newline="") as out:
        writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerows(rows)


def keep_figures(name, size, figures):
    """Append single figures, (case, figure, value, unit) each, under one time."""
    head = conditions(size)
    names = ("case", "figure", "value", "unit")
    keep(name, [head | dict(zip(names, figure, strict=True)) for figure in figures])


def child(module, *arguments):
    """Run a module in a process of its own, with no other memory than it needs; return its JSON output."""
    done = subprocess.run([sys.executable, "-m", module, *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"bench: {module} failed with {' '.join(arguments)}")
    return json.loads(done.stdout)


def kept(name):
    """All rows of a file as dicts of texts, oldest first; none if there is no such file."""
    file = RESULTS / f"{name}.csv"
    if not file.exists():
        return []
    with file.open(newline="") as lines:
        return list(csv.DictReader(lines))


def _header(file):
    with file.open(newline="") as lines:
        return next(csv.reader(lines))


def _commit():
    """The commit that is measured, with a + where the tree differs from it; empty outside a repository."""
    try:
        found = subprocess.run(
            ["git", "describe", "--always", "--dirty=+", "--exclude=*"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return found.stdout.strip()


def _processor():
    about = Path("/proc/cpuinfo")
    if about.exists():
        names = [line.split(":", 1)[1].strip() for line in about.open() if line.startswith("model name")]
        if names:
            return f"{platform.machine()} {names[0]}"
    return platform.machine()
