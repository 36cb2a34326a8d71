"""The schema parser: declarations of extents as the paper writes them, followed by clauses (semantics 13).

`basestation.planner.catalog` checks which clauses fit the kind of an extent, and whether names are unique.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, TypeVar

from acquisition.extent import ExtentKind, LatePolicy
from acquisition.schema import Type
from basestation.language.cursor import ParseError
from basestation.language.duration_parser import DurationParser
from basestation.language.keywords import suggest_type
from basestation.language.lexer import NAME, NUMBER, STRING, Token
from basestation.language.schema_syntax import AttributeDecl, ExtentDecl, LateClause, SitesClause
from basestation.language.syntax import Duration, Expr, Name, Number, String, Unary
from gateway.diagnostics import Diagnostic
from gateway.source import Source

_KINDS = tuple(kind.value.upper() for kind in ExtentKind)
_TYPES = tuple(type.value.upper() for type in Type)
_POLICIES = tuple(late.value.upper() for late in LatePolicy)
_CLAUSES = ("EVERY", "AT", "WAIT", "LATE", "AHEAD", "FROM")
_PROPERTIES = ("UNIT", "SENSOR", "SCALE", "RANGE")
_CLAUSE_STOPS = frozenset((";", *_CLAUSES))
_ATTRIBUTE_STOPS = frozenset((",", ")", ";"))
_PROPERTY_STOPS = frozenset((",", "}", ")", ";"))

_Entry = TypeVar("_Entry")


@dataclass(frozen=True, slots=True)
class ParsedSchema:
    """The declarations of a text, and its diagnostics."""

    extents: tuple[ExtentDecl, ...]
    diagnostics: tuple[Diagnostic, ...]


def parse_schema(source: Source) -> ParsedSchema:
    """Parse a schema. Never raises for any text: errors become diagnostics."""
    return _SchemaParser(source).schema()


class _SchemaParser(DurationParser):
    def schema(self) -> ParsedSchema:
        extents = []
        if self.at("end"):
            self.report_unexpected(
                "an extent", ("a name",), "road: sensed (site:integer, temp:integer) every 1 min at sites 1, 2"
            )
        while not self.at("end"):
            try:
                extents.append(self._extent())
            except ParseError:
                self.take()  # so that it is not read as the start of the next declaration
                self.recover((0, 0), (";",))
            while self.accept(";"):
                pass
        diagnostics = sorted(self.diagnostics, key=lambda d: (d.span.start, d.span.end, d.code))
        return ParsedSchema(tuple(extents), tuple(diagnostics))

    def spell(self, word: str) -> str:
        return word.lower()

    def starts_declaration(self) -> bool:
        """Whether the next declaration begins here: `name : kind`."""
        return self.token.kind is NAME and self.peek().word == ":" and self.peek(2).word in _KINDS

    def _extent(self) -> ExtentDecl:
        """`name : kind ( attributes ) clauses`."""
        start = self.token.span.start
        name = self.name("the name of an extent", ("a name",))
        self.expect(":", help=f"declare an extent like this: {name.text}: sensed (site:integer, temp:integer)")
        kind = self._one_of(_KINDS, "the kind of the extent").lower()
        opening = self.expect("(", help="put the attributes in parentheses: (site:integer, temp:integer)")
        attributes = self._list(self._attribute, _ATTRIBUTE_STOPS)
        self.close(opening, (",",))
        clauses: dict[str, Any] = {}
        while not self.at_any((";", "end")) and not self._next_declaration():
            try:
                self._clause(clauses)
            except ParseError:
                self.recover((0, 0), _CLAUSE_STOPS)
        return ExtentDecl(name, kind, tuple(attributes), **clauses, span=self.span_from(start))

    def _next_declaration(self) -> bool:
        return self.token.kind is NAME and self.peek().word == ":"

    def _list(self, parse: Callable[[], _Entry], stops: Collection[str]) -> list[_Entry]:
        """Entries with `,` between them, without those that cannot be parsed."""
        entries: list[_Entry] = []
        while True:
            try:
                entries.append(parse())
            except ParseError:
                self.recover((0, 0), stops)
            if not self.accept(","):
                return entries

    def _one_of(self, words: tuple[str, ...], what: str) -> str:
        """One of these words, in any case; a typo is reported and read as the word."""
        if not self.at_any(words) and not self.correct_typo(words):
            self.fail(what, tuple(word.lower() for word in words))
        return self.take().word

    # --- attributes ---

    def _attribute(self) -> AttributeDecl:
        """`name : type [{ properties }]`."""
        start = self.token.span.start
        name = self.name("an attribute", ("a name",))
        self.expect(":", help=f"an attribute has a type: {name.text}:integer")
        type = self._type()
        properties: dict[str, Any] = {}
        if self.at("{"):
            opening = self.take()
            self._list(lambda: self._property(properties), _PROPERTY_STOPS)
            self.close(opening, (",",))
        return AttributeDecl(name, type, **properties, span=self.span_from(start))

    def _type(self) -> Name:
        """A type; another name is reported, and the attribute goes on after it."""
        token = self.token
        if token.kind is not NAME or token.word in _TYPES:
            return Name(self._one_of(_TYPES, "a type").lower(), span=token.span)
        known = tuple(word.lower() for word in _TYPES)
        self.report("SN206", f"there is no type `{token.text}`", token.span, known, suggest_type(token.text))
        self.take()
        if self.at("("):
            self.reject("SN112", "types have no length", self.token.span)
        return Name(known[0], span=token.span)

    def _property(self, properties: dict[str, Any]) -> None:
        """One property of an attribute, into `properties`."""
        token = self.token
        word = self._one_of(_PROPERTIES, "a property").lower()
        value: Number | String | tuple[Expr, Expr]
        if word == "scale":
            place = self.token.span
            value = Number(self.count("the number of decimals", least=0), span=place)
        elif word == "range":
            low = self._bound()
            self.expect("..", help="write a range as low .. high")
            value = (low, self._bound())
        else:
            value = self._string(f"the {word}")
        self._once(token, word, properties)
        properties.setdefault(word, value)

    def _bound(self) -> Expr:
        """A number, which may be negative or fractional."""
        minus = self.accept("-")
        token = self.token
        if token.kind is not NUMBER:
            self.fail("a number", ("a number",))
        self.take()
        number = Number(token.number, span=token.span)
        return Unary("-", number, span=minus.span.to(token.span)) if minus else number

    def _string(self, what: str) -> String:
        token = self.token
        if token.kind is not STRING:
            help = f"write it in quotes: '{token.text}'" if token.kind is NAME else None
            self.fail(f"{what} in quotes", ("a string",), help=help)
        if not token.value:
            self.report("SN105", f"{what} must not be empty", token.span, ("a string",))
        self.take()
        return String(token.string, span=token.span)

    # --- clauses ---

    def _clause(self, clauses: dict[str, Any]) -> None:
        """One clause of a declaration, into `clauses`."""
        token = self.token
        word = self._one_of(_CLAUSES, "a clause, `;` or the next extent")
        value: Duration | SitesClause | LateClause | String
        if word == "AT":
            self.expect("SITES", "sites")
            field, value = "sites", self._sites()
        elif word == "LATE":
            field, value = "late", self._late(token)
        elif word == "FROM":
            field, value = "source", self._string("the name of a file")
        else:  # wait and ahead may be 0, the sampling interval may not
            field, value = word.lower(), self.duration(least=0 if word in ("WAIT", "AHEAD") else 1)
        self._once(token, field, clauses)
        clauses.setdefault(field, value)

    def _once(self, token: Token, key: str, seen: Collection[str]) -> None:
        if key in seen:
            self.report("SN110", f"`{token.text}` appears twice", token.span)

    def _sites(self) -> SitesClause:
        """`all`, or numbers and ranges of numbers."""
        start = self.token.span.start
        if self.accept("ALL"):
            return SitesClause((), True, span=self.span_from(start))
        ranges = [self._site_range()]
        while self.accept(","):
            ranges.append(self._site_range())
        return SitesClause(tuple(ranges), span=self.span_from(start))

    def _site_range(self) -> tuple[int, int]:
        start = self.token.span.start
        if self.token.kind is NAME and self.correct_typo(("ALL",)):
            self.take()
            raise ParseError
        first = self.count("a site", least=0)
        if not self.accept(".."):
            return first, first
        last = self.count("a site", least=0)
        if last < first:
            self.report("SN105", f"the range {first} .. {last} goes down", self.span_from(start),
                        help=f"write {last} .. {first}")  # fmt: skip
        return first, last

    def _late(self, token: Token) -> LateClause:
        """`revise [by n unit]`, `append` or `drop`."""
        start = token.span.start
        policy = self._one_of(_POLICIES, "the policy for late tuples").lower()
        horizon = None
        if self.at("BY"):
            by = self.take()
            if policy != "revise":
                self.report(
                    "SN105",
                    f"late {policy} has no horizon",
                    by.span,
                    help="only late revise has a horizon: late revise by 1 hour",
                )
            horizon = self.duration()
        return LateClause(policy, horizon, span=self.span_from(start))
