"""State modules against a linear search."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acquisition.schema import Type
from basestation.algebra.expressions import Attr, Column
from basestation.execution.columns.tuples import Tuples
from basestation.execution.joins.probe_span import make_probe_span
from basestation.execution.joins.state_module import hash_keys
from basestation.execution.joins.tuple_store import TupleStore
from tests.algebra.vectors import vector_of

COLUMNS = (Column(1, Type.INTEGER), Column(2, Type.FLOAT), Column(3, Type.STRING))
WHOLE = st.none() | st.integers(-2, 2) | st.sampled_from([2**53, 2**53 + 1, -(2**63)])
FLOAT = st.none() | st.sampled_from([-0.0, 0.0, 0.5, 1.0, -2.0, 2.0**53, -(2.0**63), 4.9e-324])
STRING = st.none() | st.sampled_from(["", "a", "b", "\ud800"])
TICKS = st.integers(-3, 12)
VALUES = st.tuples(WHOLE, FLOAT, STRING)
KEYS = st.sampled_from([(), (0,), (1,), (2,), (0, 1), (2, 0), (1, 2, 0)])
DOINGS = st.lists(
    st.one_of(
        st.tuples(st.just("build"), st.lists(st.tuples(TICKS, VALUES), min_size=1, max_size=40)),
        st.tuples(st.just("remove"), st.lists(st.integers(0, 60), max_size=30)),
        st.tuples(st.just("correct"), st.tuples(st.integers(0, 60), VALUES)),
        st.tuples(st.just("evict"), TICKS),
        st.tuples(st.just("probe"), st.tuples(KEYS, st.lists(st.tuples(VALUES, TICKS, TICKS), max_size=20))),
    ),
    max_size=12,
)


def tuples(rows):
    """From (ident, tick, values)."""
    ident, tick = (np.array([row[i] for row in rows], np.int64) for i in (0, 1))
    none = np.zeros(len(rows), np.int64)
    columns = {c.id: vector_of([row[2][i] for row in rows], c.type) for i, c in enumerate(COLUMNS)}
    return Tuples(ident, tick, tick, none, none, ident, none, none.astype(bool), columns)


class Slow:
    """The reference: a dictionary of tuples that is searched from its beginning."""

    def __init__(self):
        self.rows = {}

    def probe(self, key, probes):
        for number, (values, left, right) in enumerate(probes):
            for ident, (tick, theirs) in self.rows.items():
                alike = all(values[i] is not None and values[i] == theirs[i] for i in key)
                if alike and left <= tick <= right:
                    yield number, ident


@pytest.mark.promise("joins")
@given(DOINGS)
def test_state_module_finds_what_a_linear_search_finds(doings):
    held, slow, count = TupleStore(tuples([])), Slow(), 0
    for what, how in doings:
        if what == "build":
            rows = [(count + i, *row) for i, row in enumerate(how)]
            count += len(rows)
            held.build(tuples(rows))
            slow.rows |= {ident: (tick, values) for ident, tick, values in rows}
        elif what == "remove":
            held.remove(np.array(how, np.int64))
            slow.rows = {ident: row for ident, row in slow.rows.items() if ident not in how}
        elif what == "correct" and how[0] in slow.rows:
            tick = slow.rows[how[0]][0]
            held.remove(np.array(how[:1]))
            held.build(tuples([(how[0], tick, how[1])]))
            slow.rows[how[0]] = tick, how[1]
        elif what == "evict":
            held.evict(how)
            slow.rows = {ident: row for ident, row in slow.rows.items() if row[0] >= how}
        elif what == "probe":
            key, probes = how
            keys = [vector_of([p[0][i] for p in probes], COLUMNS[i].type) for i in key]
            left, right = (np.array([p[i] for p in probes], np.int64) for i in (1, 2))
            which, at = held.module(tuple(Attr(COLUMNS[i]) for i in key)).probe(keys, make_probe_span(left, right))
            found = sorted(zip(which.tolist(), held.system_column("ident", at).tolist(), strict=True))
            assert found == sorted(slow.probe(key, probes))
        assert len(held) == len(slow.rows)


@given(st.lists(st.tuples(WHOLE, FLOAT), max_size=30))
def test_integer_key_finds_equal_float(rows):
    held = TupleStore(tuples([]))
    held.build(tuples([(i, 0, (whole, None, None)) for i, (whole, _) in enumerate(rows)]))
    keys = vector_of([float_ for _, float_ in rows], Type.FLOAT)
    none = np.zeros(len(rows), np.int64)
    which, at = held.module((Attr(COLUMNS[0]),)).probe([keys], make_probe_span(none, none))
    expected = [
        (i, j) for i, (_, f) in enumerate(rows) for j, (w, _) in enumerate(rows) if None not in (f, w) and f == w
    ]
    assert sorted(zip(which.tolist(), at.tolist(), strict=True)) == expected


def test_colliding_hashes_do_not_match():
    half = vector_of([0.5], Type.FLOAT)
    alike = int(hash_keys([half]).view(np.int64)[0])
    assert hash_keys([half]) == hash_keys([vector_of([alike], Type.INTEGER)])
    held = TupleStore(tuples([]))
    held.build(tuples([(0, 0, (alike, None, None))]))
    which, _ = held.module((Attr(COLUMNS[0]),)).probe(
        [half], make_probe_span(np.zeros(1, np.int64), np.zeros(1, np.int64))
    )
    assert not len(which)


def test_evicted_tuples_free_their_memory():
    held = TupleStore(tuples([]))
    for tick in range(2000):
        held.build(tuples([(tick, tick, (tick, None, "x"))]))
        held.module((Attr(COLUMNS[0]),)).probe(
            [vector_of([tick], Type.INTEGER)], make_probe_span(np.array([0]), np.array([tick]))
        )
        held.evict(tick - 50)
    assert len(held) == 51
    assert held.count < 200
