"""The reader of TOML files (deployments, scenarios): checks values one by one and points at each fault in the text.

Python's `tomllib` reports where a text is not TOML, but not where the values of a valid text stand. So a second pass over
a valid text finds the position of each key and value.
"""

import re
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from gateway.diagnostics import Diagnostic, DiagnosticError
from gateway.source import Source, Span, did_you_mean

MAX_DIGITS = 4_300
"""Python refuses to read longer numbers."""

Path: TypeAlias = tuple[str | int, ...]
"""The keys and indexes that lead from the top of a document to a value."""


class ConfigError(DiagnosticError):
    """A TOML file cannot be used."""


def read_toml(source: Source) -> "TomlTable":
    """Parse a document. Raises ConfigError with SN701 if the text is not TOML. Errors never show a secret of its lines."""
    text, source = source.text, Source(_mask_secrets(source.text), source.name)
    try:
        values, places = tomllib.loads(text), _KeyLocations(text).found
    except (ValueError, RecursionError) as error:
        message, _, place = str(error).rpartition(" (at ")
        found = re.fullmatch(r"line (\d+), column (\d+)\)", place)
        at = source.offset(int(found[1]), int(found[2])) if found else len(source.text.rstrip())
        reason = message or str(error)
        # For a number with thousands of digits Python raises a plain ValueError without a position.
        if not found and (number := re.search(rf"\d(?:_?\d){{{MAX_DIGITS},}}", text)):
            reason, at = f"a number has at most {MAX_DIGITS:,} digits", number.start()
        raise ConfigError([Diagnostic("SN701", f"invalid TOML: {reason}", source, Span(at, at + 1))]) from error
    return TomlTable(source, values, places, [])


_SECRET = re.compile(r"""password["']?\s*=[ \t]*+(?!\{)(?P<value>[^\n]+)|://(?P<login>[^\s/"']*@)""", re.IGNORECASE)


def _mask_secrets(text: str) -> str:
    """Return a text with passwords, and logins of URLs, replaced by as many asterisks: positions stay."""

    def mask(found: re.Match[str]) -> str:
        secret = found["value"] or found["login"]
        return found.group().replace(secret, "*" * len(secret))

    return _SECRET.sub(mask, text)


@dataclass(frozen=True, slots=True)
class Setting:
    """A value that the program takes, and where it stands; `place` is None where it is the default."""

    path: Path
    value: Any
    place: Span | None


@dataclass(slots=True)
class TomlTable:
    """One table of a document. Reading a key checks its value; it returns None where it has noted a fault.

    All tables of a document note their faults in one list. `places` has the spans of key and value by path. `close`
    reports the keys that were never read. All tables of a document note the values that were taken in `settings`.
    """

    source: Source
    values: dict[str, Any]
    places: Mapping[Path, tuple[Span, Span]]
    faults: list[Diagnostic]
    path: Path = ()
    read_keys: set[str] = field(default_factory=set)
    settings: list[Setting] = field(default_factory=list)

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def fault(self, code: str, message: str, key: str | None = None, *more: str | int, help: str | None = None) -> None:
        """Note a fault of this table, of the value of a key, or of a value further inside (`more`)."""
        path = self.path if key is None else (*self.path, key, *more)
        name, value = self.places[path] if path else (Span(0, 1),) * 2
        self.faults.append(Diagnostic(code, message, self.source, name if key is None else value, help=help))

    def get(self, key: str, expected: str, check: Callable[[Any], bool], default: Any = ...) -> Any:
        """Return the value of a key if it passes `check`; `expected` describes such values in a fault.

        A missing key gives the default, unchecked. Without a default the key is required.
        """
        self.read_keys.add(key)
        if key not in self.values:
            if default is ...:
                self.fault("SN703", f"{self._name()} has no `{key}`; expected {expected}")
                return None
            self.settings.append(Setting((*self.path, key), default, None))
            return default
        if not check(self.values[key]):
            self.fault("SN704", f"`{key}`: expected {expected}, found {_shown(self.values[key])}", key)
            return None
        self.settings.append(Setting((*self.path, key), self.values[key], self.places[*self.path, key][1]))
        return self.values[key]

    def text(self, key: str, default: Any = ...) -> str | None:
        """Return a string."""
        value: str | None = self.get(key, "a text in quotes", lambda value: isinstance(value, str), default)
        return value

    def integer(self, key: str, least: int, most: int, default: Any = ...) -> int | None:
        """Return a whole number between two limits, inclusive."""
        expected = f"a whole number from {least:,} to {most:,}"
        value: int | None = self.get(key, expected, lambda value: is_whole(value) and least <= value <= most, default)
        return value

    def number(self, key: str, least: float, most: float, default: Any = ...) -> float | None:
        """Return a number between two limits, inclusive."""
        expected = f"a number from {_plain(least)} to {_plain(most)}"
        value: float | None = self.get(
            key, expected, lambda value: is_number(value) and least <= value <= most, default
        )
        return value

    def table(self, key: str) -> "TomlTable | None":
        """Return the table of a key; None if the key is missing or holds something else."""
        self.read_keys.add(key)
        if key in self.values and not isinstance(self.values[key], dict):
            self.fault("SN704", f"`{key}`: expected a table, found {_shown(self.values[key])}", key)
        return self._inner(key) if isinstance(self.values.get(key), dict) else None

    def tables(self) -> Iterator[tuple[str, "TomlTable"]]:
        """Yield every key of a table whose values are all tables."""
        for key in self.values:
            if (table := self.table(key)) is not None:
                yield key, table

    def one_of(self, key: str, what: str, known: Collection[str], default: Any = ...) -> str | None:
        """Return a string that is one of the known names of `what`."""
        name = self.text(key, default)
        if name is not None and name is not default and name not in known:
            self.fault("SN706", f"unknown {what} `{name}`", key, help=did_you_mean(name, known) or _known(known))
            return None
        return name

    def close(self) -> None:
        """Note a fault for every key that was never read."""
        for key in self.values.keys() - self.read_keys:
            name, _ = self.places[*self.path, key]
            help = did_you_mean(key, self.read_keys - self.values.keys()) or _known(self.read_keys)
            self.faults.append(
                Diagnostic("SN702", f"unknown key `{key}` in {self._name()}", self.source, name, help=help)
            )

    def _inner(self, key: str) -> "TomlTable":
        path = (*self.path, key)
        return TomlTable(self.source, self.values[key], self.places, self.faults, path, settings=self.settings)

    def _name(self) -> str:
        return f"`{'.'.join(str(part) for part in self.path)}`" if self.path else "the file"


def is_whole(value: Any) -> bool:
    """Return whether a value is an integer, and not a boolean."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Return whether a value is a finite number, and not a boolean."""
    return is_whole(value) or (isinstance(value, float) and abs(value) < float("inf"))


def _plain(number: float) -> str:
    return f"{number:,.15g}" if abs(number) < 1e15 else f"{number:g}"


def _shown(value: Any) -> str:
    """Return a value as it looks in a file, at most 30 characters."""
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        text = f"[{', '.join(map(_shown, value))}]"
        return text if len(text) <= 40 else f"a list of {len(value)} values"
    text = f'"{value}"' if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[:31])
    return text if len(text) <= 30 else f"{text[:30]}…"


def _known(names: Collection[str]) -> str | None:
    return f"known here: {', '.join(f'`{name}`' for name in sorted(names))}" if names else None


_BLANK = re.compile(r"(?:\s|#[^\n]*)*")
_KEY = re.compile(r"""[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'""")
_DOT = re.compile(r"[ \t]*\.[ \t]*")
_STRING = re.compile(r'''"""(?:[^\\]|\\.)*?"{3,5}(?!")|\'\'\'.*?'{3,5}(?!')|"(?:[^"\\]|\\.)*"|'[^']*\'''', re.DOTALL)
_BARE = re.compile(r"[^,\]}#\n]*[^,\]}#\s]")


class _KeyLocations:
    """The spans of keys and values in a text that is valid TOML; nothing is checked again."""

    def __init__(self, text: str) -> None:
        self.found: dict[Path, tuple[Span, Span]] = {}
        self._text, self._at = text, 0
        self._counts: dict[Path, int] = {}  # tables so far in each array of tables
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
        """Read a key, dotted or not; return its parts and its span."""
        start = self._at
        keys: list[str] = []
        while True:
            written = self._match(_KEY).group()
            keys.append(next(iter(tomllib.loads(f"{written}=0"))) if written[0] in "\"'" else written)
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
            self._match(_STRING if first in "\"'" else _BARE)
        value = Span(start, self._at)
        self.found[path] = (key or value, value)

    def _skipped(self) -> str:
        """Skip blanks; return the next character."""
        self._blank()
        return self._text[self._at]

    def _blank(self) -> None:
        """Skip blanks, line ends and comments."""
        self._match(_BLANK)

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str]:
        """Match a pattern here and go behind it; it matches, because the text is valid TOML."""
        found = pattern.match(self._text, self._at)
        assert found is not None
        self._at = found.end()
        return found
