"""Schema: the typed attributes of an extent, frozen."""

from dataclasses import dataclass
from enum import Enum


class Type(Enum):
    """The primitive types of SNEEql. TIME counts ticks and behaves as an INTEGER everywhere (SEMANTICS 1.8)."""

    INTEGER = "integer"
    FLOAT = "float"
    STRING = "string"
    TIME = "time"

    def __str__(self):
        return self.value

    @property
    def numeric(self):
        return self is not Type.STRING

    @property
    def whole(self):
        """Held as a 64-bit integer."""
        return self in (Type.INTEGER, Type.TIME)


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute: what it is called, what its values are, and how they were measured."""

    name: str
    type: Type
    unit: str | None = None  # a UCUM code
    sensor: str | None = None  # what the mote calls the thing it samples; default: the attribute's name
    scale: int | None = None  # the value is an integer multiple of 10^-scale (SEMANTICS 13)
    range: tuple[float, float] | None = None  # plausible values; others are delivered, marked and counted


@dataclass(frozen=True, slots=True)
class Schema:
    """The attributes of an extent, in their declared order."""

    attributes: tuple[Attribute, ...]

    def __iter__(self):
        return iter(self.attributes)

    def __len__(self):
        return len(self.attributes)

    @property
    def names(self):
        return tuple(a.name for a in self.attributes)

    def find(self, name):
        """The attribute of that name, or None."""
        return next((a for a in self.attributes if a.name == name), None)
