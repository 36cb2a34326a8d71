"""FROM: its entries with aliases, windows and joins."""

from basestation.language.cursor import NestingError, ParseError
from basestation.language.expression_parser import ExpressionParser
from basestation.language.keywords import (
    CLAUSE_STARTS,
    CONVERTERS,
    JOINS,
    NEVER_ALIASES,
    QUERY_CLAUSES,
    RESERVED,
    SQL_WORDS,
    find_nearest,
)
from basestation.language.lexer import NAME
from basestation.language.syntax import (
    Bad,
    ConverterQuery,
    ExtentSource,
    FromEntry,
    Join,
    Name,
    QuerySource,
    WindowClause,
)
from basestation.language.window_parser import WindowParser

MAX_JOINS = 300
"""The limit for joins in a row: each lies above the one before it."""

CLAUSE_STOPS = frozenset((")", "]", "}", ";", "SELECT")) | CLAUSE_STARTS
"""Where recovery stops after an error in a clause."""
LIST_STOPS = CLAUSE_STOPS | {","}
"""Where recovery stops after an error in an entry of a clause."""

_JOIN_STOPS = LIST_STOPS | JOINS
_WINDOW_STOPS = frozenset(("]", ")", "}", ";", "SELECT", "WHERE", "GROUP", "HAVING"))
_AFTER_ALIAS = LIST_STOPS - {"SELECT"} | JOINS | {"[", "(", "ON", "FROM", "end", "bad"}
_WINDOW_WORDS = {
    "SLIDE": "write name [FROM NOW-n TO NOW SLIDE n unit]",
    "SCAN": "write name [SCAN n unit]",
    "RESCAN": "write name [RESCAN n unit]",
}
_CONVERTER_WORDS = tuple(sorted(CONVERTERS))
_JOIN_WORDS = tuple(sorted(JOINS))
_OPERATOR_WORDS = ("BETWEEN", "LIKE", "AND")


class FromParser(ExpressionParser, WindowParser):
    """Parses the entries of FROM. Derived classes implement `convert`."""

    def convert(self) -> ConverterQuery:
        """A query in a converter."""
        raise NotImplementedError

    def alias(self, following: tuple[str, ...] = ()) -> Name | None:
        """`[AS] name`, or None without an alias; `following` are the keywords that can come next.

        A word that nothing fitting follows is not an alias: it is a typo of a keyword, or a word of SQL.
        """
        if self.accept("AS"):
            return self.name("an alias", ("a name",))
        token = self.token
        if token.kind is not NAME or token.word in RESERVED or token.word in NEVER_ALIASES:
            return None
        after = self.peek().word
        if after not in _AFTER_ALIAS or ((after == "(" or after in JOINS) and token.word in SQL_WORDS):
            self.reject_sql_word()
            if after == "number" and token.word in _WINDOW_WORDS:
                self.reject("SN105", f"{token.word} belongs in a window", token.span, _WINDOW_WORDS[token.word])
            if find_nearest(token.text, following) or find_nearest(token.text, _OPERATOR_WORDS):
                return None
        self.take()
        return Name(token.text, span=token.span)

    def reject_sql_alias(self, name: Name) -> None:
        """Reject a word of SQL that was read as the name before this token."""
        word = name.text.upper()
        if word in SQL_WORDS and self.tokens[self.position - 1].span == name.span:
            self.reject("SN112", f"SNEEql has no {word}", name.span, SQL_WORDS[word])

    def reject_sql_word(self) -> None:
        """Reject a word that exists only in SQL."""
        if self.token.kind is NAME and self.token.word in SQL_WORDS:
            self.reject("SN112", f"SNEEql has no {self.token.word}", self.token.span, SQL_WORDS[self.token.word])

    def operator_hint(self) -> str | None:
        """The help for an operator that is misspelt, or not one of SNEEql."""
        if self.at(":") and self.peek().word == ":":
            return "write CAST(e AS type)"
        meant = find_nearest(self.token.text, _OPERATOR_WORDS) if self.token.kind is NAME else None
        return f"did you mean `{meant}`?" if meant else None

    def entries(self) -> tuple[FromEntry | Join, ...]:
        """The entries of FROM; none if one could not be read, so that its missing columns cause no further errors."""
        entries: list[FromEntry | Join] = []
        broken = False
        while True:
            levels = self.levels()
            start = self.token.span.start
            try:
                entry: FromEntry | Join = self._entry()
                joins = 0
                while self.at_any(JOINS) or (self.token.kind is NAME and self.correct_typo(_JOIN_WORDS)):
                    joins += 1
                    self._limit_joins(joins)
                    entry = self._join(entry, start)
                entries.append(entry)
            except ParseError:
                broken = True
                self.recover(levels, LIST_STOPS)
            if not self.accept(","):
                return () if broken else tuple(entries)

    def _limit_joins(self, count: int) -> None:
        if count > MAX_JOINS:
            self.report("SN109", f"more than {MAX_JOINS} JOINs in a row", self.token.span,
                        help="list the tables in FROM with commas, and write the conditions in WHERE")  # fmt: skip
            raise NestingError

    def after_entry(self, entry: FromEntry | Join) -> tuple[str, ...]:
        """The words that can follow an entry of FROM, for messages."""
        if isinstance(entry, Join):
            return ("an operator", ",", "JOIN")
        window = () if entry.window else ("[",)
        return (*(() if entry.alias else ("an alias",)), *window, ",", "JOIN")

    def _join(self, left: FromEntry | Join, start: int) -> Join:
        kind = self.take().word
        if kind == "JOIN":
            kind = "INNER"
        else:
            if kind in ("LEFT", "RIGHT", "FULL"):
                self.accept("OUTER")
            self.expect("JOIN")
        right = self._entry()
        if kind == "CROSS":
            if self.at("ON"):
                self.reject("SN105", "a CROSS JOIN has no ON", self.token.span, "write JOIN … ON")
            return Join(kind, left, right, None, span=self.span_from(start))
        self.expect("ON", help="write the condition of the join: JOIN … ON a.x = b.x")
        levels = self.levels()
        try:
            condition = self.expression()
        except ParseError:
            condition = Bad(span=self.token.span)
            self.recover(levels, _JOIN_STOPS)
        return Join(kind, left, right, condition, span=self.span_from(start))

    def _entry(self) -> FromEntry:
        """A source with its alias and its window, in either order."""
        start = self.token.span.start
        source = self._source()
        alias = self.alias((*QUERY_CLAUSES, *_JOIN_WORDS))
        window = None
        if self.at("["):
            window = self._window_or_skip()
            alias = alias or self.alias((*QUERY_CLAUSES, *_JOIN_WORDS))
        if self.at("["):
            self.reject("SN110", "an entry of FROM has one window", self.token.span)
        return FromEntry(source, alias, window, span=self.span_from(start))

    def _window_or_skip(self) -> WindowClause:
        """A window; after one that cannot be read, the cursor skips it and its entry fails."""
        levels = self.levels()
        try:
            return self.window()
        except ParseError:
            self.recover(levels, _WINDOW_STOPS)
            self.accept("]")
            raise

    def _source(self) -> ExtentSource | QuerySource:
        token = self.token
        if self.at("("):
            opening = self.take()
            self.enter_level(opening)
            if (
                self.token.kind is NAME
                and self.token.word not in RESERVED
                and not find_nearest(self.token.text, ("SELECT",))
            ):
                self.reject("SN112", "only a query is allowed in parentheses in FROM", self.token.span,
                            "leave the parentheses out", ("SELECT",))  # fmt: skip
            query = self.query()
            self.close_query(opening)
            self.depth -= 1
            return QuerySource(query, span=self.span_from(token.span.start))
        if self.at_any(CONVERTERS) or (self.peek().word == "(" and self.correct_typo(_CONVERTER_WORDS)):
            return QuerySource(self.convert(), span=self.span_from(token.span.start))
        name = self.name("the name of an extent", ("a name", "("))
        if not self.accept("."):
            if self.at("("):
                self.reject("SN112", "SNEEql has no functions in FROM", name.span)
            return ExtentSource(name, span=name.span)
        if not self.at("HISTORY") and not self.correct_typo(("HISTORY",)):
            self.fail("HISTORY", ("HISTORY",), help=f"the archive of an extent is {name.text}.HISTORY")
        self.take()
        return ExtentSource(name, True, span=self.span_from(token.span.start))
