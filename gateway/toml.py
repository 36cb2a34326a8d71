"""A TOML file somebody wrote: its values are asked for one by one, and what is wrong with them is pointed at.

Python's reader says where a text is no TOML and forgets where the values stood. So a text that it has accepted is looked
through once more, only for places: of each key and each value, by the path to it.
"""

import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from gateway.errors import MoteloomError
from gateway.source import Source, Span, did_you_mean

DIGITS = 4_300
"""Python reads no longer numbers."""

Path = tuple[str | int, ...]
"""The keys and indexes that lead from the top of a document to a value."""


@dataclass(frozen=True, slots=True)
class ConfigFault:
    """One thing that is wrong with a file. `code` is of the catalogue of errors, which is kept above."""

    code: str
    message: str
    source: Source
    span: Span
    help: str | None = None

    def render(self) -> str:
        lines = [f"{self.code}: {self.message}", *self.source.excerpt(self.span)]
        return "\n".join([*lines, f"  help: {self.help}"] if self.help else lines)


class ConfigError(MoteloomError):
    """A file that cannot be taken, with everything that is wrong with it, each once, in the order of the text."""

    def __init__(self, faults: list[ConfigFault]) -> None:
        # What several others refer to may have been looked at, and found wrong, for each of them.
        self.faults = tuple(
            sorted(dict.fromkeys(faults), key=lambda fault: (fault.source.name or "", fault.span.start, fault.code))
        )
        super().__init__("\n\n".join(fault.render() for fault in self.faults))


def read_toml(source: Source) -> "TomlTable":
    """The whole document; raises Faulty where it is no TOML at all."""
    try:
        values, places = tomllib.loads(source.text), _KeyLocations(source.text).found
    except (ValueError, RecursionError) as error:
        message, _, place = str(error).rpartition(" (at ")
        found = re.fullmatch(r"line (\d+), column (\d+)\)", place)
        at = source.offset(int(found[1]), int(found[2])) if found else len(source.text.rstrip())
        reason = message or str(error)
        # A number of thousands of digits is no TOMLDecodeError, and nobody says where it is.
        if not found and (number := re.search(rf"\d(?:_?\d){{{DIGITS},}}", source.text)):
            reason, at = f"a number has at most {DIGITS:,} digits", number.start()
        raise ConfigError([ConfigFault("SN701", f"this is no TOML: {reason}", source, Span(at, at + 1))]) from error
    return TomlTable(source, values, places, [])


@dataclass(slots=True)
class TomlTable:
    """One table of a document. Asking for a key checks its value and says None where a fault was noted.

    All tables of a document note their faults in one list; `close` tells which keys nobody asked for.
    """

    source: Source
    values: dict[str, Any]
    places: dict[Path, tuple[Span, Span]]
    faults: list[ConfigFault]
    path: Path = ()
    read_keys: set[str] = field(default_factory=set)

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def fault(self, code: str, message: str, key: str | None = None, *more: str | int, help: str | None = None) -> None:
        """Note what is wrong with this table, with the value of a key, or with what is further in."""
        path = self.path if key is None else (*self.path, key, *more)
        name, value = self.places[path] if path else (Span(0, 1),) * 2
        self.faults.append(ConfigFault(code, message, self.source, name if key is None else value, help))

    def get(self, key: str, wanted: str, check: Callable[[Any], bool], default: Any = ...) -> Any:
        """The value of a key if it is `wanted`; a default is not checked."""
        self.read_keys.add(key)
        if key not in self.values:
            if default is ...:
                self.fault("SN703", f"{self._name()} does not say `{key}`, {wanted}")
                return None
            return default
        if not check(self.values[key]):
            self.fault("SN704", f"`{key}` is {wanted}", key)
            return None
        return self.values[key]

    def text(self, key: str, default: Any = ...) -> str | None:
        return self.get(key, "a text in quotes", lambda value: isinstance(value, str), default)

    def integer(self, key: str, least: int, most: int, default: Any = ...) -> int | None:
        wanted = f"a whole number from {least:,} to {most:,}"
        return self.get(key, wanted, lambda value: is_whole(value) and least <= value <= most, default)

    def number(self, key: str, least: float, most: float, default: Any = ...) -> float | None:
        wanted = f"a number from {_plain(least)} to {_plain(most)}"
        return self.get(key, wanted, lambda value: is_number(value) and least <= value <= most, default)

    def table(self, key: str) -> "TomlTable | None":
        """The table of that name; None where there is none, or something else."""
        self.read_keys.add(key)
        if key in self.values and not isinstance(self.values[key], dict):
            self.fault("SN704", f"`{key}` is a table", key)
        return self._inner(key) if isinstance(self.values.get(key), dict) else None

    def tables(self) -> Iterator[tuple[str, "TomlTable"]]:
        """Every key of this table, whose values are tables themselves."""
        for key in self.values:
            if (table := self.table(key)) is not None:
                yield key, table

    def one_of(self, key: str, what: str, known: Any, default: Any = ...) -> str | None:
        """A text that is among the known ones."""
        name = self.text(key, default)
        if name is not None and name is not default and name not in known:
            self.fault("SN706", f"there is no {what} `{name}`", key, help=did_you_mean(name, known) or _known(known))
            return None
        return name

    def close(self) -> None:
        """Note every key that nobody asked for."""
        for key in self.values.keys() - self.read_keys:
            name, _ = self.places[*self.path, key]
            help = did_you_mean(key, self.read_keys - self.values.keys()) or _known(self.read_keys)
            self.faults.append(ConfigFault("SN702", f"{self._name()} has no `{key}`", self.source, name, help))

    def _inner(self, key: str) -> "TomlTable":
        return TomlTable(self.source, self.values[key], self.places, self.faults, (*self.path, key))

    def _name(self) -> str:
        return f"`{'.'.join(str(part) for part in self.path)}`" if self.path else "the file"


def is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Not a truth value, and neither infinite nor undefined."""
    return is_whole(value) or (isinstance(value, float) and abs(value) < float("inf"))


def _plain(number: float) -> str:
    return f"{number:,.15g}" if abs(number) < 1e15 else f"{number:g}"


def _known(names: Any) -> str | None:
    return f"known here: {', '.join(f'`{name}`' for name in sorted(names))}" if names else None


_BLANK = re.compile(r"(?:\s|#[^\n]*)*")
_KEY = re.compile(r"""[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'""")
_DOT = re.compile(r"[ \t]*\.[ \t]*")
_STRING = re.compile(r'''"""(?:[^\\]|\\.)*?"{3,5}(?!")|\'\'\'.*?'{3,5}(?!')|"(?:[^"\\]|\\.)*"|'[^']*\'''', re.DOTALL)
_BARE = re.compile(r"[^,\]}#\n]*[^,\]}#\s]")


class _KeyLocations:
    """Where keys and values stand in a text that is TOML. Nothing is checked: that was done before."""

    def __init__(self, text: str) -> None:
        self.found: dict[Path, tuple[Span, Span]] = {}
        self._text, self._at = text, 0
        self._counts: dict[Path, int] = {}  # how many tables an array of tables has so far
        table: Path = ()
        self._blank()
        while self._at < len(text):
            if text[self._at] == "[":
                table = self._header()
            else:
                self._pair(table)
            self._blank()

    def _header(self) -> Path:
        brackets = 2 if self._text.startswith("[[", self._at) else 1
        self._at += brackets
        self._blank()
        keys, span = self._keys()
        path: Path = ()
        for number, key in enumerate(keys, 1):
            path = (*path, key)
            self.found.setdefault(path, (span, span))
            if brackets == 2 and number == len(keys):
                self._counts[path] = self._counts.get(path, 0) + 1
            if path in self._counts:
                path = (*path, self._counts[path] - 1)
        self.found[path] = (span, span)
        self._blank()
        self._at += brackets
        return path

    def _pair(self, table: Path) -> None:
        keys, span = self._keys()
        self._blank()
        self._at += 1  # the equals sign
        for implied in range(1, len(keys)):
            self.found.setdefault((*table, *keys[:implied]), (span, span))
        self._value((*table, *keys), span)

    def _keys(self) -> tuple[list[str], Span]:
        """A key, dotted or not, and where it stands."""
        start, keys = self._at, []
        while True:
            written = _KEY.match(self._text, self._at)[0]
            keys.append(next(iter(tomllib.loads(f"{written}=0"))) if written[0] in "\"'" else written)
            self._at += len(written)
            if not (dot := _DOT.match(self._text, self._at)):
                return keys, Span(start, self._at)
            self._at = dot.end()

    def _value(self, path: Path, key: Span | None) -> None:
        self._blank()
        start, first = self._at, self._text[self._at]
        if first in "[{":
            self._at += 1
            index = 0
            while self._skipped() != ("]" if first == "[" else "}"):
                if first == "[":
                    self._value((*path, index), None)
                else:
                    self._pair(path)
                index += 1
                if self._skipped() == ",":
                    self._at += 1
            self._at += 1
        else:
            self._at = (_STRING if first in "\"'" else _BARE).match(self._text, self._at).end()
        value = Span(start, self._at)
        self.found[path] = (key or value, value)

    def _skipped(self) -> str:
        self._blank()
        return self._text[self._at]

    def _blank(self) -> None:
        self._at = _BLANK.match(self._text, self._at).end()
