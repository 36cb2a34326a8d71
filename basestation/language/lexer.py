"""Lexer: a text cut into names, numbers, strings and signs.

It skips only white space and comments. Text that is no token is reported here and becomes a token of kind BAD, so that
the parser knows of it and reports no further error there.
"""

import re
import unicodedata
from dataclasses import dataclass

from acquisition.units import unit_of
from gateway.diagnostics import Diagnostic
from gateway.source import Source, Span

NAME, NUMBER, STRING, SIGN, BAD, END = "name", "number", "string", "sign", "bad", "end"

MAX_INTEGER_LITERAL = 2**63
"""The largest integer literal: 2^63, which is in range only after a minus."""

# The first groups are the language; those from `open_string` on are common mistakes. A name, a number or a string that
# fails its look-ahead falls through to them. `4..9` is 4, .. and 9 (semantics 13).
_TOKEN = re.compile(
    r"""
      (?P<space>    \s+ )
    | (?P<comment>  --[^\n]* | /\*.*?\*/ )
    | (?P<name>     [A-Za-z_][A-Za-z0-9_]*(?!\w) )
    | (?P<number>   [0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?!\w|\.(?!\.)) )
    | (?P<string>   '(?:[^']++|'')*+' )
    | (?P<sign>     <> | != | <= | >= | == | \+\+ | \+= | -= | \.\. | \.(?![0-9]) | /(?!\*) | [-+*%=<>(),;:\[\]{}−] )
    | (?P<open_string>  '[^\n]* )
    | (?P<open_comment> /\*.* )
    | (?P<quoted>       "[^"\n]*" | `[^`\n]*` )
    | (?P<curly>        [‘’‛][^‘’‛\n]*[‘’‛] | [“”„][^“”„\n]*[“”„] )
    | (?P<digits>       \.?[0-9][\w.]* )
    | (?P<word>         [^\W\d]\w* )
    | (?P<other>        (?P<one>.)(?P=one)* )
    """,
    re.VERBOSE | re.DOTALL,
)

_INSTEAD = {
    "#": "a comment begins with --",
    "&": "the conjunction is AND",
    "|": "the disjunction is OR; SNEEql does not concatenate strings",
    "!": "the negation is NOT, unequal is <>",
    "^": "powers are POWER(x, y)",
    "≤": "write <=",
    "≥": "write >=",
    "≠": "write <>",
    "×": "write *",
    "·": "write *",
    "÷": "write /",
    "–": "write -",
    "—": "write -",
    "‐": "write -",
    "…": "write ..",
    "?": "there are no parameters; write the value",
    "$": "there are no parameters; write the value",
    "@": "there are no variables; write the value",
    '"': "write names without quotes, strings in single quotes: 'text'",
    "`": "write names without quotes",
    "‘": "write strings in plain quotes: 'text'",
    "’": "write strings in plain quotes: 'text'",
    "“": "write strings in plain quotes: 'text'",
    "”": "write strings in plain quotes: 'text'",
}


@dataclass(slots=True)
class Token:
    """One token. The parser compares `word`: a name in capitals, a sign as it is, else the kind."""

    kind: str
    text: str
    value: int | float | str | None
    span: Span
    word: str

    @property
    def number(self) -> int | float:
        """The value of a token of kind NUMBER."""
        assert isinstance(self.value, int | float)
        return self.value

    @property
    def string(self) -> str:
        """The value of a token of kind STRING."""
        assert isinstance(self.value, str)
        return self.value


def tokenize(source: Source) -> tuple[list[Token], list[Diagnostic]]:
    """The tokens of a source, the last one of kind END, and the diagnostics of text that is no token."""
    text = source.text
    tokens: list[Token] = []
    diagnostics = []
    position, length, last_end = 0, len(text), 0
    match_at = _TOKEN.match
    while position < length:
        match = match_at(text, position)
        assert match is not None and match.lastgroup is not None  # the last group matches any character
        kind, end = match.lastgroup, match.end()
        if kind == "space" or (kind == "comment" and not _is_decrement(text, position, tokens)):
            position = end
            continue
        if kind == "comment":
            end = position + 2
        span, piece = Span(position, end), text[position:end]
        if kind == "name":
            tokens.append(Token(NAME, piece, piece, span, piece.upper()))
        elif kind == "sign" or kind == "comment":
            tokens.append(Token(SIGN, piece, None, span, "-" if piece == "−" else piece))
        elif kind == "string":
            tokens.append(Token(STRING, piece, piece[1:-1].replace("''", "'"), span, STRING))
        else:
            value = _number(piece) if kind == "number" else None
            if value is None:
                diagnostics.append(_complaint(source, kind, piece, span))
                tokens.append(Token(BAD, piece, None, span, BAD))
            else:
                tokens.append(Token(NUMBER, piece, value, span, NUMBER))
        position = last_end = end
    tokens.append(Token(END, "", None, Span(last_end, last_end), END))
    return tokens, diagnostics


def _is_decrement(text: str, position: int, tokens: list[Token]) -> bool:
    """Whether `--` is the decrement of a loop and not a comment: only there `;` and `t` precede it."""
    return text.startswith("--", position) and len(tokens) > 1 and tokens[-1].word == "T" and tokens[-2].word == ";"


def _number(text: str) -> int | float | None:
    """The value of a number; None if it does not fit into 64 bits."""
    if text.isdigit():
        # Python refuses to convert very long texts; those are too large anyway.
        value = int(text) if len(text.lstrip("0")) < 20 else MAX_INTEGER_LITERAL + 1
        return value if value <= MAX_INTEGER_LITERAL else None
    number = float(text)
    return number if number != float("inf") else None


def _complaint(source: Source, kind: str, text: str, span: Span) -> Diagnostic:
    """The diagnostic of text that is no token; `kind` is the group of the pattern that matched it."""
    if kind == "number":
        return Diagnostic(
            "SN104", "the number is too large", source, span,
            help="integers have 64 bits, floats go up to 1.797e308",
        )  # fmt: skip
    if kind == "digits":
        return Diagnostic("SN104", f"`{text}` is not a number", source, span, help=_number_help(text))
    if kind == "open_string":
        return Diagnostic(
            "SN102", "the string does not end", source, Span(span.start, span.start + 1),
            help="close it with ' (a quote inside a string is doubled: 'it''s')",
        )  # fmt: skip
    if kind == "open_comment":
        return Diagnostic(
            "SN103", "the comment does not end", source, Span(span.start, span.start + 2), help="close it with */"
        )
    if kind == "quoted":
        inside = text[1:-1]
        help = f"write a string as '{inside}'" if text[0] == '"' else f"write {inside}"
        if text[0] == '"' and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", inside):
            help = f"write a name as {inside}, a string as '{inside}'"
        return Diagnostic("SN112", f"names are not quoted: {text}", source, span, help=help)
    if kind == "curly":
        return Diagnostic(
            "SN101", f"`{text[0]}` is a typographic quote", source, span, help=f"use plain quotes: '{text[1:-1]}'"
        )
    if kind == "word":
        return _foreign_letter(source, text, span)
    shown = text if len(text) < 8 else text[0]
    name = "" if text[0].isprintable() and text[0].isascii() else f" (U+{ord(text[0]):04X} {_unicode_name(text[0])})"
    shown = f"`{shown}`{name}" if text[0].isprintable() else name.strip(" ()")
    return Diagnostic("SN101", f"unknown character {shown}", source, span, help=_INSTEAD.get(text[0]))


def _foreign_letter(source: Source, text: str, span: Span) -> Diagnostic:
    index = next(i for i, letter in enumerate(text) if not letter.isascii())
    place = Span(span.start + index, span.start + index + 1)
    return Diagnostic(
        "SN101", f"`{text[index]}` cannot stand in a name: `{text}`", source, place,
        help="names consist of A to Z, a to z, 0 to 9 and _",
    )  # fmt: skip


def _number_help(text: str) -> str | None:
    if text.startswith("."):
        return f"write 0{text}" if text[1:].isdigit() else None
    if text.endswith(".") and text[:-1].isdigit():
        return f"write {text[:-1]} or {text}0"
    if "_" in text and text.replace("_", "").isdigit():
        return f"write {text.replace('_', '')}"
    parts = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([A-Za-z_]\w*)", text)
    if parts and unit_of(parts[2]):
        return f"put a space before the unit: {parts[1]} {parts[2]}"
    if parts:
        return "a name does not begin with a digit"
    return None


def _unicode_name(character: str) -> str:
    return unicodedata.name(character, "a control character")
