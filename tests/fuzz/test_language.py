"""Random and broken texts: the parsers return a tree or diagnostics, in time linear in the length of the text.

The invariant: for every text, `parse` and `parse_schema` return; there is a statement or a diagnostic; every diagnostic
lies inside of its text and can be shown; fewer than 200 steps are made for each token; what has no diagnostics prints
and reads back as the same.
"""

import re

import pytest

from basestation.language.lexer import tokenize
from basestation.language.parser import parse
from basestation.language.printer import print_statement
from basestation.language.schema_parser import parse_schema
from gateway.source import Source
from tests.language.schema_printer import print_schema
from tests.language.texts import QUERIES, SCHEMAS

SHARDS = 16
STEPS = 200
LETTERS = "aZ_09.'\"-+/*<>=!;:()[]{},%?#é−‘’ \n\t\x00\ud800"

_PIECES = re.compile(r"\s+|\w+|'[^']*'|.", re.DOTALL)
_CORPUS = [_PIECES.findall(text) for text in QUERIES if len(text) < 400]
_WORDS = sorted({piece for pieces in _CORPUS for piece in pieces if not piece.isspace()})
_SCHEMA_CORPUS = [_PIECES.findall(text) for text in SCHEMAS]


def noise(rng):
    """A few random characters or words."""
    if rng.random() < 0.5:
        return "".join(rng.choices(LETTERS, k=rng.randint(0, 25)))
    return " ".join(rng.choices(_WORDS, k=rng.randint(0, 15)))


def mutated(rng, corpus):
    """A text of the corpus with one to four pieces deleted, doubled, swapped, replaced, inserted or cut through."""
    pieces = list(rng.choice(corpus))
    for _ in range(rng.randint(1, 4)):
        at = int(rng.random() * len(pieces))
        how = rng.random()
        if how < 0.25:
            del pieces[at]
        elif how < 0.4:
            pieces.insert(at, pieces[at] + " ")
        elif how < 0.55:
            other = int(rng.random() * len(pieces))
            pieces[at], pieces[other] = pieces[other], pieces[at]
        elif how < 0.7:
            pieces[at] = rng.choice(_WORDS)
        elif how < 0.85:
            pieces.insert(at, f" {rng.choice(_WORDS)} ")
        elif how < 0.95:
            word = pieces[at]
            cut = int(rng.random() * len(word))
            pieces[at] = word[:cut] + rng.choice(LETTERS) + word[cut + rng.randint(0, 1) :]
        else:
            del pieces[at:]
        if not pieces:
            break
    return "".join(pieces)


def hold(text):
    """The invariant, for queries."""
    parsed = parse(Source(text))
    assert parsed.statements or parsed.diagnostics
    assert parsed.steps < STEPS * parsed.tokens
    for diagnostic in parsed.diagnostics:
        assert 0 <= diagnostic.span.start <= diagnostic.span.end <= len(text)
    return parsed


def hold_schema(text):
    """The invariant, for schemas."""
    parsed = parse_schema(Source(text))
    assert parsed.extents or parsed.diagnostics
    for diagnostic in parsed.diagnostics:
        assert 0 <= diagnostic.span.start <= diagnostic.span.end <= len(text)
    return parsed


@pytest.mark.promise("errors-point")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("shard", range(SHARDS))
def test_random_text_gives_a_tree_or_diagnostics(shard, rng, counts):
    text = ""
    try:
        for _ in range(counts(2_500, 50_000) // SHARDS):
            text = noise(rng) if rng.random() < 0.3 else mutated(rng, _CORPUS)
            parsed = hold(text)
            if parsed.diagnostics:
                if rng.random() < 0.05:
                    assert all(d.render() for d in parsed.diagnostics)
            elif rng.random() < 0.2:
                printed = "; ".join(map(print_statement, parsed.statements))
                assert parse(Source(printed)).statements == parsed.statements, printed
    except BaseException as error:
        error.add_note(f"the text was {text!r}")
        raise


@pytest.mark.promise("errors-point")
def test_random_schema_gives_a_tree_or_diagnostics(rng, counts):
    text = ""
    try:
        for _ in range(counts(500, 5_000)):
            text = noise(rng) if rng.random() < 0.2 else mutated(rng, _SCHEMA_CORPUS)
            parsed = hold_schema(text)
            if not parsed.diagnostics:
                assert parse_schema(Source(print_schema(parsed.extents))).extents == parsed.extents
    except BaseException as error:
        error.add_note(f"the text was {text!r}")
        raise


@pytest.mark.promise("errors-point")
@pytest.mark.parametrize(
    "piece", [*"()[]{},;.-'", "SELECT ", "FROM ", "a ", "NOT ", "CASE WHEN ", "UNION ", "FOR (", "x y ", "{;"]
)
def test_steps_per_token_are_bounded_on_nonsense(piece):
    hold(piece * 3_000)
    hold("SELECT a FROM r " + piece * 3_000)
    hold("SELECT " + piece * 3_000 + " FROM r WHERE b")
    hold("SELECT a FROM r FOR (t = 0; t < 5; t++) { " + piece * 3_000)
    hold_schema(piece * 3_000)
    hold_schema("road: sensed (" + piece * 3_000)
    tokenize(Source(piece * 30_000))
