"""The three output formats, on handmade updates."""

import csv
import io
import json
import time

import numpy as np

from acquisition.schema import Type
from acquisition.sources.csv import read_csv
from basestation.algebra.expression import Column
from basestation.algebra.vector import Vector
from basestation.replay.csv_output import CsvOutput
from basestation.replay.json_output import JsonOutput
from basestation.replay.result import Result
from basestation.replay.table_output import TableOutput
from basestation.replay.tick_times import TickTimes
from basestation.results.schema import ResultSchema
from basestation.updates.update import EpochMark, Rows, TupleUpdates, WindowUpdate
from tests.algebra.vectors import vector_of
from tests.results.single_update import as_columns

WINDOWS = ResultSchema(
    1,
    "window",
    (
        Column(1, Type.INTEGER, "site"),
        Column(2, Type.STRING, "category"),
        Column(3, Type.FLOAT, "c", scale=2, unit="Cel"),
    ),
    False,
)
STREAM = ResultSchema(2, "stream", (Column(4, Type.FLOAT, "x"), Column(5, Type.FLOAT, "x")), False)


def rows(query, *items):
    types = [Type.INTEGER if c.scale is not None else c.type for c in query.columns]
    columns = list(zip(*items, strict=True)) if items else [()] * len(types)
    return Rows(tuple(vector_of(list(c), t) for c, t in zip(columns, types, strict=True)), len(items))


def window(revision, added=(), removed=(), tick=600, coverage=None, t=None):
    coverage = {"road": (np.int64(43), 44), "hits": None} if coverage is None else coverage
    return as_columns(WindowUpdate(1, tick, 1, t, revision, coverage, rows(WINDOWS, *added), rows(WINDOWS, *removed)))


def tuples(*items):
    tick, index, weight, *_ = (np.array(c) for c in zip(*[i[:3] for i in items], strict=True))
    return TupleUpdates(2, tick, index, weight, rows(STREAM, *[i[3:] for i in items]))


UPDATES = [
    window(0, [(3, "hot", 125), (12, None, None)]),
    tuples((600, 1, 1, 0.5, 1e22), (600, 2, 1, None, -0.0)),
    window(1, [(3, "", -5)], [(3, "hot", 125)], coverage={"road": (44, 44), "hits": None}),
    tuples((600, 1, -1, 0.5, 1e22)),
    window(0, tick=660),
    as_columns(EpochMark(2, 660, {"road": (3, 4)})),
    as_columns(EpochMark(2, 660, {"road": (4, 4)})),
    as_columns(EpochMark(2, 720, {"road": (4, 4)})),
]


def printed(kind, emitted=UPDATES, queries=(WINDOWS, STREAM)):
    output = kind(list(queries))
    text = output.begin() + "".join(output.updates([update]) for update in emitted)
    return (text + output.end(720, {"road": {"received": np.int64(44).item()}})).split("\n")[:-1]


def test_json():
    assert printed(JsonOutput) == [
        '{"type":"schema","query":1,"kind":"window","columns":[{"name":"site","type":"integer"},'
        '{"name":"category","type":"string"},{"name":"c","type":"float","scale":2,"unit":"Cel"}]}',
        '{"type":"schema","query":2,"kind":"stream","columns":[{"name":"x","type":"float"},{"name":"x","type":"float"}]}',
        '{"type":"window","query":1,"tick":600,"n":1,"revision":0,"coverage":{"road":[43,44],"hits":null},'
        '"rows":[[3,"hot",1.25],[12,null,null]]}',
        '{"type":"tuple","query":2,"tick":600,"index":1,"weight":1,"row":[0.5,1e+22]}',
        '{"type":"tuple","query":2,"tick":600,"index":2,"weight":1,"row":[null,-0.0]}',
        '{"type":"window","query":1,"tick":600,"n":1,"revision":1,"coverage":{"road":[44,44],"hits":null},'
        '"removed":[[3,"hot",1.25]],"added":[[3,"",-0.05]]}',
        '{"type":"tuple","query":2,"tick":600,"index":1,"weight":-1,"row":[0.5,1e+22]}',
        '{"type":"window","query":1,"tick":660,"n":1,"revision":0,"coverage":{"road":[43,44],"hits":null},"rows":[]}',
        '{"type":"epoch","query":2,"tick":660,"coverage":{"road":[3,4]}}',
        '{"type":"epoch","query":2,"tick":660,"coverage":{"road":[4,4]}}',
        '{"type":"epoch","query":2,"tick":720,"coverage":{"road":[4,4]}}',
        '{"type":"end","until":720,"ledger":{"road":{"received":44}}}',
    ]
    for line in printed(JsonOutput, [window(0, t=3), window(0, t=(3, 5))]):
        json.loads(line)


def test_json_windows_of_loops_have_t():
    lines = printed(JsonOutput, [window(0, t=-3), window(0, t=(3, 5))])
    assert [json.loads(line).get("t") for line in lines[2:4]] == [-3, [3, 5]]


def test_csv():
    assert printed(CsvOutput) == [
        "_query,_tick,_n,_index,_revision,_weight,_used,_due,site,category,c,x,x_2",
        "1,600,1,,0,1,43,44,3,hot,1.25,,",
        "1,600,1,,0,1,43,44,12,,,,",
        "2,600,,1,,1,,,,,,0.5,1e+22",
        "2,600,,2,,1,,,,,,,-0.0",
        "1,600,1,,1,-1,44,44,3,hot,1.25,,",
        '1,600,1,,1,1,44,44,3,"",-0.05,,',
        "2,600,,1,,-1,,,,,,0.5,1e+22",
    ]


def test_csv_output_reads_back():
    words = ["", None, 'a "b", c', "d\ne", "木", " f "]
    emitted = [window(0, [(1, word, 0) for word in words])]
    text = "\n".join([*printed(CsvOutput, emitted), ""])
    assert read_csv(text.encode()).columns["category"].to_pylist() == words


def test_csv_of_loops_has_t():
    loop = ResultSchema(1, "window", WINDOWS.columns, True)
    assert printed(CsvOutput, [window(0, [(1, "a", 0)], t=(3, 5))], [loop])[1] == "1,600,1,3 5,,0,1,43,44,1,a,0.0"


def test_table():
    assert (
        "\n".join(printed(TableOutput))
        == """\
query 1: window at 600, coverage road 43 of 44
  site  category     c
     3  hot       1.25
    12  null      null

query 2: stream
  _tick  _index     x      x
    600       1   0.5  1e+22
    600       2  null   -0.0

query 1: window at 600, revision 1, coverage road 44 of 44
  site  category      c
-    3  hot        1.25
+    3            -0.05

query 2: stream
  _tick  _index     x      x
-   600       1   0.5  1e+22

query 1: window at 660, coverage road 43 of 44
  no rows
  query 2: epoch 660, coverage road 3 of 4
  query 2: epoch 660, coverage road 4 of 4"""
    )


DATED = 1_795_075_200
"""The second 2026-11-19T08:00:00Z."""


def dated(kind, emitted, *options):
    output = kind([WINDOWS, STREAM], *options)
    return output.begin() + "".join(output.updates([update]) for update in emitted) + output.end(0, {})


def test_times_stand_for_ticks():
    emitted = [
        window(0, [(3, "hot", 125)], tick=DATED - 1),
        tuples((DATED, 1, 1, 0.5, 1.0), (DATED + 60, 2, 1, 2.5, 1.0)),
    ]
    times = TickTimes(1_000)
    table = dated(TableOutput, emitted, times)
    assert "window at 2026-11-19T07:59:59Z" in table and "2026-11-19T08:01:00Z       2  2.5" in table
    rows = list(csv.DictReader(io.StringIO(dated(CsvOutput, emitted, times))))
    assert [(row["_tick"], row["_time"]) for row in rows][1:] == [
        (str(DATED), "2026-11-19T08:00:00Z"), (str(DATED + 60), "2026-11-19T08:01:00Z"),
    ]  # fmt: skip
    lines = [json.loads(line) for line in dated(JsonOutput, emitted, times).splitlines()]
    assert [line["time"][-6:] for line in lines if "tick" in line] == ["59:59Z", "00:00Z", "01:00Z"]


def test_local_times_have_their_offset(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    time.tzset()
    try:
        assert TickTimes(1_000, is_local=True).text(DATED) == "2026-11-19T13:45:00+05:45"
        assert TickTimes(1_000).text(10**18) == str(10**18)
    finally:
        monkeypatch.undo()
        time.tzset()


def test_windows_without_rows_are_summed_up():
    emitted = [window(0, tick=60 * at) for at in range(5)] + [window(0, [(3, "hot", 125)], tick=300)]
    emitted += [
        window(1, removed=[(3, "hot", 125)], tick=0),
        window(0, tick=360),
        window(0, [(3, "hot", 125)], tick=420),
        window(0, tick=480),
        window(0, tick=540),
    ]
    text = dated(TableOutput, emitted, None, False)
    assert [line for line in text.splitlines() if "window" in line] == [
        "query 1: 5 windows without rows, from 0 to 240",
        "query 1: window at 300, coverage road 43 of 44",
        "query 1: window at 0, revision 1, coverage road 43 of 44",
        "query 1: window at 360, coverage road 43 of 44",
        "query 1: window at 420, coverage road 43 of 44",
        "query 1: 2 windows without rows, from 480 to 540",
    ]
    assert dated(TableOutput, emitted, None, True).count("window at") == 11


def test_revisions_of_coverage_only_are_counted():
    emitted = [
        window(0, [(3, "hot", 125)]),
        window(1, coverage={"road": (44, 44)}),
        window(2, coverage={"road": (43, 44)}),
    ]
    assert dated(TableOutput, emitted, None, False).splitlines()[-2:] == [
        "", "query 1: 2 revisions changed the coverage and no row; --all shows them",
    ]  # fmt: skip
    assert dated(TableOutput, emitted, None, True).count("the same rows") == 2


def test_coverage_of_epochs_is_printed_where_it_changes():
    emitted = [as_columns(EpochMark(2, 60 * at, {"road": (used, 4)})) for at, used in enumerate((3, 3, 3, 2, 2, 4, 3))]
    emitted += [as_columns(EpochMark(2, 60, {"road": (4, 4)}))]
    lines = dated(TableOutput, emitted, None, False).splitlines()
    assert [line.split(": ")[1] for line in lines] == [
        "epoch 0, coverage road 3 of 4", "epoch 180, coverage road 2 of 4", "epoch 360, coverage road 3 of 4",
        "epoch 60, coverage road 4 of 4",
    ]  # fmt: skip


def test_control_characters_are_escaped():
    (line,) = [line for line in printed(TableOutput, [window(0, [(1, "\x1b[2Ja\n", 0)])], [WINDOWS]) if "2J" in line]
    assert "\\x1b[2Ja\\n" in line


def result(*emitted):
    found = Result([WINDOWS, STREAM])
    found.add(emitted)
    found.finish(720, {})
    return found


def test_current_answer_is_sum_of_updates():
    found = result(*UPDATES)
    assert found.current(1) == {(600, 1): [(12, None, None), (3, "", -0.05)], (660, 1): []}
    assert found.current(2) == [(600, 2, (None, -0.0))]
    assert [w.revision for w in found.windows(1)] == [0, 1, 0] and found.windows(1)[0].coverage == {
        "road": [43, 44],
        "hits": None,
    }
    assert [(t.index, t.weight) for t in found.tuples(2)] == [(1, 1), (2, 1), (1, -1)]
    assert [m.tick for m in found.epochs(2)] == [660, 660, 720]
    assert [c.name for c in found.columns[1]] == ["site", "category", "c"]


def test_only_removed_number_of_equal_rows_goes():
    one = (1, "a", 0)
    assert result(window(0, [one, one, one]), window(1, (), [one, one])).current(1) == {(600, 1): [(1, "a", 0.0)]}


def test_arrow_and_pandas():
    found = result(*UPDATES)
    assert found.to_arrow(1).to_pydict() == {
        "_tick": [600, 600], "_n": [1, 1], "site": [12, 3], "category": [None, ""], "c": [None, -0.05],
    }  # fmt: skip
    assert found.to_arrow(1, history=True)["_weight"].to_pylist() == [1, 1, -1, 1]
    assert found.to_arrow(2).column_names == ["_tick", "_index", "x", "x"]
    assert found.to_arrow(2, history=True)["_index"].to_pylist() == [1, 2, 1]
    assert result().to_arrow(1).num_rows == result().to_arrow(2).num_rows == 0
    assert found.to_pandas(1)["site"].tolist() == [12, 3]


def test_answer_without_columns():
    empty = ResultSchema(1, "window", (), False)
    emitted = [as_columns(WindowUpdate(1, 0, 1, None, 0, {}, Rows((), 2), Rows((), 0)))]
    assert Vector(np.zeros(0)).to_list() == [] and len(printed(JsonOutput, emitted, [empty])) == 3
