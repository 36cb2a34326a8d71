"""Gain and size of compiled kernels: `python -m bench.kernels`; the decision is docs/decisions/0140.

Three steps of the engine as it has them in numpy, and the same as one loop in numba or one expression in numexpr: at 65,536 rows,
100 and one. The libraries are put into an environment of their own, as peers are.
"""

import argparse
import json
import subprocess
import sys
import time
import venv

import numpy as np

from bench import record
from bench.memory import held
from bench.peers import ENVIRONMENTS

FOLDER = ENVIRONMENTS / "kernels"
PYTHON = FOLDER / "bin" / "python"
LIBRARIES = ("numba", "llvmlite", "numexpr")
SIZES = (65_536, 100, 1)
ROUNDS = 7
LEAST = 0.02
"""Seconds that a round takes at least: it calls as often as that needs."""
MINUTES, SITES = 64, 1_024


def columns(rows):
    """The input of all kernels: rising minutes, sites, and two measured columns."""
    chance = np.random.default_rng(140)
    minute = np.sort(chance.integers(0, MINUTES, rows))
    return minute, chance.integers(0, SITES, rows), chance.integers(0, 100, rows), chance.random(rows) * 40


def numpy_select(temp, vibration):
    chosen = np.flatnonzero((temp < 50) & (vibration > 20))
    return temp[chosen], vibration[chosen]


def numpy_fold(minute, site, temp):
    """Least, greatest and count by minute and site."""
    cells = minute * SITES + site
    order = np.argsort(cells, kind="stable")
    sorted_cells, values = cells[order], temp[order]
    heads = np.flatnonzero(np.concatenate(([True], sorted_cells[1:] != sorted_cells[:-1])))
    counts = np.diff(np.append(heads, len(values)))
    return sorted_cells[heads], np.minimum.reduceat(values, heads), np.maximum.reduceat(values, heads), counts


def numpy_partners(minute, site):
    """Of each row, the place of the last row before it with its site; -1 where there is none."""
    order = np.argsort(site.astype(np.uint16), kind="stable")
    found = np.full(len(site), -1)
    same = site[order[1:]] == site[order[:-1]]
    found[order[1:][same]] = order[:-1][same]
    return found


def compiled():
    """The same by numba, by name."""
    from numba import njit

    @njit
    def select(temp, vibration):
        chosen, many = np.empty(len(temp), np.int64), 0
        for row in range(len(temp)):
            if temp[row] < 50 and vibration[row] > 20:
                chosen[many] = row
                many += 1
        return temp[chosen[:many]], vibration[chosen[:many]]

    @njit
    def fold(minute, site, temp):
        first, last = minute[0], minute[-1]
        size = (last - first + 1) * SITES
        counts = np.zeros(size, np.int64)
        low, high = np.empty(size, np.int64), np.empty(size, np.int64)
        for row in range(len(temp)):
            cell, value = (minute[row] - first) * SITES + site[row], temp[row]
            if counts[cell] == 0:
                low[cell] = high[cell] = value
            else:
                low[cell] = min(low[cell], value)
                high[cell] = max(high[cell], value)
            counts[cell] += 1
        cells = np.flatnonzero(counts)
        return cells + first * SITES, low[cells], high[cells], counts[cells]

    @njit
    def partners(minute, site):
        last, found = np.full(SITES, -1), np.empty(len(site), np.int64)
        for row in range(len(site)):
            found[row] = last[site[row]]
            last[site[row]] = row
        return found

    return {"select": select, "fold": fold, "partners": partners}


def by_expression():
    """numexpr can express the condition only."""
    import numexpr

    numexpr.set_num_threads(1)

    def select(temp, vibration):
        chosen = np.flatnonzero(numexpr.evaluate("(temp < 50) & (vibration > 20)"))
        return temp[chosen], vibration[chosen]

    return {"select": select}


def weights():
    """Megabytes on disk, and what importing takes in seconds and memory."""
    packages = next((FOLDER / "lib").glob("python3*")) / "site-packages"
    for library in LIBRARIES:
        folders = [packages / library, packages / f"{library}.libs"]
        size = sum(file.stat().st_size for folder in folders for file in folder.rglob("*") if file.is_file())
        yield library, "on disk", round(size / 2**20, 1), "MB"
    for library in ("numba", "numexpr"):
        before, start = held(), time.perf_counter()
        __import__(library)
        yield library, "import", round(time.perf_counter() - start, 3), "s"
        yield library, "held by the import", round((held() - before) / 2**20, 1), "MB"


def timed(kernel, given):
    """Nanoseconds of the process's own time for a call, the fastest of some rounds."""
    start, calls = time.process_time(), 0
    while time.process_time() - start < LEAST:
        kernel(*given)
        calls += 1
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time()
        for _ in range(calls):
            kernel(*given)
        best = min(best, (time.process_time() - start) / calls)
    return best * 1e9


def same(one, other):
    one, other = (found if isinstance(found, tuple) else (found,) for found in (one, other))
    return all(np.array_equal(left, right) for left, right in zip(one, other, strict=True))


def figures():
    yield from weights()
    ways = {
        "numpy": {"select": numpy_select, "fold": numpy_fold, "partners": numpy_partners},
        "numba": compiled(),
        "numexpr": by_expression(),
    }
    start, before = time.perf_counter(), held()
    minute, site, temp, vibration = columns(SIZES[0])
    takes = {"select": (temp, vibration), "fold": (minute, site, temp), "partners": (minute, site)}
    for name, kernel in ways["numba"].items():
        kernel(*takes[name])
    yield "numba", "compiling three kernels", round(time.perf_counter() - start, 2), "s"
    yield "numba", "held after it", round((held() - before) / 2**20, 1), "MB"
    for rows in SIZES:
        for name in takes:
            given = tuple(column[:rows].copy() for column in takes[name])
            for way, kernels in ways.items():
                if name in kernels:
                    assert same(kernels[name](*given), ways["numpy"][name](*given)), (way, name, rows)
                    yield f"{name}, {rows} rows", way, round(timed(kernels[name], given)), "ns"


def make():
    if not PYTHON.exists():
        venv.create(FOLDER, with_pip=True)
        quiet = ("--quiet", "--disable-pip-version-check")
        subprocess.run([PYTHON, "-m", "pip", "install", *quiet, "numba", "numexpr"], check=True)


def main():
    parser = argparse.ArgumentParser(prog="python -m bench.kernels", description=__doc__.splitlines()[0])
    parser.add_argument("--here", action="store_true", help="measure in this process, which has the libraries")
    if parser.parse_args().here:
        print(json.dumps(list(figures())))
        return 0
    make()
    done = subprocess.run(
        [PYTHON, "-m", "bench.kernels", "--here"], cwd=record.ROOT, stdout=subprocess.PIPE, text=True, check=True
    )
    found = json.loads(done.stdout)
    for case, figure, value, unit in found:
        print(f"{case:<24}{figure:<24}{value:>12,} {unit}")
    record.keep_figures("kernels", "default", found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
