"""A case as text: schema, inputs as CSV, queries and what differs, ready to be pasted into a golden file."""

from decimal import Decimal

from basestation.planner.catalog import read_schema
from basestation.replay.csv_output import field
from tests.oracles.values import nearest_multiple

_SYSTEM = ("_tick", "_site", "_arrival", "_weight", "_replaces")


def golden(schema, inputs, queries, until=None, what=None):
    """The text of a golden file; what is no part of one (clock ticks of statements, `until`) stands in comments."""
    parts = [f"schema\n{schema.strip()}"]
    for name, rows in inputs.items():
        versions = rows if rows and isinstance(rows[0], tuple) else [(None, rows)]
        for tick, version in versions:
            if version or tick is not None:
                label = name if tick in (None, 0) else f"{name}@{tick}"
                parts.append(f"input {label}\n{as_csv(version, schema, name).strip()}")
    parts += [f"# until {until}"] if until is not None else []
    for number, query in enumerate(queries, 1):
        text, clock = query if isinstance(query, tuple) else (query, None)
        parts.append(
            (f"# at clock tick {clock}\n" if clock is not None else "") + f"query case_{number}\n{text.strip()}"
        )
    if what:
        parts.append("\n".join(f"# {line}".rstrip() for line in what.splitlines()))
    return "\n\n".join(parts) + "\n"


def as_csv(rows, schema, name):
    """Rows as the CSV that gives the same tuples."""
    attributes = {a.name: a for a in read_schema(schema).find(name).schema}
    stored = not any(column in row for row in rows for column in _SYSTEM)
    columns = [c for c in _SYSTEM if any(c in row for row in rows)]
    known = () if stored else ("time", "site") if "_site" in columns else ("time",)
    columns += [c for c in attributes if c not in known or any(c in row for row in rows)]
    lines = [",".join(columns)]
    lines += [",".join(_field(row.get(c), attributes.get(c)) for c in columns) for row in rows]
    return "\n".join(lines) + "\n"


def _field(value, attribute):
    if isinstance(value, float) and attribute is not None and attribute.scale is not None:
        # 1.005 is a little less than it is written: as text it would go to another multiple.
        if nearest_multiple(value, attribute.scale) != nearest_multiple(Decimal(repr(value)), attribute.scale):
            return format(Decimal(value), "f")
    return field(value)
