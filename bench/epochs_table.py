"""The tables of docs/benchmarks-epochs.md, made from the newest figures of `bench.epochs`."""

from bench import record
from bench.epoch_queries import MANY

PAGE = record.ROOT / "docs" / "benchmarks-epochs.md"
STATE_GOAL = 1.5  # state of a query alone under the default horizon, to that under one of ten minutes
GROWTH_GOAL = 1.2  # time of an epoch after a day, to that after 100 epochs
SHARED_GOAL = {"time ratio": 2.0, "state ratio": 1.3}  # equal queries to one
SLOWEST_GOAL = 3.0  # 99th percentile of many queries to the median
SHARE_GOAL = 0.5  # of the ceiling (docs/benchmarks.md)
MB = 1 << 20


def lines():
    """The lines of all tables; a part that was never measured has none."""
    bulk, live, sharing = (_newest(f"epochs_{part}") for part in ("bulk", "live", "sharing"))
    return [*_summary(bulk[0], live[0]), *_bulk(bulk), *_live(live), *_sharing(sharing)]


def costs():
    """The cost of one query of each form, for the page on speed."""
    (bulk, _), (live, about) = _newest("epochs_bulk"), _newest("epochs_live")
    if not live:
        return []
    rows = [
        "",
        "The cost of one query where all sites report at the same tick, every 30 seconds, under the default horizon of a day "
        "(one core, after 1,000 epochs; state after a day; *shared* is the log of readings that all queries read):",
        "",
        "| query | sites | one epoch, ms | 99th percentile, ms | state of the query, MB | shared, MB | replay, million readings/s | ceiling's |",
        "|---|" + "---:|" * 7,
    ]
    for case, figures in live.items():
        query, kind, sites = case.split(", ")[:3]
        of = next((of for name, of in bulk.items() if name.startswith(f"{query}, {kind}, {sites}")), None)
        rates = [f"{of[name] / 1e6:.1f}" if of else "" for name in ("readings a second", "ceiling")]
        alone = figures["state of the query alone after a day"]
        rows.append(
            f"| {query} | {int(sites.split()[0]):,} | {figures['epoch 1000']:.2f} | {figures['99th percentile']:.2f} "
            f"| {alone / MB:.2f} | {(figures['state after a day'] - alone) / MB:.0f} | {rates[0]} | {rates[1]} |"
        )
    return [*rows, *_conditions(about)]


def _newest(name):
    """By case, the figures of the newest run, and the conditions of that run."""
    rows = record.kept(name)
    rows = [row for row in rows if row["when"] == rows[-1]["when"]]
    cases = {}
    for row in rows:
        cases.setdefault(row["case"], {})[row["figure"]] = float(row["value"])
    return cases, rows[0] if rows else None


def _summary(bulk, live):
    """One sentence for each query: what it costs live, and how fast a replay is."""
    found = ["## In short", ""]
    for case, figures in live.items():
        query, kind, sites = case.split(", ")[:3]
        rate = next(
            (of["readings a second"] for name, of in bulk.items() if name.startswith(f"{query}, {kind}, {sites}")), None
        )
        if rate is not None:
            found.append(
                f"* A{'n' if query[0] == 'a' else ''} {query} over {sites} takes {figures['epoch 1000']:.2f} ms for each epoch, and "
                f"{figures['state after a day'] / MB:.0f} MB after a day; a replay reads {rate / 1e6:.0f} million readings a second."
            )
    return [*found, ""] if len(found) > 2 else []


def _conditions(row):
    return [
        "",
        f"Measured on {row['when'][:10]} at commit {row['commit']}: {row['machine']}, {row['cores']} cores, Python "
        f"{row['python']}, numpy {row['numpy']}.",
        "",
    ]


def _bulk(found):
    cases, about = found
    if not cases:
        return []
    rows = [
        "## Throughput",
        "",
        "A million readings in batches of 65,536, as a replay takes them. Rates are medians of three processes.",
        *_conditions(about),
        "| query | values | sites | readings a second, million | slowest to fastest | ceiling, million | share of it | goal |",
        "|---" * 8 + "|",
    ]
    for case, figures in cases.items():
        query, kind, sites = case.split(", ")[:3]
        note = "" if figures["agrees"] else " **answers differ**"
        rows.append(
            f"| {query}{note} | {kind} | {int(sites.split()[0]):,} | {figures['readings a second'] / 1e6:.1f} "
            f"| {figures['slowest'] / 1e6:.1f} to {figures['fastest'] / 1e6:.1f} | {figures['ceiling'] / 1e6:.1f} "
            f"| {figures['share of the ceiling']:.2f} | {_least(figures['share of the ceiling'], SHARE_GOAL)} |"
        )
    return [*rows, ""]


def _live(found):
    cases, about = found
    if not cases:
        return []
    rows = [
        "## Epoch by epoch, for a day",
        "",
        "Milliseconds of a core for one epoch, with all answers that it makes due; medians of 20 epochs in pairs, since a window ends with every second one. "
        "The 99th percentile is over all pairs from epoch 100 on.",
        *_conditions(about),
        "| query | sites | after 100 epochs | after 1,000 | after 2,880 | last to first | goal | 99th percentile |",
        "|---" * 8 + "|",
    ]
    state = [
        "Bytes of the engine's saved state after that day, under a horizon of a day and one of ten minutes, with the log of the readings, "
        "which all queries share: it is as long as the horizon. *Alone* is what the engine drops with the query.",
        "",
        "| query | sites | day, MB | 10 minutes, MB | alone, day, kB | alone, 10 minutes, kB | times | goal | memory, day, MB |",
        "|---" * 9 + "|",
    ]
    for case, figures in cases.items():
        query, _, sites = case.split(", ")[:3]
        first, middle, last = (figures[name] for name in figures if name.startswith("epoch ") and " to " not in name)
        growth = next(value for name, value in figures.items() if name.startswith("epoch ") and " to " in name)
        count = int(sites.split()[0])
        rows.append(
            f"| {query} | {count:,} | {first:.2f} | {middle:.2f} | {last:.2f} | {growth:.2f} "
            f"| {_goal(growth, GROWTH_GOAL)} | {figures['99th percentile']:.2f} |"
        )
        day, short = (figures[f"state after a day{end}"] / MB for end in ("", ", horizon of 10 min"))
        alone = [figures[f"state of the query alone after a day{end}"] / 1e3 for end in ("", ", horizon of 10 min")]
        times = alone[0] / alone[1]
        state.append(
            f"| {query} | {count:,} | {day:.1f} | {short:.1f} | {alone[0]:,.0f} | {alone[1]:,.0f} | {times:.2f} "
            f"| {_goal(times, STATE_GOAL)} | {figures['held after a day'] / MB:.0f} |"
        )
    return [*rows, "", *state, ""]


def _sharing(found):
    cases, about = found
    if not cases:
        return []
    between = ""
    if any("full collections between epochs" in figures for figures in cases.values()):
        between = (
            " Full collections of garbage run between epochs, as those of a station do between its looks; *by itself* is the 99th percentile "
            "to the median where Python alone decides when they run."
        )
    rows = [
        "## Many queries",
        "",
        "Milliseconds of a core for one epoch, and saved state, against one query of the kind, with the columns of all answers; medians of 50 pairs of epochs. "
        "A window ends with every second epoch: *with windows* is the slower of each pair. *By hand* "
        "is numpy: under their own WHERE, a loop over the queries that computes each window anew; over their own range, one fold from the "
        "newest epoch backwards (`OwnWhere` and `OwnRange` in `bench/ceiling/epochs.py`)." + between,
        *_conditions(about),
        "| queries | one, ms | all, ms | with windows, ms | goal | 99th percentile to median | goal | by itself | by hand, ms | time ratio | state ratio | goal | one more, kB |",
        "|---" * 13 + "|",
    ]
    goals = {f"{kind.count} {kind.what}": kind.goal_ms for kind in MANY.values()}
    for case, figures in cases.items():
        one, all_ = (figures[name] for name in figures if name.startswith("epoch of "))
        goal, times, state = goals.get(case.rpartition(",")[0]), figures["time ratio"], figures["state ratio"]
        slowest, by_hand = figures["99th percentile"] / all_, figures.get("by hand", figures.get("by hand, each anew"))
        busy = f"{figures['one with windows']:.2f}" if "one with windows" in figures else ""
        alone = [figures.get(f"{name}, where Python alone decides") for name in ("99th percentile", "epoch")]
        if goal is None:
            limits = [f"{_goal(times, SHARED_GOAL['time ratio'])} times", _goal(state, SHARED_GOAL["state ratio"])]
        else:
            limits = [_goal(all_, goal, " ms"), ""]
        rows.append(
            f"| {case} | {one:.2f} | {all_:.2f} | {busy} | {limits[0]} | {slowest:.1f} | {_goal(slowest, SLOWEST_GOAL)} "
            f"| {'' if None in alone else f'{alone[0] / alone[1]:.1f}'} | {'' if by_hand is None else f'{by_hand:.1f}'} | {times:.1f} | {state:.2f} | {limits[1]} "
            f"| {figures['state of one query more'] / 1e3:,.1f} |"
        )
    return [*rows, ""]


def _goal(value, most, unit=""):
    return f"{most:g}{unit}" if value <= most else f"{most:g}{unit}, missed"


def _least(value, least):
    return f"{least:g}" if value >= least else f"{least:g}, missed"
