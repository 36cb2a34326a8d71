"""Scope: resolves the names of a query to columns (semantics 1.7 and 2.3)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from acquisition.extent import Extent
from acquisition.schema import Type
from basestation.algebra.expression import Column
from basestation.language import syntax
from basestation.planner.diagnostic_report import Report
from gateway.source import did_you_mean


@dataclass(frozen=True, slots=True)
class ScopeEntry:
    """An entry of FROM and the names that it brings; `name` is None for a subquery without an alias."""

    name: str | None
    columns: tuple[Column, ...]
    tags: tuple[Column, Column] | None = None  # tick and index, which only stream queries may use


@dataclass(frozen=True, slots=True)
class Scope:
    """All entries of one FROM. `complete` is False after an entry with an error: then a missing name is no error.

    `twice` holds names that two entries share. That is reported once, so their columns are not called ambiguous. `aliases` are
    those of the SELECT list, which its other clauses cannot see.
    """

    entries: tuple[ScopeEntry, ...]
    complete: bool = True
    twice: frozenset[str] = frozenset()
    aliases: frozenset[str] = frozenset()

    def find(self, written: syntax.ColumnRef, report: Report) -> Column | None:
        """The Column that a written column means; None after an error, or where the scope is not complete."""
        name = written.name.text
        qualifier = written.qualifier.text if written.qualifier else None
        found = [
            column
            for entry in self.entries
            for column in entry.columns
            if column.name == name and qualifier in (None, column.qualifier)
        ]
        if not found and name in ("tick", "index"):
            found = [
                entry.tags[name == "index"]
                for entry in self.entries
                if entry.tags is not None and qualifier in (None, entry.name)
            ]
        if len(found) == 1:
            return found[0]
        if any(column.qualifier in self.twice for column in found):
            return None
        if len(found) > 1:
            names = sorted({str(column) for column in found})
            candidates = (
                f"it may be {' or '.join(f'`{n}`' for n in names)}"
                if len(names) > 1
                else f"{len(found)} columns are called `{names[0]}`"
            )
            report.error(
                "SN203",
                f"`{name}` is ambiguous: {candidates}",
                written,
                help="give the entries or columns names of their own with AS",
            )
        elif self.complete:
            self._missing(written, name, qualifier, report)
        return None

    @property
    def qualifiers(self) -> set[str]:
        """The names that may stand in front of the dot."""
        found = {c.qualifier for entry in self.entries for c in entry.columns if c.qualifier}
        return found | {entry.name for entry in self.entries if entry.name}

    def unknown_qualifier(self, written: syntax.Name, report: Report) -> None:
        """Report an unknown name in front of the dot, unless it may belong to an entry with an error."""
        if self.complete:
            report.error(
                "SN201",
                f"nothing in FROM is called `{written.text}`",
                written,
                expected=sorted(self.qualifiers),
                help=did_you_mean(written.text, self.qualifiers),
            )

    @property
    def _subject(self) -> str:
        """Subject and verb of an error: FROM, or its one extent or subquery."""
        if not self.entries:
            return "this place has"
        alone = self.entries[0].name if len(self.entries) == 1 else None
        return f"`{alone}` has" if alone else "FROM has"

    def _missing(self, written: syntax.ColumnRef, name: str, qualifier: str | None, report: Report) -> None:
        if written.qualifier is not None and qualifier not in self.qualifiers:
            self.unknown_qualifier(written.qualifier, report)
        elif name in ("tick", "index") and any(entry.tags is not None for entry in self.entries):
            report.error(
                "SN202",
                f"the `{name}` of a subquery without an alias has no qualifier",
                written.name,
                help=f"write `{name}` alone, or give the subquery an alias",
            )
        elif name in ("tick", "index") and self.entries:
            report.error(
                "SN209",
                f"a window's tuples have no `{name}`",
                written.name,
                help=f"carry it in as a column: (SELECT {name} AS t, … FROM …)[…]",
            )
        else:
            names = [
                c.name for entry in self.entries for c in entry.columns if c.name and qualifier in (None, c.qualifier)
            ]
            where = f"`{qualifier}` has" if qualifier else self._subject
            expected = tuple(dict.fromkeys(names))
            report.error(
                "SN202",
                f"{where} no column `{name}`",
                written.name,
                expected=expected if len(expected) <= 8 else (),
                help=did_you_mean(name, names)
                if name not in self.aliases
                else f"`{name}` is an alias of SELECT, which this clause cannot see: write the expression itself",
            )

    def star(self, qualifier: str | None) -> tuple[Column, ...] | None:
        """The columns of `*` or `x.*`; None where there is no such qualifier."""
        columns = tuple(c for entry in self.entries for c in entry.columns)
        if qualifier is None:
            return columns
        columns = tuple(c for c in columns if c.qualifier == qualifier)
        return columns if columns or any(entry.name == qualifier for entry in self.entries) else None


def requalify(columns: Iterable[Column], alias: str) -> tuple[Column, ...]:
    """The columns of a subquery as its alias shows them."""
    return tuple(replace(column, qualifier=alias) for column in columns)


def extent_columns(extent: Extent, qualifier: str, new_id: Callable[[], int]) -> tuple[Column, ...]:
    """A fresh column for each attribute of an extent."""
    return tuple(Column(new_id(), a.type, a.name, qualifier, a.scale, a.unit) for a in extent.schema)


def tag_columns(qualifier: str | None, new_id: Callable[[], int]) -> tuple[Column, Column]:
    """Fresh columns for the tick and the index of a stream."""
    return Column(new_id(), Type.INTEGER, "tick", qualifier), Column(new_id(), Type.INTEGER, "index", qualifier)


def history_columns(extent: Extent, qualifier: str, new_id: Callable[[], int]) -> tuple[Column, ...]:
    """Fresh columns for the history of a stream (10.7); the `_site` of a pushed extent is null."""
    return (
        *tag_columns(qualifier, new_id),
        *extent_columns(extent, qualifier, new_id),
        *(Column(new_id(), Type.INTEGER, name, qualifier) for name in ("_site", "_arrival")),
    )
