"""REVISE, DELETE and INSERT (12.2). They see the tuples as revised so far."""

from basestation.language import syntax
from tests.oracles.errors import RejectedError
from tests.oracles.expressions import Binder, Column, Env, Scope, unify
from tests.oracles.schema import Attribute, held


def carry_out(statement, extent):
    """A function of the extent's log and the clock tick."""
    name = extent.name
    columns = tuple(Column(name, a.name, a.type, a.scale) for a in extent.attributes)
    binder = Binder(Scope(columns, tags=True, names=(name,)))
    if isinstance(statement, syntax.Insert):
        return insert(statement, extent)
    where = binder.predicate(statement.where) if statement.where is not None else lambda env: True
    changes = {}
    if isinstance(statement, syntax.Revise):
        for attribute_name, expr in statement.changes:
            name = settable(extent, attribute_name.text)
            changes[name] = binder.value(expr)
            check_type(extent.attribute(name), changes[name][0])

    def act(log, clock):
        for reading in list(log.readings):
            values = reading.history(clock)
            if values is None:
                continue
            env = Env(values, reading.tick, reading.index_at(clock))
            if where(env) is not True:
                continue
            if isinstance(statement, syntax.Delete):
                log.change(reading, None, clock)
                continue
            after = tuple(
                held(a, changes[a.name][1](env)) if a.name in changes else v
                for a, v in zip(extent.attributes, values, strict=True)
            )
            log.change(reading, after, clock)

    return act


def settable(extent, name):
    """REVISE never sets tick, index, or the site of a sensed extent."""
    if name in ("tick", "index") or name == extent.site_attribute:
        raise RejectedError("static", f"REVISE never sets {name}")
    if extent.attribute(name) is None:
        raise RejectedError("name", f"{extent.name} has no attribute {name}")
    return name


def check_type(attribute, type_):
    """A value of another type goes into no attribute, but an integer is a float where one is declared (1.8)."""
    if attribute.type != "float" and type_ == "float":
        raise RejectedError("type", f"{attribute.name} is no float")
    unify([attribute.type, type_])


def insert(statement, extent):
    """INSERT gives `tick` (pushed: default now) and, for a sensed extent, tick and site."""
    names = [n.text for n in statement.columns]
    for name in names:
        if name not in ("tick", "_site") and extent.attribute(name) is None:
            raise RejectedError("name", f"{extent.name} has no attribute {name}")
    if extent.kind == "sensed" and ("tick" not in names or not {"_site", extent.site_attribute} & set(names)):
        raise RejectedError("static", "INSERT into a sensed extent gives tick and site")
    if len(set(names)) < len(names):
        raise RejectedError("syntax", "a column stands twice")
    rows = []
    for exprs in statement.rows:
        if len(exprs) != len(names):
            raise RejectedError("static", "as many values as columns")
        bound = {n: Binder(Scope(())).value(e) for n, e in zip(names, exprs, strict=True)}
        for n, (type_, _) in bound.items():
            check_type(extent.attribute(n) or Attribute(n, "integer"), type_)
        given = {n: function(Env()) for n, (_, function) in bound.items()}
        tick = given.pop("tick", None)
        rows.append(given if tick is None else {**given, "_tick": tick})

    def act(log, clock):
        for row in rows:
            log.take({**row, "_arrival": clock}, clock)

    return act
