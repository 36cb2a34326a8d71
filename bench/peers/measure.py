"""Measure a peer: data are written for it, it runs a short and a long time, and its answers are held against the ceiling's."""

import csv
import json
import os
import subprocess
from functools import cache
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from bench import ceiling, data
from bench.record import ROOT
from bench.tasks import TASKS, Case

BATCH = 65_536
CLOSE = 1e-9
"""Sums of peers are rounded on the way."""


class LeftOut(Exception):
    """This peer cannot be measured here; the text says why."""


def written(folder, form, sites, readings):
    """The readings of `road` in a form, in a folder; written once."""
    place = Path(folder) / f"{form}-{sites}-{readings}"
    if place.exists():
        return place
    stream = data.road(sites, readings)
    table = pa.table({"tick": stream.tick, **stream.columns})
    if form == "parquet":
        place.mkdir()
        for at in range(0, readings, BATCH):
            pa.parquet.write_table(table.slice(at, BATCH), place / f"{at:012}.parquet")
    else:
        pa.csv.write_csv(table, place, pa.csv.WriteOptions(include_header=form == "csv"))
    return place


def run(peer, task, sites, readings, folder, out="-"):
    """(seconds, peak bytes of the largest of its processes)."""
    if not peer.python.exists():
        raise LeftOut("it has no environment; `make bench-peers` makes it")
    command = [peer.python, peer.script, task, written(folder, peer.form, sites, readings), out]
    java = ROOT / ".venv" / "java"  # the one that `make setup` puts there where the system has none
    environment = os.environ | ({"JAVA_HOME": str(java)} if java.exists() else {})
    log = Path(folder) / f"{peer.name}.log"
    with log.open("w+") as output:
        process = subprocess.Popen(map(str, command), stdout=output, stderr=subprocess.STDOUT, env=environment)
        peak = _wait(process)
        output.seek(0)
        lines = output.read().strip().splitlines()
    if process.returncode:
        raise LeftOut(lines[-1] if lines else "it failed")
    return json.loads(lines[-1][lines[-1].index('{"seconds"') :])["seconds"], peak


def _wait(process):
    """Like `process.wait`, and tells the most memory that it or one of its children held at once."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_maxrss << 10


def rates(peer, task, sites, folder, repetitions):
    """Readings, seconds and peak bytes of each repetition; the fastest of the short runs is taken for the time to start."""
    short, long = peer.sizes[task]
    runs = [[run(peer, task, sites, readings, folder) for readings in (short, long)] for _ in range(repetitions)]
    start = min(seconds for (seconds, _), _ in runs)
    for _, (seconds, peak) in runs:
        if seconds <= start:
            raise LeftOut(f"{long:,} readings took no longer than {short:,}: this machine does something else, too")
        yield long - short, seconds - start, peak


def agrees(peer, task, sites, folder):
    """For how many readings its answers are those of the ceiling, but for rounding; -1 if they differ.

    Windows that are not over at the end some hand out and some do not: they are left out on both sides.
    """
    readings = peer.sizes[task][0]
    out = Path(folder) / f"{peer.name}-{task}-said"
    run(peer, task, sites, readings, folder, str(out))
    theirs = _said(out, task)
    ours = _expected(task, sites, readings)
    until = min(ours[:, 0].max(), theirs[:, 0].max())
    if until < ours[:, 0].max() / 4:
        return -1
    ours, theirs = (rows[rows[:, 0] <= until] for rows in (ours, theirs))
    if ours.shape != theirs.shape or not np.allclose(ours, theirs, rtol=CLOSE, atol=0):
        return -1
    return readings


def _said(out, task):
    """Return the output files of a peer as rows in order."""
    files = (
        [out] if out.is_file() else sorted(file for file in out.rglob("*") if file.is_file() and file.suffix != ".crc")
    )
    width = 3 if task == "W1" else 6
    rows = []
    for file in files:
        if "_spark_metadata" in file.parts:
            continue
        with file.open(newline="") as lines:
            rows += [row[:width] for row in csv.reader(lines) if row and row[0] != "tick"]
    return _ordered(np.array(rows, float))


@cache
def _expected(task, sites, readings):
    case = Case(TASKS[task], sites, readings, BATCH)
    streams = case.streams()
    system = ceiling.system("numpy", task)(case, streams)
    rows = []
    for parts, last in data.batches(streams, BATCH):
        for said in system.step(system.prepare(parts, last)):
            tick = said.tick if task == "W1" else said.tags()[0]
            columns = said.columns[1:] if task == "W1" else said.columns
            rows.append(np.column_stack([tick, *(values for values, _ in columns)]).astype(float))
    return _ordered(np.concatenate(rows))


def _ordered(rows):
    return rows[np.lexsort((rows[:, 1], rows[:, 0]))]


def rows_of(peer, task, sites, folder, repetitions):
    """Rows for the CSV of tasks, in the columns of the other systems; those that make no sense here are empty."""
    right = agrees(peer, task, sites, folder)
    for repetition, (done, seconds, peak) in enumerate(rates(peer, task, sites, folder, repetitions), 1):
        yield {
            "task": task,
            "system": peer.name,
            "sites": sites,
            "readings": peer.sizes[task][1],
            "batch": BATCH,
            "queries": 1,
            "repetition": repetition,
            "done": done,
            "seconds": round(seconds, 6),
            "median_us": "",
            "p99_us": "",
            "built_bytes": "",
            "peak_bytes": peak,
            "agrees": right,
        }


def line(rows):
    """Return the line to print for one peer at one task."""
    rate = median(row["done"] / row["seconds"] for row in rows)
    note = "  DIFFERS" if rows[0]["agrees"] < 0 else ""
    return f"{rows[0]['task']} {rows[0]['sites']:>5} sites, {rows[0]['system']:<24}{rate:>13,.0f}/s{note}"
