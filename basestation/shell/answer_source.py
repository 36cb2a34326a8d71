"""AnswerSource: what a shell asks, a running station or recordings."""

from collections.abc import Iterator, Mapping
from typing import Any, Protocol, TypeAlias

from acquisition.extent import Catalog
from gateway.errors import MoteloomError

Line: TypeAlias = Mapping[str, Any]
"""A line of answers as `basestation.results.wire` has it; the first is the schema of the query."""


class NotHereError(MoteloomError):
    """This source cannot do what a command wants; the message says which one can."""


class AnswerSource(Protocol):
    """Answers statements. Each method raises MoteloomError with the reason where it cannot."""

    name: str
    """Where answers come from, for the first line of the shell."""

    def catalog(self) -> Catalog:
        """The extents that statements may name."""

    def answers(self, text: str) -> Iterator[Line]:
        """The schema and the updates of one statement; a live query ends when the iterator is closed."""

    def explain(self, text: str) -> str:
        """The meaning of a statement and its operators, as text."""

    def manage(self, command: str, argument: str) -> Iterator[str]:
        """The lines of a command about running queries: list, submit, stop, pause, resume. NotHereError without a station."""

    def watch(self, query: str) -> Iterator[Line]:
        """The schema and the updates of a query that runs. NotHereError without a station."""

    def try_out(self, text: str) -> Iterator[Line]:
        """The schema and the updates of a query on simulated motes, for the span before it or an hour. NotHereError without a station."""
