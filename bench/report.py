"""Write the tables and charts of the pages on speed from bench/results: `python -m bench.report`.

Only the lines between the marks of a page are generated.
"""

import sys
from statistics import median

from bench import charts, epochs_table, network_table, record, sizes_table, where_table
from bench.peers import PEERS
from bench.run import default_cases
from bench.tasks import TASKS

SUMMARY = record.ROOT / "docs" / "benchmarks.md"
TABLES = record.ROOT / "docs" / "benchmark-tables.md"
CHARTS = record.ROOT / "docs" / "charts"
WHERE = record.ROOT / "docs" / "where-the-time-goes.md"
BEGIN, END = "<!-- made by `make bench` -->", "<!-- end of what is made -->"
GOALS = {  # of single figures: file and figure, case if it matters -> at most
    ("starting", "median", "import the engine"): 0.2, ("starting", "median", "moteloom --help"): 0.3,
    ("sharing", "state ratio"): 1.3, ("sharing", "seconds ratio"): 2.0,
    ("starting", "fastest", "ten thousand characters of queries"): 0.1,
    ("flat", "held, in the second half to in the first"): 1.1, ("flat", "state, in the second half to in the first"): 1.1,
}  # fmt: skip
AT_LEAST = {("simulation", "swept to one by one"): 20}
SHOWN = ("times", "mote-epochs a second")
"""Units of figures that are shown without a goal."""
TITLES = {
    "starting": "## Start-up\n\nEach command is a process of its own; texts are parsed in one process.",
    "sharing": "## A hundred queries over equal windows, compared with one",
    "flat": "## Memory over many windows and many distinct strings",
    "simulation": "## Simulated motes, one by one and vectorised",
}
CASE = ("task", "sites", "readings", "batch", "queries")
OURS, HANDS = "ours", ("numpy", "polars", "duckdb")
WIDE = 65_536
QUERIES = {"W6": 1_000}
"""How many standing queries the summary has of a task, if not one."""
MOST = 10**12  # a batch of everything is the longest one
MB = 1 << 20


class Found:
    """The newest run of one system at one case."""

    def __init__(self, rows):
        self.rows = rows
        rates = sorted(int(row["done"]) / float(row["seconds"]) for row in rows)
        self.rate, self.least, self.most = median(rates), rates[0], rates[-1]
        self.peak = median(int(row["peak_bytes"]) for row in rows)
        self.built = median(int(row["built_bytes"] or 0) for row in rows)
        self.agrees = int(rows[0]["agrees"])

    def micros(self, which):
        return median(float(row[which]) for row in self.rows)


def newest(rows):
    """By case and system: the rows of the last run that measured it."""
    runs = {}
    for row in rows:
        key = tuple(row["task"] if name == "task" else int(row[name]) for name in CASE)
        runs.setdefault(key, {}).setdefault(row["system"], {}).setdefault(row["when"], []).append(row)
    return {
        key: {system: Found(by_time[max(by_time)]) for system, by_time in systems.items()}
        for key, systems in sorted(runs.items(), key=lambda run: [each or MOST for each in run[0]])
    }


def tables(found):
    """The lines of the reference tables."""
    shown = {tuple(getattr(case, name) for name in CASE) for case in default_cases()}
    every = {key: systems for key, systems in found.items() if OURS in systems and "numpy" in systems}
    measured = {key: systems for key, systems in every.items() if key in shown}
    alone = {key: systems for key, systems in found.items() if key in shown and OURS in systems and key not in every}
    rows = [row for systems in measured.values() for row in systems[OURS].rows]
    if not rows:
        return ["No run has been recorded yet."]
    peers = _best_peers(found)
    lines = [*_conditions(rows), "", "## Rates", ""]
    lines += [
        "| | task | sites | readings | batch | ours, a second | spread | ceiling | share | goal |",
        "|---" * 10 + "|",
    ]
    lines += [_speed(key, systems) for key, systems in measured.items()]
    lines += [
        "",
        "## A batch of one reading, in microseconds",
        "",
        "| | sites | ours, median | 99th percentile | ceiling | goal |",
        "|---" * 6 + "|",
    ]
    lines += [_single(key, systems) for key, systems in measured.items() if key[3] == 1]
    lines += [
        "",
        "## Peak memory, beyond data and imports",
        "",
        "| | sites | readings | batch | ours | ceiling | times | goal |",
        "|---" * 8 + "|",
    ]
    lines += [_memory(key, systems) for key, systems in measured.items()]
    if peers:
        lines += [
            "",
            "## Peers, without their start-up",
            "",
            "| | sites | peer | readings a second | ours at 65,536, times | goal |",
            "|---" * 6 + "|",
        ]
        lines += list(_peers(found, measured))
    if alone:
        lines += [
            "",
            "## Sensed extents, Moteloom only",
            "",
            "| | sites | readings | batch | readings a second |",
            "|---" * 5 + "|",
        ]
        lines += [
            f"| {k[0]} | {k[1]:,} | {_short(k[2])} | {k[3]:,} | {_short(s[OURS].rate)} |" for k, s in alone.items()
        ]
    lines += [
        "",
        "## Hand-written programs, where there are several",
        "",
        "| | sites | batch | numpy | Polars | DuckDB |",
        "|---" * 6 + "|",
    ]
    lines += [_hands(key, systems) for key, systems in measured.items() if "polars" in systems]
    return [*lines, "", "## Ratios", "", *_sums(measured), *sizes_table.lines(every, _ceiling, _short)]


def figures(name):
    """A table of the newest run of a file of single figures; nothing where there is none."""
    rows = record.kept(name)
    rows = [row for row in rows if row["when"] == rows[-1]["when"]]
    if not rows:
        return []
    lines = ["", TITLES[name], "", "| case | figure | | goal |", "|---" * 4 + "|"]
    for row in rows:
        case, figure, value = row["case"], row["figure"], float(row["value"])
        goal = GOALS.get((name, figure), GOALS.get((name, figure, case)))
        least = AT_LEAST.get((name, figure))
        if goal is not None or row["unit"] in SHOWN:
            against = "" if goal is None else _held(value <= goal, f"{goal}")
            against = against if least is None else _held(value >= least, f"at least {least}")
            lines.append(f"| {case} | {figure} | {_short(value)} {row['unit']} | {against} |")
    return lines


def _ceiling(systems):
    """The fastest hand-written program whose answers agree."""
    by_hand = [systems[name] for name in HANDS if name in systems and systems[name].agrees >= 0]
    return max(by_hand or [systems["numpy"]], key=lambda found: found.rate)


def _hands(key, systems):
    rates = " | ".join(_short(systems[name].rate) if name in systems else "" for name in HANDS)
    return f"| {key[0]} | {key[1]:,} | {f'{key[3]:,}' if key[3] else 'whole'} | {rates} |"


def _conditions(rows):
    last = max(rows, key=lambda row: row["when"])
    alike = {name: sorted({row[name] for row in rows}) for name in ("commit", "machine", "cores", "python", "numpy")}
    return [
        f"Last run {last['when'][:10]} on {', '.join(alike['machine'])}, {', '.join(alike['cores'])} cores, "
        f"Python {', '.join(alike['python'])}, numpy {', '.join(alike['numpy'])}; commits {', '.join(alike['commit'])}. "
        "Rates are medians of the repetitions, the spread is from the slowest to the fastest."
    ]


def _speed(key, systems):
    task, sites, readings, batch, queries = key
    ours, top = systems[OURS], _ceiling(systems)
    share = ours.rate / top.rate
    goal = ""
    if task in ("W1", "W2", "W3", "W4") and batch == WIDE:
        goal = _held(share >= 0.5, "1/2")
    elif (task, sites, batch) == ("W2", 1_000, 100):
        goal = _held(share >= 0.25, "1/4")
    elif (task, sites, batch, queries) == ("W6", 1_000, WIDE, 10_000):
        goal = _held(ours.rate >= 1e6, "1 M a second")
    name = task if queries == 1 else f"{task}, {queries:,} queries"
    least = min(ours.agrees, top.agrees)
    note = " **differs**" if least < 0 else "" if least else " **not checked**"
    spread = f"{_short(ours.least)} … {_short(ours.most)}"
    return (
        f"| {name} | {TASKS[task].what}{note} | {sites:,} | {_short(readings)} | {f'{batch:,}' if batch else 'whole'} | {_short(ours.rate)} "
        f"| {spread} | {_short(top.rate)} | {share:.3f} | {goal} |"
    )


def _single(key, systems):
    ours, top = systems[OURS], _ceiling(systems)
    middle = ours.micros("median_us")
    worst = ours.micros("p99_us")
    return f"| {key[0]} | {key[1]:,} | {middle:.0f} | {worst:.0f} | {top.micros('median_us'):.1f} | {_held(worst <= 200, '200')} |"


def _memory(key, systems):
    task, sites, readings, batch, queries = key
    ours, top = systems[OURS], _ceiling(systems)
    times = ours.peak / max(top.peak, 1)
    name = task if queries == 1 else f"{task}, {queries:,} queries"
    shown = f"{batch:,}" if batch else "whole"
    return f"| {name} | {sites:,} | {_short(readings)} | {shown} | {ours.peak / MB:.0f} MB | {top.peak / MB:.0f} MB | {times:.1f} | {_held(times <= 2, '2')} |"


def _best_peers(found):
    names = {peer.name for peer in PEERS}
    return [(key, systems) for key, systems in found.items() if names & systems.keys()]


def _peers(found, measured):
    """A line for each peer at a case, of its newest run: how many readings it is given depends on how fast it is."""
    newest_of = {}
    for (task, sites, *_), systems in found.items():
        for peer in PEERS:
            if peer.name in systems:
                newest_of.setdefault((peer.name, task, sites), []).append(systems[peer.name])
    for (name, task, sites), runs in sorted(newest_of.items()):
        theirs = max(runs, key=lambda run: run.rows[0]["when"])
        ours = [s[OURS].rate for k, s in measured.items() if (k[0], k[1], k[3]) == (task, sites, WIDE)]
        times = f"{ours[-1] / theirs.rate:.1f}" if ours else ""
        goal = _held(ours[-1] >= 10 * theirs.rate, "10") if ours else ""
        note = "" if theirs.agrees >= 0 else " **differs**"
        yield f"| {task} | {sites:,} | {name}{note} | {_short(theirs.rate)} | {times} | {goal} |"


def _sums(measured):
    """Figures that compare two cases."""
    rates = {key: systems[OURS] for key, systems in measured.items()}
    for key, late in rates.items():
        plain = rates.get(("W2", *key[1:]))
        if key[0] == "W8" and plain:
            times = plain.rate / late.rate
            yield f"* W8 takes {times:.1f} times as long as W2 at {key[1]:,} sites, batches of {key[3]:,} (goal: {_held(times <= 2, '2')})."
    many = rates.get(("W6", 1_000, 1_000_000, WIDE, 10_000))
    few = rates.get(("W6", 1_000, 1_000_000, WIDE, 10))
    if many and few:
        each = (many.built - few.built) / 9_990 / 1024
        yield f"* A standing query of W6 takes {each:.0f} kB when it is added (goal: {_held(each <= 50, '50')})."
    for (task, sites, readings, batch, queries), tenth in rates.items():
        if task == "W6" and (more := rates.get((task, sites, readings, batch, 10 * queries))) and queries >= sites:
            yield (
                f"* W6 takes {tenth.rate / more.rate:.1f} times as long with {10 * queries:,} queries as with {queries:,}, "
                f"of which as many tuples match: a fifth of all."
            )


def _held(met, goal):
    return goal if met else f"{goal}, missed"


def _short(number):
    for unit, name in ((1e6, " M"), (1e3, " k")):
        if number >= unit:
            return f"{number / unit:.3g}{name}"
    return f"{number:.3g}"


def put(page, lines):
    """Replace the lines between the marks of a page."""
    before, rest = page.read_text().split(BEGIN)
    page.write_text("\n".join([before + BEGIN, "", *lines, "", END + rest.split(END)[1]]))
    print(f"bench: new tables in {page.relative_to(record.ROOT)}", file=sys.stderr)


def summary(found):
    """The table of the page on speed: each task at one size, in long batches and in batches of one reading."""
    sized = {
        (key[0], key[3]): systems
        for key, systems in found.items()
        if key[1:3] == (1_000, 1_000_000) and key[4] == QUERIES.get(key[0], 1)
    }
    sized = {key: systems for key, systems in sized.items() if OURS in systems and "numpy" in systems}
    lines = [
        "| task | readings per second | ceiling | share | one reading, median µs | 99th percentile µs | peak MB | ceiling's MB |",
        "|---|" + "---:|" * 7,
    ]
    for task in TASKS:
        wide, single = sized.get((task, WIDE)), sized.get((task, 1))
        if wide is None:
            continue
        ours, top = wide[OURS], _ceiling(wide)
        micros = (
            (f"{single[OURS].micros('median_us'):.0f}", f"{single[OURS].micros('p99_us'):.0f}") if single else ("", "")
        )
        lines.append(
            f"| {task} {TASKS[task].what} | {charts.short(ours.rate)} | {charts.short(top.rate)} | {ours.rate / top.rate:.0%} "
            f"| {micros[0]} | {micros[1]} | {ours.peak / MB:.0f} | {top.peak / MB:.0f} |"
        )
    return lines


def draw(found):
    """Write the charts of the page on speed."""
    wide, by_batch, by_queries = [], {}, {}
    for (task, sites, readings, batch, queries), systems in found.items():
        if sites != 1_000 or readings != 1_000_000 or OURS not in systems or "numpy" not in systems:
            continue
        pair = systems[OURS].rate, _ceiling(systems).rate
        if batch == WIDE and queries == QUERIES.get(task, 1):
            wide.append((f"{task} {TASKS[task].what}"[:38], *pair))
        if task == "W2" and batch:
            by_batch[batch] = pair
        if task == "W6" and batch == WIDE:
            by_queries[queries] = pair
    title = "Readings per second, 1,000 sites, batches of 65,536"
    charts.write(CHARTS / "rates.svg", charts.paired_bars(title, "readings / s", wide))
    for name, title, pairs in (
        ("batches", "W2 by the length of batches, 1,000 sites", by_batch),
        ("queries", "W6 by the number of standing queries, batches of 65,536", by_queries),
    ):
        if len(pairs) > 1:
            points = [f"{size:,}" for size in sorted(pairs)]
            lines = [(label, colour, [pairs[size][which] for size in sorted(pairs)])
                     for which, (label, colour) in enumerate((("Moteloom", charts.OURS), ("ceiling", charts.CEILING)))]  # fmt: skip
            charts.write(CHARTS / f"{name}.svg", charts.log_lines(title, "readings / s", points, lines))


def main():
    found = newest(record.kept("tasks"))
    put(SUMMARY, [*summary(found), *epochs_table.costs()])
    put(TABLES, tables(found) + [line for name in TITLES for line in figures(name)] + network_table.lines())
    put(WHERE, where_table.lines())
    put(epochs_table.PAGE, epochs_table.lines())
    draw(found)


if __name__ == "__main__":
    main()
