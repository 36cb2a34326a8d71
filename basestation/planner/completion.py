"""Completion: what can stand at a cursor in a text, for the shell and for editors.

The parser says which kinds of words it expects there; extents and columns are those of the catalog, and of the FROM that the
cursor is in.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

from acquisition.extent import Catalog, Extent, ExtentKind
from basestation.language.expectation import find_expectation
from basestation.language.lexer import NAME, tokenize
from basestation.language.node import SyntaxNode
from basestation.language.parser import parse
from basestation.language.syntax import (
    ColumnRef,
    ConverterQuery,
    ExtentSource,
    FromEntry,
    Join,
    Name,
    QueryExpression,
    Select,
    SelectItem,
    Star,
    Union,
)
from basestation.planner.functions import AGGREGATES, FUNCTIONS, TYPES
from gateway.source import Source

_PLACE = "place_of_the_cursor"
_ORDER = ("column", "extent", "aggregate", "function", "type", "keyword")
_STREAM = (("tick", "integer: the time of the tuple"), ("index", "integer: its number in the stream"))


@dataclass(frozen=True, slots=True)
class Completion:
    """A word that can stand at the cursor. `kind` is column, extent, aggregate, function, type or keyword."""

    text: str
    kind: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Completions:
    """The words that can replace the text from `start` to the cursor."""

    start: int
    items: tuple[Completion, ...]

    def as_json(self) -> dict[str, Any]:
        """The completions as a dictionary for JSON; `start` counts code points from 0."""
        items = [{"text": each.text, "kind": each.kind, "detail": each.detail} for each in self.items]
        return {"start": self.start, "completions": items}


def complete(text: str, cursor: int, catalog: Catalog) -> Completions:
    """The words that can stand at a cursor (an offset in code points), and begin as the word that ends there."""
    expected = find_expectation(text, cursor)
    start = expected.start
    found = [Completion(word, "keyword") for word in expected.words if word[0].isalpha() and word not in TYPES]
    if "column" in expected.kinds:
        found += _columns(text, start, cursor, catalog)
    if "extent" in expected.kinds:
        found += [Completion(extent.name, "extent", _describe(extent)) for extent in catalog]
    if "function" in expected.kinds:
        found += [Completion(f"{name}(", "aggregate", of.usage) for name, of in AGGREGATES.items()]
        found += [Completion(f"{name}(", "function", of.usage) for name, of in FUNCTIONS.items()]
    if "type" in expected.kinds:
        found += [Completion(name, "type") for name in TYPES]
    typed = text[start:cursor].casefold()
    chosen = dict.fromkeys(each for each in found if each.text.casefold().startswith(typed))
    return Completions(start, tuple(sorted(chosen, key=lambda each: (_ORDER.index(each.kind), each.text))))


def _describe(extent: Extent) -> str:
    return f"{extent.kind} ({', '.join(extent.schema.names)})"


# --- columns in scope ---


def _columns(text: str, start: int, cursor: int, catalog: Catalog) -> Iterator[Completion]:
    """The columns of the SELECT around the cursor; of the extents that the text names, or of all, where it has no FROM yet."""
    tokens, _ = tokenize(Source(text[:start]))
    qualifier = tokens[-3].text if len(tokens) > 2 and tokens[-2].word == "." and tokens[-3].kind is NAME else None
    rest = text[cursor:]
    inside = next((i for i, letter in enumerate(rest) if not (letter.isalnum() or letter == "_")), len(rest))
    statements = parse(Source(f"{text[:start]}{_PLACE} {rest[inside:]}")).statements
    selects = [
        each for each in _nodes(statements) if isinstance(each, Select) and each.span.start <= start <= each.span.end
    ]
    entries = list(_entries(min(selects, key=lambda each: each.span.end - each.span.start))) if selects else []
    if not entries:
        named = {token.text for token in tokenize(Source(text))[0] if token.kind is NAME}
        named = {extent.name for extent in catalog if extent.name in named} or set(catalog.extents)
        entries = [FromEntry(ExtentSource(Name(name)), None, None) for name in catalog.extents if name in named]
    for entry in entries:
        name = _name_of(entry)
        if qualifier is None and name is not None and len(entries) > 1:
            yield Completion(f"{name}.", "extent", "its columns")
        if qualifier in (None, name):
            yield from _columns_of(entry, catalog)


def _nodes(node: object) -> Iterator[SyntaxNode]:
    pending = [node]
    while pending:
        each = pending.pop()
        if isinstance(each, tuple):
            pending += each
        elif isinstance(each, SyntaxNode):
            yield each
            pending += [getattr(each, field.name) for field in fields(each)]


def _entries(select: Select) -> Iterator[FromEntry]:
    pending = list(reversed(select.entries))
    while pending:
        entry = pending.pop()
        if isinstance(entry, Join):
            pending += (entry.right, entry.left)
        else:
            yield entry


def _name_of(entry: FromEntry) -> str | None:
    if entry.alias is not None:
        return entry.alias.text
    return entry.source.name.text if isinstance(entry.source, ExtentSource) else None


def _columns_of(entry: FromEntry, catalog: Catalog) -> Iterator[Completion]:
    source = entry.source
    if not isinstance(source, ExtentSource):
        yield from _columns_of_query(source.query, catalog)
        return
    extent = catalog.find(source.name.text)
    if extent is None:
        return
    for each in extent.schema:
        yield Completion(each.name, "column", f"{each.type}{f', {each.unit}' if each.unit else ''}")
    if entry.window is None and extent.kind is not ExtentKind.STORED:
        yield from (Completion(name, "column", detail) for name, detail in _STREAM)


def _columns_of_query(query: QueryExpression, catalog: Catalog) -> Iterator[Completion]:
    """The columns that the items of a query have; the first part of a union names them."""
    while isinstance(query, ConverterQuery | Union):
        query = query.query if isinstance(query, ConverterQuery) else query.parts[0]
    assert isinstance(query, Select)
    for item in query.items:
        if isinstance(item, Star):
            for entry in _entries(query):
                if item.qualifier is None or item.qualifier.text == _name_of(entry):
                    yield from _columns_of(entry, catalog)
        elif (name := _name_of_item(item)) is not None:
            yield Completion(name, "column", "of the subquery")


def _name_of_item(item: SelectItem) -> str | None:
    if item.alias is not None:
        return item.alias.text
    return item.expr.name.text if isinstance(item.expr, ColumnRef) else None
