"""The number of a snapshot is raised when a class of the state changes its attributes or its module."""

import ast
import hashlib
import inspect
import io
import textwrap

import numpy as np
import pytest

from acquisition.batch import Batch
from basestation.execution.engine import Engine
from basestation.execution.snapshot import _HEAD, StateReader, save_engine
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema

CATALOG = read_schema(
    "hits: pushed (k:integer, v:integer, s:string) late revise by 10 sec\n"
    "road: sensed (site:integer, temp:integer) every 1 sec at sites 1, 2\n"
)
FAR, NEAR = "[FROM NOW-9 TO NOW SLIDE 2 SEC]", "[FROM NOW-3 TO NOW SLIDE 3 ROWS]"
QUERIES = [
    "SELECT k, v FROM hits WHERE v < 3",
    "SELECT k, v + 1 AS w FROM hits WHERE v < k",
    "SELECT site, temp FROM road",
    f"SELECT k, v FROM hits {FAR} WHERE v > 1",
    f"SELECT k, v FROM hits {NEAR}",
    f"SELECT k, COUNT(*) AS n, AVG(v) AS a, MAX(v) AS m FROM hits {FAR} GROUP BY k",
    "SELECT k, COUNT(*) AS n, AVG(v) AS a, MAX(v) AS m FROM hits [FROM NOW-4 TO NOW SLIDE 2 SEC] GROUP BY k",
    f"SELECT site, VARIANCE(temp) AS d, MEDIAN(temp) AS m FROM road {FAR} GROUP BY site",
    f"SELECT a.k, b.v FROM hits {FAR} AS a, hits {NEAR} AS b WHERE a.k = b.k",
    f"SELECT a.s, b.v FROM hits {FAR} AS a, hits {FAR} AS b WHERE a.k = b.k AND a.v < b.v",
    f"SELECT k, COUNT(*) AS n FROM hits {FAR} WHERE v > 1 GROUP BY k",
    f"ISTREAM(SELECT s, MIN(v) AS m FROM hits {FAR} GROUP BY s)",
    "SELECT k, SUM(v) AS a FROM hits [UNBOUNDED SLIDE 2 SEC] GROUP BY k",
]
NUMBER = b"moteloom engine 37\n"
DIGEST = "d9dc50e0e237fb79"


@pytest.mark.promise("snapshot")
def test_changed_state_classes_need_new_snapshot_number():
    """Where a class of such a state is another than it was, the number in `snapshot.py` is raised, and both are written here.

    That a class means something else by the same names is not seen.
    """
    assert (NUMBER, DIGEST) == (_HEAD, hashlib.sha256(repr(sorted(map(kept, classes()))).encode()).hexdigest()[:16])


def classes():
    """Our classes in the state of an engine with many kinds of queries."""
    engine, found = Engine(CATALOG), set()
    for number, text in enumerate(QUERIES):
        engine.add(number, bind_text(text, CATALOG)[0])
    for clock in range(20):
        one = np.full(1, clock)
        values = {"k": one % 3, "v": one % 5, "s": np.array(["a"], object)}
        engine.deliver("hits", Batch(one, 0 * one, one, 0 * one + 1, values))
        engine.deliver("road", Batch(one, 0 * one + 1, one, 0 * one + 1, {"site": 0 * one + 1, "temp": one}))
        engine.on_clock(clock)

    class Noting(StateReader):
        def find_class(self, module, name):
            named = super().find_class(module, name)
            if isinstance(named, type) and module.partition(".")[0] in ("acquisition", "basestation", "innet"):
                found.add(named)
            return named

    Noting(io.BytesIO(save_engine(engine)[len(_HEAD) + 32 :])).load()
    return found


def kept(of):
    """(module, class, what its methods and those of its bases set of it, its slots, and what is annotated; the slots in their order).

    Pickle writes the slots of a frozen class as a list.
    """
    names, slots = set(), []
    for each in of.__mro__:
        if each.__module__.partition(".")[0] not in ("acquisition", "basestation", "gateway", "innet"):
            continue
        slots += vars(each).get("__slots__", ())
        for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(each)))):
            match node:
                case ast.AnnAssign(target=ast.Name(id=name)):
                    names.add(name)
                case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                    names.add(name)
    return of.__module__, of.__qualname__, sorted(names | set(slots)), slots
