"""The statements of a replay, each with its number and the clock tick of its submission."""

from collections.abc import Iterable
from dataclasses import dataclass

from acquisition.extent import Catalog
from basestation.execution.plan_checks import StartBeforeRecordError
from basestation.language import syntax
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.planner.plan import Correction, Plan
from gateway.diagnostics import Diagnostic
from gateway.source import Source


@dataclass(frozen=True, slots=True)
class SubmittedStatement:
    """One statement. Without a clock tick, a query begins before the clock starts and a correction runs at the end."""

    number: int  # from 1, over all statements
    bound: Plan | Correction
    source: Source
    clock: int | None = None

    @property
    def is_query(self) -> bool:
        return isinstance(self.bound, Plan)

    @property
    def plan(self) -> Plan:
        """The query. Raises TypeError for a correction."""
        if not isinstance(self.bound, Plan):
            raise TypeError(f"statement {self.number} is a correction")
        return self.bound

    @property
    def correction(self) -> Correction:
        """The correction. Raises TypeError for a query."""
        if not isinstance(self.bound, Correction):
            raise TypeError(f"statement {self.number} is a query")
        return self.bound

    def not_executable_yet(self, what: str) -> Diagnostic:
        """The error for a statement that this version cannot execute."""
        return Diagnostic("SN601", f"{what} cannot be executed yet", self.source, self.bound.statement.span)

    def starts_too_early(self, why: StartBeforeRecordError) -> Diagnostic:
        """The error for a SINCE before the first recorded tick."""
        since = getattr(self.bound.statement, "since", None)
        span = (self.bound.statement if since is None else since).span
        return Diagnostic("SN434", str(why), self.source, span, help=f"the first possible tick is {why.first}")


def read_catalog(text: str, name: str | None = None, tick_ms: int = 1_000) -> Catalog:
    """The catalog of a schema; ticks of `tick_ms` milliseconds. Raises DiagnosticError."""
    return read_schema(text, name, tick_ms)


def read_statements(
    texts: Iterable[str | tuple[str, int | None]], catalog: Catalog, name: str | None = None
) -> list[SubmittedStatement]:
    """The statements of texts, or of (text, clock tick) pairs, in their order. Raises DiagnosticError."""
    found: list[tuple[Plan | Correction, Source, int | None]] = []
    for given in texts:
        text, clock = given if isinstance(given, tuple) else (given, None)
        source = Source(text, name)
        found += [(bound, source, clock) for bound in bind_text(text, catalog, name)]
    return [SubmittedStatement(number, *rest) for number, rest in enumerate(found, 1)]


def find_extents(statements: Iterable[SubmittedStatement]) -> set[str]:
    """The names of all extents that statements read, including those in subqueries."""
    found: set[str] = set()
    pending: list[object] = [given.bound.statement for given in statements]
    while pending:
        node = pending.pop()
        if isinstance(node, syntax.ExtentSource):
            found.add(node.name.text)
        for name in getattr(node, "__dataclass_fields__", ()):
            value = getattr(node, name)
            pending.extend(value if isinstance(value, tuple) else (value,))
    return found
