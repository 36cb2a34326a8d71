"""The effect of a change: `python -m bench.diff` compares the newest run of each case with the run before it.

Rates that moved by less than the spread of both runs together are taken for equal, and not shown.
"""

import argparse
import sys
from statistics import median

from bench import record

CASE = ("task", "system", "sites", "readings", "batch", "queries")


def changes(rows):
    """(case, rates before, rates now, median peaks before and now) wherever two runs measured a case on like machines."""
    runs = {}
    for row in rows:
        case = tuple(row[name] for name in (*CASE, "machine", "cores"))
        runs.setdefault(case, {}).setdefault(row["when"], []).append(row)
    for case, by_time in runs.items():
        if len(by_time) > 1:
            before, now = (by_time[when] for when in sorted(by_time)[-2:])
            yield case[: len(CASE)], _rates(before), _rates(now), _peak(before), _peak(now), now[0]["agrees"]


def _rates(rows):
    return [int(row["done"]) / float(row["seconds"]) for row in rows]


def _peak(rows):
    return median(int(row["peak_bytes"]) for row in rows)


def line_of(case, before, now, held, holds, agrees):
    """A line, or None where nothing moved."""
    task, system, sites, _, batch, queries = case
    what = f"{task} {system:<8} {sites:>5} sites, batch {batch if batch != '0' else 'whole':>6}, {queries:>5} queries"
    if int(agrees) < 0:
        return f"{what}: THE ANSWER DIFFERS"
    apart = min(now) > max(before) or max(now) < min(before)
    heavier = abs(holds - held) > 0.1 * max(held, 1 << 20)
    if not apart and not heavier:
        return None
    rate = median(now) / median(before)
    return f"{what}: {median(before):>13,.0f} → {median(now):>13,.0f} a second ({rate:5.2f} times), peak {held / 2**20:,.0f} → {holds / 2**20:,.0f} MB"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.parse_args()
    lines = [line for change in changes(record.kept("tasks")) if (line := line_of(*change))]
    print("\n".join(sorted(lines)) or "bench-diff: no case moved by more than its spread between its last two runs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
