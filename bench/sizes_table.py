"""The tables of every size, for docs/benchmark-tables.md: speed and memory by sites, readings and length of batches."""

from bench.run import BATCHES

NOTHING = "…"


def lines(measured, top_of, short):
    """Of (task, sites, readings, batch, queries) and the systems that were measured there; nothing where only a few are.

    `top_of` finds the ceiling of a case, `short` writes a rate."""
    rows = {}
    for (task, sites, readings, batch, queries), systems in measured.items():
        ours, top = systems["ours"], top_of(systems)
        wrong = " **differs**" if min(ours.agrees, top.agrees) < 0 else ""
        rows.setdefault((task, queries, sites, readings), {})[batch] = (
            f"{short(ours.rate)}, {ours.rate / top.rate:.2g}{wrong}",
            f"{ours.peak / 2**20:,.0f} MB, {ours.peak / max(top.peak, 1):.1f}",
        )
    if not any(len(row) == len(BATCHES) for row in rows.values()):
        return []
    titles = (
        "## Every size: readings per second and share of the ceiling, by length of batch",
        "## Every size: peak memory, and times the ceiling's",
    )
    lengths = " | ".join(f"{batch:,}" if batch else "whole" for batch in BATCHES)
    found = []
    for which, title in enumerate(titles):
        found += ["", title, "", f"| | queries | sites | readings | {lengths} |", "|---" * (4 + len(BATCHES)) + "|"]
        for (task, queries, sites, readings), row in sorted(rows.items()):
            cells = " | ".join(row[batch][which] if batch in row else NOTHING for batch in BATCHES)
            found.append(f"| {task} | {queries:,} | {sites:,} | {short(readings)} | {cells} |")
    peaks = [systems["ours"].peak / max(top_of(systems).peak, 1) for systems in measured.values()]
    missed = sum(round(times, 1) > 2 for times in peaks)
    return [*found, "", f"In {missed} of {len(peaks)} sizes the peak is more than twice the ceiling's (goal: in none)."]
