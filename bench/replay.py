"""`moteloom replay` of a recording, beside DuckDB with one thread: CPU time and memory of whole processes. `python -m bench.replay`.

54 sites sample every 30 seconds; values are integers. A filter writes its answers to a CSV file. Sums of the answers are compared.
Systems take turns; the median of three turns counts. DuckDB knows no late readings and gives no revisions.
"""

import argparse
import csv
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench import record

EVERY, SITES, TURNS = 30, 54, 3
SCHEMA = f"road: sensed (site:integer, temp:integer, vibration:integer) every {EVERY} sec at sites 1 .. {SITES} wait 5 sec late drop\n"
QUERY = "SELECT site, temp FROM road WHERE temp < 50 AND vibration > 90"
DUCKDB = """
import sys, duckdb
source, target = sys.argv[1:]
connection = duckdb.connect()
connection.execute("SET threads = 1")
read = "read_csv" if source.endswith(".csv") else "read_parquet"
query = f"SELECT _tick, site, temp FROM {read}('{source}') WHERE temp < 50 AND vibration > 90 ORDER BY _tick, site"
connection.execute(f"COPY ({query}) TO '{target}' (HEADER)")
"""
CASES = (("csv", 1_000_000), ("parquet", 10_000_000))


def make(path, kind, rows):
    """Write the recording."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    rng = np.random.default_rng(1)
    epochs = -(-rows // SITES)
    ticks = np.repeat(np.arange(epochs) * EVERY, SITES)[:rows]
    sites = np.tile(np.arange(1, SITES + 1), epochs)[:rows]
    values = {name: rng.integers(0, 100, rows) for name in ("temp", "vibration")}
    table = pa.table({"_tick": ticks, "site": sites, **values})
    if kind == "csv":
        pyarrow.csv.write_csv(table, path)
    else:
        pyarrow.parquet.write_table(table, path)


def cost(command, target):
    """CPU seconds and MB at most of a process that writes its answers to `target`."""
    with target.open("w") as out:
        began = time.monotonic()
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.PIPE)
        errors = process.stderr.read()
        _, status, used = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"{command[0]} ends with {status}: {errors.decode()[-500:]}")
    return {"s": used.ru_utime + used.ru_stime, "MB": used.ru_maxrss / 1e3, "wall": time.monotonic() - began}


def answered(path):
    """(rows, the sum of `temp`) of a file of answers."""
    with path.open(newline="") as file:
        temps = [int(row["temp"]) for row in csv.DictReader(file)]
    return len(temps), sum(temps)


def figures(folder, cases):
    """Yield the figures of each case."""
    (folder / "schema").write_text(SCHEMA)
    for kind, rows in cases:
        path, ours, theirs = folder / f"road.{kind}", folder / "ours.csv", folder / "theirs.csv"
        making = multiprocessing.get_context("spawn").Process(target=make, args=(path, kind, rows))
        making.start()  # in a process of its own: the peak of a command is at least the memory of the process that starts it
        making.join()
        command = [sys.executable, "-m", "gateway.cli", "replay", "--schema", str(folder / "schema"), "-o", "csv"]
        command += ["--input", f"road={path}", QUERY]
        duckdb = [sys.executable, "-c", DUCKDB, str(path), str(theirs)]
        runs = {"Moteloom": [], "DuckDB": []}
        for _ in range(TURNS):
            runs["Moteloom"].append(cost(command, ours))
            runs["DuckDB"].append(cost(duckdb, folder / "duckdb.out"))
        assert answered(ours) == answered(theirs), (answered(ours), answered(theirs))
        case = f"a filter over {rows:,} rows of {kind}"
        median = {
            who: {name: statistics.median(run[name] for run in each) for name in each[0]} for who, each in runs.items()
        }
        for who, each in median.items():
            yield case, f"CPU of {who}", round(each["s"], 3), "s"
            yield case, f"memory of {who}", round(each["MB"]), "MB"
        yield case, "CPU, times DuckDB", round(median["Moteloom"]["s"] / median["DuckDB"]["s"], 2), "times"
        path.unlink()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--share", type=float, default=1.0, help="of the rows of each case")
    options = parser.parse_args()
    cases = [(kind, int(rows * options.share)) for kind, rows in CASES]
    with tempfile.TemporaryDirectory() as folder:
        found = []
        for figure in figures(Path(folder), cases):
            found.append(figure)
            print("{}: {} {} {}".format(*figure), flush=True)
    if options.share == 1:
        record.keep_figures("replay", "default", found)


if __name__ == "__main__":
    main()
