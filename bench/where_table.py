"""Where the time goes, for docs/where-the-time-goes.md: a row for each task, a column for each stage."""

from bench import record
from bench.tasks import TASKS
from bench.where import REST, STAGES


def lines():
    """The lines of the table, of the newest run."""
    rows = record.kept("where")
    rows = [row for row in rows if row["when"] == rows[-1]["when"]]
    if not rows:
        return ["No run has been recorded yet."]
    stages = (*STAGES, REST)
    shares = {}
    for row in rows:
        shares.setdefault(row["case"], {})[row["figure"]] = float(row["value"])
    head = rows[-1]
    return [
        f"Commit {head['commit']}, {head['when'][:10]}, {head['machine']}, Python {head['python']}, numpy {head['numpy']}:",
        "",
        "| | | " + " | ".join(stages) + " |",
        "|---" * (2 + len(stages)) + "|",
        *(
            f"| {task} | {TASKS[task].what} | " + " | ".join(f"{share[stage]:.0%}" for stage in stages) + " |"
            for task, share in shares.items()
        ),
    ]
