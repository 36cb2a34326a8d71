"""Helpers that bind and rewrite texts, for the tests in this folder."""

from basestation.algebra.node import walk
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.planner.rewriter import rewrite
from gateway.diagnostics import DiagnosticError

CATALOG = read_schema("""
r: sensed (site:integer, time:integer, v:integer, w:float) every 10 sec at sites 1, 2
q: sensed (site:integer, time:integer, v:integer) every 10 sec at sites 1, 2, 3
scaled: sensed (site:integer, x:float {unit 'Cel', scale 2}) every 10 sec at sites 1
p: pushed (a:integer, s:string, x:float)
log: pushed (a:integer, s:string) late append
t: stored (a:integer, s:string)
u: stored (a:integer, b:integer)
""")


def bound(text, catalog=CATALOG):
    """The one plan or correction of a text."""
    (found,) = bind_text(text, catalog)
    return found


def codes(text, catalog=CATALOG):
    """The error codes of a text, in text order."""
    try:
        bind_text(text, catalog)
    except DiagnosticError as refused:
        return [d.code for d in refused.diagnostics]
    return []


def columns(text):
    """(label, type) of each column of the result."""
    return [(c.label, str(c.type)) for c in bound(text).root.columns]


def rewritten(text):
    """The names of the rules that changed a plan, each once and in order, and the resulting tree."""
    better, steps = rewrite(bound(text))
    return list(dict.fromkeys(step.rule for step in steps)), better.root


def only(root, kind):
    """The only operator of a kind."""
    (found,) = [node for node in walk(root) if isinstance(node, kind)]
    return found
