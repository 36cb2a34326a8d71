"""Cursor: a place in a list of tokens, how to go on from it, and how to report and survive what is wrong there.

Reading is done by methods that take tokens and return nodes. One that cannot go on reports why and raises Misread;
whoever reads a list or a clause catches it, moves to where the next entry or clause begins, and goes on. An error
that only follows from one already reported is never reported: nothing is said at a place that was reached by skipping,
nor about a token that the tokenizer has complained about.
"""

from basestation.language.diagnostics import Diagnostic
from basestation.language.keywords import RESERVED, find_nearest
from basestation.language.lexer import BAD, END, NAME, NUMBER, STRING, tokenize
from basestation.language.syntax import Name
from gateway.errors import MoteloomError
from gateway.source import Source, Span

MAX_NESTING = 100
"""How deep brackets, and what else opens a level, may nest (SEMANTICS 10.1)."""

MAX_OPERATOR_NESTING = 120
"""How deep operators may nest to the right: one for each bracket, and a full ladder of them in the innermost."""

_CLOSING = {"(": ")", "[": "]", "{": "}"}


class ParseError(MoteloomError):
    """What should stand here does not; it was reported."""


class NestingError(MoteloomError):
    """The text nests too deeply to go on with this statement; it was reported."""


class TokenCursor:
    """`token` is the one that is looked at; `end` is where the last one taken ends."""

    def __init__(self, source: Source):
        self.source = source
        self.tokens, self.diagnostics = tokenize(source)
        self.position = 0
        self.token = self.tokens[0]
        self.end = 0
        self.steps = 0
        self.depth = 0
        self.operator_depth = 0
        self._skipped_to = None
        self._partners = None
        self._in_loops = set()

    # --- looking and taking ---

    def at(self, word):
        self.steps += 1
        return self.token.word == word

    def at_any(self, words):
        self.steps += 1
        return self.token.word in words

    def peek(self, ahead=1):
        """A token further on; END at and behind the end."""
        self.steps += 1
        index = self.position + ahead
        return self.tokens[index] if index < len(self.tokens) else self.tokens[-1]

    def take(self):
        """The token looked at; the next one is looked at then. END stays."""
        self.steps += 1
        token = self.token
        if token.kind is not END:
            self.end = token.span.end
            self.position += 1
            self.token = self.tokens[self.position]
        return token

    def accept(self, word):
        """Take the token if it is this word or sign, else None."""
        self.steps += 1
        return self.take() if self.token.word == word else None

    def span_from(self, start):
        """The place from an offset to the last token taken."""
        return Span(start, self.end if self.end > start else start)

    # --- expecting ---

    def expect(self, word, what=None, *, help=None):
        """Take this word or sign. A slip of the pen (`SLDIE`) is reported and taken for the word it is near to."""
        token = self.accept(word)
        if token is None:
            if not self.correct_typo((word,)):
                shown = self.spell(word)
                self.fail(what or (shown if word.isalpha() else f"`{word}`"), (shown,), help=help)
            token = self.take()
        return token

    def correct_typo(self, words):
        """If the token is nearly one of `words`, report it and make it that word: whoever looks next finds it right."""
        token = self.token
        if token.kind is not NAME or token.word in RESERVED or self.is_suppressed():
            return False
        meant = find_nearest(token.text, words)
        if meant is None or meant == token.word:
            return False
        shown = self.spell(meant)
        self.report("SN105", f"{shown} should stand here, not `{token.text}`", token.span, (shown,),
                    f"did you mean `{shown}`?")  # fmt: skip
        token.word = meant
        return True

    def spell(self, word):
        """A keyword as messages show it."""
        return word

    def close(self, opening, expected=(), help=None):
        """Take the bracket that closes `opening`; what stands before it is reported once and skipped."""
        closing = _CLOSING[opening.word]
        if self.accept(closing):
            return
        line, column = self.source.line_column(opening.span.start)
        help = help or f"it closes the `{opening.word}` of line {line}, column {column}"
        self.report_unexpected(f"`{closing}`", (*expected, closing), help)
        self.skip_to(_AFTER_GROUP)
        self.accept(closing)

    def name(self, what, expected=()):
        """Take a name that is not reserved."""
        token = self.token
        if token.kind is NAME and token.word not in RESERVED:
            self.take()
            return Name(token.text, span=token.span)
        if token.kind is NAME and self.peek().word in _AFTER_NAME:
            # Where the text goes on as if this were the name, it was meant to be one.
            self.report("SN111", f"`{token.text}` is a reserved word and cannot be {what}", token.span)
            self.take()
            return Name(token.text, span=token.span)
        self.fail(what, expected or (what,))

    # --- reporting ---

    def report(self, code, message, span, expected=(), help=None):
        self.diagnostics.append(Diagnostic(code, message, self.source, span, tuple(expected), help))

    def is_suppressed(self):
        """Whether an error at this token would only follow from one that was reported."""
        return (
            self.position == self._skipped_to
            or self.token.kind is BAD
            or (self.position > 0 and self.tokens[self.position - 1].kind is BAD)
        )

    def report_unexpected(self, what, expected, help=None):
        """Report that the token is not `what` should stand here, unless that follows from another error."""
        if not self.is_suppressed():
            found = "but the text ends" if self.token.kind is END else f"not {self.found()}"
            if help is None and self.token.kind is NAME:
                meant = find_nearest(self.token.text, tuple(word.upper() for word in expected if word.isalpha()))
                help = meant and f"did you mean `{self.spell(meant)}`?"
            self.report("SN105", f"{what} should stand here, {found}", self.token.span, expected, help)

    def suppress_errors(self):
        """Say nothing more about this token."""
        self._skipped_to = self.position

    def fail(self, what, expected, *, help=None):
        """`complain`, and give up what is being read."""
        self.report_unexpected(what, expected, help)
        raise ParseError

    def reject(self, code, message, span, help=None, expected=()):
        """Report an error of another kind than a missing word, and give up what is being read."""
        if not self.is_suppressed():
            self.report(code, message, span, expected, help)
        raise ParseError

    def found(self):
        """The token as a message names it."""
        text = self.token.text
        if len(text) > 30:
            text = text[:27] + "…"
        kind = {NUMBER: "the number ", STRING: "the string "}.get(self.token.kind, "")
        return f"{kind}`{text}`" if self.token.kind is not STRING else f"{kind}{text}"

    # --- nesting ---

    def enter_level(self, token):
        """Open one more level at this token."""
        self.depth += 1
        if self.depth > MAX_NESTING:
            self.report("SN109", f"this is nested more than {MAX_NESTING} deep", token.span,
                        help="take it apart into subqueries, or say it flatter")  # fmt: skip
            raise NestingError

    def levels(self):
        """How deep this place is, for `recover`."""
        return self.depth, self.operator_depth

    # --- going on after an error ---

    def recover(self, levels, stops):
        """After a Misread: back to these levels, and on to the next of `stops`."""
        self.depth, self.operator_depth = levels
        self.skip_to(stops)

    def skip_to(self, stops):
        """Go to the next token that is one of `stops` outside of brackets, or to the end of the statement."""
        while self.token.kind is not END and self.token.word not in stops and not self.starts_declaration():
            partner = self._partner_of(self.position)
            self.steps += 1
            if partner is not None:
                self.position = partner
                self.token = self.tokens[partner]
            self.take()
        self._skipped_to = self.position

    def skip_statement(self):
        """Go to the `;` that ends the statement, past those inside of loops."""
        self._partner_of(self.position)
        while self.token.kind is not END and (self.token.word != ";" or self.position in self._in_loops):
            self.take()
        self.suppress_errors()

    def starts_declaration(self):
        """Whether something begins at this token that no error before it concerns."""
        return False

    def _partner_of(self, position):
        """Where the bracket opened at `position` is closed; None if it is none, or is never closed.

        Made for the whole text at the first error. A `;` ends all brackets, but for those of a loop.
        """
        if self._partners is None:
            self._partners, opened = {}, []
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
