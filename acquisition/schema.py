"""The schema of an extent: its typed attributes."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum


class Type(Enum):
    """The primitive types of SNEEql. TIME counts ticks and behaves as an INTEGER everywhere (semantics 1.8)."""

    INTEGER = "integer"
    FLOAT = "float"
    STRING = "string"
    TIME = "time"

    def __str__(self) -> str:
        return self.value

    @property
    def numeric(self) -> bool:
        """Whether values can be compared and computed with as numbers."""
        return self is not Type.STRING

    @property
    def whole(self) -> bool:
        """Whether values are 64-bit integers."""
        return self in (Type.INTEGER, Type.TIME)


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute: name, type, and how it was measured.

    `unit` is a UCUM code. `sensor` is the mote's name for what it samples (default: the attribute's name). With
    `scale`, values are integer multiples of 10^-scale (semantics 13). Values outside `range` are delivered, marked and
    counted.
    """

    name: str
    type: Type
    unit: str | None = None
    sensor: str | None = None
    scale: int | None = None
    range: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Schema:
    """The attributes of an extent, in their declared order."""

    attributes: tuple[Attribute, ...]

    def __iter__(self) -> Iterator[Attribute]:
        return iter(self.attributes)

    def __len__(self) -> int:
        return len(self.attributes)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the attributes."""
        return tuple(a.name for a in self.attributes)

    def find(self, name: str) -> Attribute | None:
        """Return the attribute of that name, or None."""
        return next((a for a in self.attributes if a.name == name), None)
