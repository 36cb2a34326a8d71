"""For any text the binder returns plans or raises DiagnosticError; every plan can be rewritten and explained.

The texts are random syntax trees over the names of a schema, generated valid queries, and mutated golden queries.
"""

import json
import re

import pytest

from basestation.explain import explain_statement, render_statement
from basestation.language import syntax
from basestation.language.printer import print_statement
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.planner.plan import Plan
from basestation.planner.rewriter import rewrite
from gateway.diagnostics import DiagnosticError
from tests.algebra.invariants import find_violations
from tests.golden.expectations import QUERIES
from tests.golden.golden_file import golden_files, read_golden
from tests.oracles.generate import case
from tests.properties.syntax_trees import Trees

SHARDS = 4
SCHEMA = """
road: sensed (site:integer, time:integer, temp:integer, r1:float {scale 1}) every 1 min at sites 1, 2, 3
traffic: pushed (site:integer, temp:integer, category:string, x:float) wait 5 sec late append
Temp: stored (temp:integer, category:string, y:float)
z: sensed (a:integer, b:string, site:string, time:float) every 90 sec at sites all late drop
"""
_EXTENTS = ("road", "traffic", "Temp", "z")
_COLUMNS = ("site", "time", "temp", "category", "x", "y", "a", "b", "r1", "tick", "index", "_site")
_CALLS = (
    *("ABS ROUND SQRT POWER COALESCE NULLIF LEAST GREATEST LOWER LENGTH DIST".split()),
    *("MIN MAX SUM AVG COUNT FIRST LAST MEDIAN QUANTILE STDEV".split()),
)
_PIECES = re.compile(r"\s+|\w+|'[^']*'|.", re.DOTALL)
_GOLDEN = [read_golden(path) for path in golden_files(QUERIES)]
_CASES = [(g.schema, _PIECES.findall(c.text)) for g in _GOLDEN for c in g.cases if c.text and not c.in_schema]
_WORDS = sorted({piece for _, pieces in _CASES for piece in pieces if not piece.isspace()})


class Likely(Trees):
    """Random trees with names of the schema, so that many of them bind."""

    def name(self):
        return syntax.Name(self.choice(_COLUMNS))

    def column(self):
        qualifier = self.maybe(lambda: syntax.Name(self.choice(_EXTENTS)), 0.2)
        return syntax.ColumnRef(qualifier, self.name())

    def call(self, room):
        if self.chance(0.2):
            return syntax.Call(syntax.Name("COUNT"), (), star=True)
        arguments = self.some(lambda: self.expression(room), 1, 2)
        return syntax.Call(syntax.Name(self.choice(_CALLS)), arguments, distinct=self.chance(0.1))

    def entry(self, room):
        made = super().entry(room)
        source = made.source
        if isinstance(source, syntax.ExtentSource):
            source = syntax.ExtentSource(syntax.Name(self.choice(_EXTENTS)), source.history)
        return syntax.FromEntry(source, self.maybe(lambda: syntax.Name(self.choice("uvw")), 0.3), made.window)

    def statement(self):
        made = super().statement()
        if isinstance(made, syntax.Revise):
            return syntax.Revise(syntax.Name(self.choice(_EXTENTS)), made.changes, made.where)
        return made


def mutated(rng):
    """A schema, and a golden text with one to three pieces deleted, swapped or replaced."""
    schema, pieces = rng.choice(_CASES)
    pieces = list(pieces)
    for _ in range(rng.randint(1, 3)):
        at = int(rng.random() * len(pieces))
        how = rng.random()
        if how < 0.3:
            del pieces[at]
        elif how < 0.5:
            other = int(rng.random() * len(pieces))
            pieces[at], pieces[other] = pieces[other], pieces[at]
        elif how < 0.8:
            pieces[at] = rng.choice(_WORDS)
        else:
            pieces.insert(at, f" {rng.choice(_WORDS)} ")
        if not pieces:
            break
    return schema, "".join(pieces)


def ask(text, catalog):
    """Bind a text and check the plans, or the errors. Whether it was accepted."""
    try:
        bound = bind_text(text, catalog)
    except DiagnosticError as refused:
        assert refused.diagnostics
        for diagnostic in refused.diagnostics:
            assert 0 <= diagnostic.span.start <= diagnostic.span.end <= len(text)
            assert diagnostic.render()
        return False
    for number, one in enumerate(bound, 1):
        explained = explain_statement(one, number)
        json.dumps(explained)
        assert render_statement(explained)
        if isinstance(one, Plan):
            better, steps = rewrite(one)
            assert [s for tree in (one.root, *(step.after for step in steps)) for s in find_violations(tree)] == []
            assert [(c.label, c.type, c.scale) for c in better.root.columns] == [
                (c.label, c.type, c.scale) for c in one.root.columns
            ]
    return True


@pytest.mark.timeout(900)
@pytest.mark.parametrize("shard", range(SHARDS))
def test_random_trees_bind_or_raise_diagnostics(shard, rng, counts):
    catalog, trees, text = read_schema(SCHEMA), Likely(rng), ""
    try:
        for _ in range(counts(600, 12_000) // SHARDS):
            text = print_statement(trees.statement())
            ask(text, catalog)
    except BaseException as error:
        error.add_note(f"the text was {text!r}")
        raise


@pytest.mark.timeout(900)
@pytest.mark.parametrize("shard", range(SHARDS))
def test_valid_generated_queries_bind(shard, rng, counts):
    text = ""
    try:
        for _ in range(counts(240, 4_000) // SHARDS):
            made = case(rng.randrange(2**32))
            for text in (made.query, *(statement for statement, _ in made.statements)):
                assert ask(text, read_schema(made.schema))
    except BaseException as error:
        error.add_note(f"the text was {text!r}")
        raise


@pytest.mark.timeout(900)
@pytest.mark.parametrize("shard", range(SHARDS))
def test_mutated_texts_bind_or_raise_diagnostics(shard, rng, counts):
    catalogs = {g.schema: read_schema(g.schema) for g in _GOLDEN}
    text, accepted = "", 0
    try:
        for _ in range(counts(600, 12_000) // SHARDS):
            schema, text = mutated(rng)
            accepted += ask(text, catalogs[schema])
    except BaseException as error:
        error.add_note(f"the text was {text!r}")
        raise
    assert accepted
