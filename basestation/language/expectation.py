"""Expectation: the words and kinds of words with which a text can continue, from the parser itself.

The parser works on the text up to the cursor and notes everything that it looks for there. A recursive-descent parser looks for
each word that it can take, and for some that it rejects with a better message; so each noted word is then tried.
"""

from collections.abc import Collection
from dataclasses import dataclass

from basestation.language.duration_parser import ALL_UNITS
from basestation.language.lexer import BAD, END, NAME, NUMBER, STRING, Token, tokenize
from basestation.language.parser import Parser
from basestation.language.precedence import OR
from basestation.language.syntax import Expr, FromEntry, Join, Name
from gateway.source import Source

PHRASES = {
    "GROUP": ("GROUP BY",), "ORDER": ("ORDER BY",), "UNION": ("UNION ALL",), "ACQUIRE": ("ACQUIRE EVERY",),
    "DELIVER": ("DELIVER WITHIN",), "INSERT": ("INSERT INTO",), "DELETE": ("DELETE FROM",),
    "IS": ("IS NULL", "IS NOT NULL"),
}  # fmt: skip
"""Words that only some other words follow, with these."""

_NEGATED = ("NOT BETWEEN", "NOT IN", "NOT LIKE")
_CLAUSES = ("WHERE", "GROUP", "HAVING")
_OPERANDS = ("CASE", "CAST", "EXISTS", "NOT", "NULL")
_TRIED_AS = {
    "CASE": "CASE WHEN 1 = 1 THEN 1 END", "CAST": "CAST(1 AS integer)", "EXISTS": "EXISTS (SELECT 1 FROM a)",
    "UNION": "UNION ALL",
}  # fmt: skip
_KINDS = {
    "the name of an extent": "extent", "a column": "column", "an attribute": "column", "a type": "type",
    "a function": "function",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Expectation:
    """The continuations at a cursor. The word that ends at the cursor, if there is one, begins at `start`.

    `words` are keywords and signs. `kinds` are `extent`, `column`, `function` and `type`.
    """

    start: int
    words: tuple[str, ...] = ()
    kinds: frozenset[str] = frozenset()


def find_expectation(text: str, cursor: int) -> Expectation:
    """The words that can stand at a cursor, in place of a word that ends there; none inside a string, number or comment.

    Each word is tried with the text before it: about 0.1 ms for each word and line of text.
    """
    before = text[:cursor]
    tokens, _ = tokenize(Source(before))
    last = tokens[-2] if len(tokens) > 1 else None
    start = cursor
    if last is not None and last.span.end == cursor:
        if last.kind in (NUMBER, STRING, BAD):
            return Expectation(cursor)
        if last.kind is NAME:
            start = last.span.start
    elif last is not None and last.kind is BAD and last.text.startswith(("'", "/*")):
        return Expectation(cursor)
    if "--" in before[last.span.end if last else 0 :].rpartition("\n")[2]:
        return Expectation(cursor)
    parser = _ExpectationParser(Source(before[:start]))
    parser.text()
    words = {parser.spell(word) for word in parser.words if word not in (END, NUMBER, STRING, BAD, NAME)}
    typed = before[start:].upper()
    found: list[str] = []
    for word in words:
        if word.upper().startswith(typed):
            is_negation = word == "NOT" and parser.has_operand
            tried = _TRIED_AS.get(word, word)
            if word == "NOT" and (is_negation or parser.is_operand):
                tried = "NOT IN (1)" if is_negation else "NOT 1 = 1"
            if _can_continue(before[:start], tried):
                found += _NEGATED if is_negation else PHRASES.get(word, (word,))
    kinds = {kind for kind in parser.kinds if kind != "function" or _can_continue(before[:start], "ABS(1)")}
    return Expectation(start, tuple(sorted(found)), frozenset(kinds))


def _can_continue(before: str, word: str) -> bool:
    """Whether the parser takes a word after a text."""
    gap = " " if before and before[-1].isalnum() and word[0].isalnum() else ""
    start = len(before) + len(gap)
    end = start + len(word)
    errors = Parser(Source(before + gap + word)).text().diagnostics
    return not any(error.span.start < end and start < error.span.end for error in errors)


class _ExpectationParser(Parser):
    """Notes what it looks for at the end of the text: `words`, `kinds`, whether an operand is there, and whether one is due."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.words: set[str] = set()
        self.kinds: set[str] = set()
        self.has_operand = self.is_operand = False
        self._is_noting = True  # until it reports an error at the end of the text: it skips words after that

    def _note(self, words: Collection[str]) -> None:
        if self._is_noting and self.token.kind is END:
            self.words.update(word for word in words if " " not in word)
            self.kinds.update(_KINDS[word] for word in words if word in _KINDS)

    def at(self, word: str) -> bool:
        self._note((word,))
        return super().at(word)

    def at_any(self, words: Collection[str]) -> bool:
        self._note(words)
        return super().at_any(words)

    def accept(self, word: str) -> Token | None:
        self._note((word,))
        return super().accept(word)

    def correct_typo(self, words: tuple[str, ...]) -> bool:
        self._note(words)
        return super().correct_typo(words)

    def name(self, what: str, expected: Collection[str] = ()) -> Name:
        self._note((what,))
        return super().name(what, expected)

    def report_unexpected(self, what: str, expected: Collection[str], help: str | None = None) -> None:
        self._note((what, *expected))
        if self.token.kind is END and self._is_noting and not {"a function", "an expression"}.isdisjoint(expected):
            self.is_operand = True
            self.kinds.update(("column", "function"))
            self.words.update(_OPERANDS)
        self._is_noting = self._is_noting and self.token.kind is not END
        super().report_unexpected(what, expected, help)

    def expression(self, loosest: int = OR) -> Expr:
        found = super().expression(loosest)
        self.has_operand = self.token.kind is END and self._is_noting
        self._note((*self.operators, *_CLAUSES))
        return found

    def entries(self) -> tuple[FromEntry | Join, ...]:
        found = super().entries()
        self._note(_CLAUSES)
        return found

    def _offset_unit(self) -> str | None:
        self._note(ALL_UNITS)
        return super()._offset_unit()
