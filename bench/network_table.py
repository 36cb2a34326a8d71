"""The figures of `bench.network` as tables for docs/benchmark-tables.md: savings in the network, and accuracy of predictions."""

from bench import record

MOST_OFF = {"no loss": 0.1, "a fifth lost": 0.2, "own links": None}
MOST_TIMES = 1.2  # twenty overlapping queries, to one that asks for all that they do
TOGETHER = {
    "twenty queries": "twenty overlapping queries",
    "twenty mixed": "nine aggregates and eleven selections, asked in this order,",
}
BOTH = ("collected", "in the network")


def lines(rows=None):
    """Of the newest run; nothing where there is none."""
    rows = record.kept("network") if rows is None else rows
    found = _by_case([row for row in rows if row["when"] == rows[-1]["when"]])
    if not found:
        return []
    return [
        "", "## Queries over motes for an hour", "", "Each cell: every reading collected → the planner's choice of processing in the network. Clocks are perfect, link qualities are known, and there is no control traffic.", "",
        "| network | query | messages | bytes | energy, J | worst lifetime, days |", "|---" * 6 + "|",
        *(_saved(*key, kinds) for key, kinds in found.items()),
        "", "## Predicted energy", "", "The largest error against the simulated energy of a mote. The planner had statistics of an hour, or guessed.",
        "", "| network | query | without loss | goal | a fifth lost | goal | own links | guessing: without loss | a fifth lost | own links |",
        "|---" * 10 + "|",
        *(_off(*key, kinds["in the network"]) for key, kinds in found.items()),
        "", *_together(found), *_partials(found),
    ]  # fmt: skip


def _by_case(rows):
    """By network and query, by kind: figures."""
    found = {}
    for row in rows:
        network, rest = row["case"].split(", ", 1)
        query, kind = rest.rsplit(", ", 1)
        found.setdefault((network, query), {}).setdefault(kind, {})[row["figure"]] = float(row["value"])
    return found


def _saved(network, query, kinds):
    shown = []
    for figure, form in (("messages", ",.0f"), ("bytes", ",.0f"), ("energy", ",.1f"), ("worst lifetime", ",.0f")):
        shown.append(" → ".join(format(kinds[kind][figure], form) for kind in BOTH))
    return f"| {network} | {query} | {' | '.join(shown)} |"


def _off(network, query, figures):
    cells = []
    for links, most in MOST_OFF.items():
        share = figures[f"prediction off at most, {links}"]
        cells.append(f"{share:.1%}")
        if most is not None:
            cells.append(f"{most:.0%}" if share <= most else f"{most:.0%}, missed")
    guessed = [f"{figures[f'guess off at most, {links}']:.1%}" for links in MOST_OFF]
    return f"| {network} | {query} | {' | '.join([*cells, *guessed])} |"


def _together(found):
    for (network, query), kinds in found.items():
        if query in TOGETHER:
            one, many = found[network, "collect"]["collected"], kinds["in the network"]
            times = {figure: many[figure] / one[figure] for figure in ("messages", "bytes", "energy")}
            shown = ", ".join(f"{value:.3g} times the {figure}" for figure, value in times.items())
            goal = f"{MOST_TIMES}" if max(times.values()) <= MOST_TIMES else f"{MOST_TIMES}, missed"
            yield f"* {network}: {TOGETHER[query]} take {shown} of one query that asks for all their columns, collected (goal: {goal})."


def _partials(found):
    for (network, query), kinds in found.items():
        figures = kinds["everything in the network"]
        most = [value for figure, value in figures.items() if figure.startswith("frames a hop and slice")]
        if most:
            goal = "1" if max(most) <= 1 else "1, missed"
            yield f"* {network}, {query}, folded: a mote hands over at most {max(most):.3g} frames for each slice (goal: {goal})."
