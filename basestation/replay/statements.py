"""Statements: what is to be asked and corrected in a replay, each with its number and the clock tick it is given at."""

from dataclasses import dataclass

from basestation.language import syntax
from basestation.language.diagnostics import Diagnostic
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.planner.plan import Correction, Plan
from gateway.source import Source


@dataclass(frozen=True, slots=True)
class SubmittedStatement:
    """One statement. Without a clock tick, a query is given before the clock starts and a correction at the end."""

    number: int  # counting all statements from 1
    bound: Plan | Correction
    source: Source
    clock: int | None = None

    @property
    def query(self):
        return isinstance(self.bound, Plan)

    def not_executable_yet(self, what):
        """The error that the statement cannot be executed yet."""
        return Diagnostic("SN601", f"{what} cannot be executed yet", self.source, self.bound.statement.span)

    def too_early(self, why):
        """The error that SINCE names a tick before what is on record."""
        span = self.bound.statement.since.span
        return Diagnostic("SN434", str(why), self.source, span, help=f"the first possible tick is {why.first}")


def read_catalog(text, name=None, tick_ms=1_000):
    return read_schema(text, name, tick_ms)


def read_statements(texts, catalog, name=None):
    """The statements of texts, or of (text, clock tick), in their order. Raises Refused."""
    found = []
    for given in texts:
        text, clock = given if isinstance(given, tuple) else (given, None)
        source = Source(text, name)
        found += [(bound, source, clock) for bound in bind_text(text, catalog, name)]
    return [SubmittedStatement(number, *rest) for number, rest in enumerate(found, 1)]


def find_extents(statements):
    """The names of all extents that statements read, in subqueries too."""
    found = set()
    pending = [given.bound.statement for given in statements]
    while pending:
        node = pending.pop()
        if isinstance(node, syntax.ExtentSource):
            found.add(node.name.text)
        for name in getattr(node, "__dataclass_fields__", ()):
            value = getattr(node, name)
            pending.extend(value if isinstance(value, tuple) else (value,))
    return found
