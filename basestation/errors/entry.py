"""ErrorEntry: one error of the catalogue."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ErrorEntry:
    """The kind and title of an error, an explanation with the remedy, and the smallest text that causes it."""

    kind: str
    title: str
    explanation: str
    example: str
    schema: bool = False  # the example is a schema, not a query over ROAD; of kind deployment it is a deployment
