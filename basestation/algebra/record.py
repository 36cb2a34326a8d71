"""Record: the decorator of small values that each step creates in large numbers."""

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

_Class = TypeVar("_Class")


@dataclass_transform()
def record(cls: type[_Class]) -> type[_Class]:
    """A dataclass with slots that is not frozen: creating a frozen one takes four to eight times as long.

    Nothing writes to a record after its creation except its own class; a test checks that. A step of few tuples spends most
    of its time on creating records, and so does splitting answers into updates.
    """
    return dataclass(slots=True)(cls)
