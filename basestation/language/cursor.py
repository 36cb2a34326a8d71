"""TokenCursor: a position in a list of tokens, with error reports and recovery.

Parser methods take tokens and return nodes. A method that cannot go on reports the reason and raises ParseError. The
method that reads the list or clause around it catches the error, moves to the next entry or clause, and goes on.

Errors do not cascade: the cursor reports nothing at a position reached by skipping, nor at a token that the lexer has
reported.
"""

from collections.abc import Collection, Iterable
from typing import NoReturn, TypeAlias

from basestation.language.keywords import RESERVED, find_nearest
from basestation.language.lexer import BAD, END, NAME, NUMBER, STRING, Token, tokenize
from basestation.language.syntax import Name
from gateway.diagnostics import Diagnostic
from gateway.errors import MoteloomError
from gateway.source import Source, Span

MAX_NESTING = 100
"""The limit for nested brackets, subqueries, CASE and the like (semantics 10.1)."""

MAX_OPERATOR_NESTING = 120
"""The limit for operators nested to the right: one for each bracket, and one of each precedence in the innermost."""

_CLOSING = {"(": ")", "[": "]", "{": "}"}

Levels: TypeAlias = tuple[int, int]
"""The nesting of brackets and of operators at a position, for `recover`."""


class ParseError(MoteloomError):
    """The text does not continue as the grammar requires; the error is reported already."""


class NestingError(MoteloomError):
    """The statement nests too deeply to be read; the error is reported already."""


class TokenCursor:
    """`token` is the current token; `end` is the offset at which the last taken token ends; `steps` counts work for tests."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.tokens, self.diagnostics = tokenize(source)
        self.position = 0
        self.token = self.tokens[0]
        self.end = 0
        self.steps = 0
        self.depth = 0
        self.operator_depth = 0
        self._skipped_to: int | None = None
        self._partners: dict[int, int] | None = None
        self._in_loops: set[int] = set()

    # --- reading tokens ---

    def at(self, word: str) -> bool:
        """Whether the current token is this word or sign."""
        self.steps += 1
        return self.token.word == word

    def at_any(self, words: Collection[str]) -> bool:
        """Whether the current token is one of these words or signs."""
        self.steps += 1
        return self.token.word in words

    def peek(self, ahead: int = 1) -> Token:
        """The token `ahead` of the current one; END at the end."""
        self.steps += 1
        index = self.position + ahead
        return self.tokens[index] if index < len(self.tokens) else self.tokens[-1]

    def take(self) -> Token:
        """The current token; the next one becomes current. END stays."""
        self.steps += 1
        token = self.token
        if token.kind is not END:
            self.end = token.span.end
            self.position += 1
            self.token = self.tokens[self.position]
        return token

    def accept(self, word: str) -> Token | None:
        """Take the token if it is this word or sign, else None."""
        self.steps += 1
        return self.take() if self.token.word == word else None

    def span_from(self, start: int) -> Span:
        """The span from an offset to the end of the last taken token."""
        return Span(start, self.end if self.end > start else start)

    # --- expecting ---

    def expect(self, word: str, what: str | None = None, *, help: str | None = None) -> Token:
        """Take this word or sign. A typo (`SLDIE`) is reported and read as the word."""
        token = self.accept(word)
        if token is None:
            if not self.correct_typo((word,)):
                shown = self.spell(word)
                self.fail(what or f"`{shown}`", (shown,), help=help)
            token = self.take()
        return token

    def correct_typo(self, words: tuple[str, ...]) -> bool:
        """If the token is nearly one of `words`, report the typo and replace the token's word by the right one."""
        token = self.token
        if token.kind is not NAME or token.word in RESERVED or self.is_suppressed():
            return False
        meant = find_nearest(token.text, words)
        if meant is None or meant == token.word:
            return False
        shown = self.spell(meant)
        self.report("SN105", f"expected `{shown}`, found `{token.text}`", token.span, (shown,),
                    f"did you mean `{shown}`?")  # fmt: skip
        token.word = meant
        return True

    def spell(self, word: str) -> str:
        """A keyword as messages show it."""
        return word

    def close(self, opening: Token, expected: Collection[str] = (), help: str | None = None) -> None:
        """Take the bracket that closes `opening`. Text before it is reported once and skipped."""
        closing = _CLOSING[opening.word]
        if self.accept(closing):
            return
        line, column = self.source.line_column(opening.span.start)
        help = help or f"it closes the `{opening.word}` of line {line}, column {column}"
        self.report_unexpected(f"`{closing}`", (*expected, closing), help)
        self.skip_to(_AFTER_GROUP)
        self.accept(closing)

    def name(self, what: str, expected: Collection[str] = ()) -> Name:
        """Take a name that is not reserved."""
        token = self.token
        if token.kind is NAME and token.word not in RESERVED:
            self.take()
            return Name(token.text, span=token.span)
        if token.kind is NAME and self.peek().word in _AFTER_NAME:
            # The text goes on as if this were the name, so it is read as one.
            self.report("SN111", f"`{token.text}` is a reserved word and cannot be {what}", token.span)
            self.take()
            return Name(token.text, span=token.span)
        self.fail(what, expected or (what,))

    # --- reporting ---

    def report(
        self, code: str, message: str, span: Span, expected: Iterable[str] = (), help: str | None = None
    ) -> None:
        """Add a diagnostic."""
        self.diagnostics.append(Diagnostic(code, message, self.source, span, tuple(expected), help))

    def is_suppressed(self) -> bool:
        """Whether an error at this token would only follow from a reported one."""
        return (
            self.position == self._skipped_to
            or self.token.kind is BAD
            or (self.position > 0 and self.tokens[self.position - 1].kind is BAD)
        )

    def report_unexpected(self, what: str, expected: Collection[str], help: str | None = None) -> None:
        """Report that the token is not `what`, unless that follows from another error."""
        if not self.is_suppressed():
            found = "the end of the text" if self.token.kind is END else self.describe_token()
            if help is None and self.token.kind is NAME:
                meant = find_nearest(self.token.text, tuple(word.upper() for word in expected if word.isalpha()))
                help = f"did you mean `{self.spell(meant)}`?" if meant else None
            what = f"`{what}`" if what in expected and " " not in what else what
            self.report("SN105", f"expected {what}, found {found}", self.token.span, expected, help)

    def suppress_errors(self) -> None:
        """Report no further error at this token."""
        self._skipped_to = self.position

    def fail(self, what: str, expected: Collection[str], *, help: str | None = None) -> NoReturn:
        """`report_unexpected`, then raise ParseError."""
        self.report_unexpected(what, expected, help)
        raise ParseError

    def reject(
        self, code: str, message: str, span: Span, help: str | None = None, expected: Collection[str] = ()
    ) -> NoReturn:
        """Report an error other than a missing word, then raise ParseError."""
        if not self.is_suppressed():
            self.report(code, message, span, expected, help)
        raise ParseError

    def describe_token(self) -> str:
        """The token as a message names it."""
        text = self.token.text
        if len(text) > 30:
            text = text[:27] + "…"
        kind = {NUMBER: "the number ", STRING: "the string "}.get(self.token.kind, "")
        return f"{kind}`{text}`" if self.token.kind is not STRING else f"{kind}{text}"

    # --- nesting ---

    def enter_level(self, token: Token) -> None:
        """Count one more level of nesting, which begins at this token."""
        self.depth += 1
        if self.depth > MAX_NESTING:
            self.report("SN109", f"nesting is deeper than {MAX_NESTING} levels", token.span,
                        help="split it into subqueries, or write it with fewer levels")  # fmt: skip
            raise NestingError

    def levels(self) -> Levels:
        """The nesting at this position, for `recover`."""
        return self.depth, self.operator_depth

    # --- going on after an error ---

    def recover(self, levels: Levels, stops: Collection[str]) -> None:
        """After a ParseError: restore the nesting and skip to the next of `stops`."""
        self.depth, self.operator_depth = levels
        self.skip_to(stops)

    def skip_to(self, stops: Collection[str]) -> None:
        """Skip to the next token in `stops` outside of brackets, or to the end of the statement."""
        while self.token.kind is not END and self.token.word not in stops and not self.starts_declaration():
            partner = self._partner_of(self.position)
            self.steps += 1
            if partner is not None:
                self.position = partner
                self.token = self.tokens[partner]
            self.take()
        self._skipped_to = self.position

    def skip_statement(self) -> None:
        """Skip to the `;` that ends the statement, past those inside loops."""
        self._partner_of(self.position)
        while self.token.kind is not END and (self.token.word != ";" or self.position in self._in_loops):
            self.take()
        self.suppress_errors()

    def starts_declaration(self) -> bool:
        """Whether a new declaration begins at this token; skipping stops there."""
        return False

    def _partner_of(self, position: int) -> int | None:
        """The position of the bracket that closes the one at `position`; None if there is none.

        Computed for the whole text at the first error. A `;` ends all open brackets, except those of a loop.
        """
        if self._partners is None:
            self._partners = {}
            opened: list[tuple[int, str, bool]] = []
            for i, token in enumerate(self.tokens):
                self.steps += 1
                word = token.word
                if word in _CLOSING:
                    in_loop = word == "{" or (i > 0 and self.tokens[i - 1].word == "FOR")
                    opened.append((i, _CLOSING[word], in_loop))
                elif opened and word == opened[-1][1]:
                    self._partners[opened.pop()[0]] = i
                elif opened and word == ";":
                    if opened[-1][2]:
                        self._in_loops.add(i)
                    else:
                        opened.clear()
        return self._partners.get(position)


_AFTER_NAME = frozenset((",", ":", ")", "(", "[", "]", "=", ";", "FROM", "WHERE", "SET", END))
_AFTER_GROUP = frozenset((")", "]", "}", ";", "FROM", "WHERE", "GROUP", "HAVING", "SELECT"))
