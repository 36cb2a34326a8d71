"""Entry: one error of the catalogue."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ErrorEntry:
    """One error: what it means, what to do, and the smallest text that causes it."""

    kind: str
    title: str
    explanation: str
    example: str
    schema: bool = False  # the example is a schema, not a query over ROAD; that of kind deployment is a deployment
