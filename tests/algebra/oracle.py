"""Expressions evaluated twice: by the engine over columns, and by the scalar interpreter of the oracle row by row."""

from acquisition.schema import Type
from basestation.algebra.evaluation import Evaluation
from basestation.language.parser import parse
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from gateway.source import Source
from tests.algebra.vectors import vector_of
from tests.oracles.expressions import Binder, Column, Env, Scope, is_predicate

TYPES = {"a": "integer", "b": "integer", "at": "time", "x": "float", "y": "float", "s": "string", "u": "string"}
CATALOG = read_schema(f"t: stored ({', '.join(f'{name}:{type_}' for name, type_ in TYPES.items())})")
SCOPE = Scope(tuple(Column("t", name, type_) for name, type_ in TYPES.items()))


def value_of(text):
    """The bound expression of a value."""
    (plan,) = bind_text(f"SELECT {text} AS found FROM t", CATALOG)
    return plan.root.outputs[0][1], plan.root.child.columns


def predicate_of(text):
    """The bound expression of a predicate."""
    (plan,) = bind_text(f"SELECT a FROM t WHERE {text}", CATALOG)
    return plan.root.child.predicate, plan.root.child.child.columns


def evaluated(expression, columns, rows):
    """The results of the engine for some rows, each a tuple of values in the order of TYPES."""
    vectors = {
        column.id: vector_of([row[i] for row in rows], Type(type_))
        for i, (column, type_) in enumerate(zip(columns, TYPES.values(), strict=True))
    }
    evaluation = Evaluation(vectors, len(rows))
    if expression.is_predicate:
        return evaluation.of(expression).to_list()
    return evaluation.as_type(expression, expression.type or Type.INTEGER).to_list()


def interpreted(text, rows):
    """The results of the scalar interpreter, one for each row."""
    (statement,) = parse(Source(f"SELECT a FROM t WHERE {text}")).statements
    written = statement.query.where
    bind = Binder(SCOPE)
    found = bind.predicate(written) if is_predicate(written) else bind.value(written)[1]
    return [found(Env(row=row)) for row in rows]
