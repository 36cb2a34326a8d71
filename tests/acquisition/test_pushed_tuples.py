"""Tuples that clients push: every format gives the same tuples, and wrong rows are rejected one by one."""

import io
import json
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from acquisition.errors import InputError
from acquisition.sources import senml
from acquisition.sources.pushed_tuples import FORMATS, MOST_REJECTED, read_tuples
from basestation.planner.catalog import read_schema

CATALOG = read_schema(
    "traffic: pushed (lane:integer, weight:float {unit 'kg', scale 1}, seen:time, kind:string, device:string) wait 5 sec"
)
TRAFFIC = CATALOG.extents["traffic"]
ROWS = [
    {"_tick": 100, "lane": 1, "weight": 1200.5, "seen": 99, "kind": "car", "device": "strip"},
    {"_tick": 101, "lane": 2, "weight": 80.0, "seen": 100, "kind": "", "device": "strip"},
    {"_tick": 101, "lane": 2, "weight": None, "seen": None, "kind": None, "device": "strip"},
]


def encode(rows, form):
    """The rows as the bytes of a body."""
    names = ["_tick", *TRAFFIC.schema.names]
    if form == "jsonl":
        return b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    if form == "json":
        return json.dumps(rows).encode()
    if form == "csv":

        def cell(value):
            return "" if value is None else f'"{value}"' if isinstance(value, str) else str(value)

        return "\n".join([",".join(names), *(",".join(cell(row.get(name)) for name in names) for row in rows)]).encode()
    if form == "arrow":
        table = pa.Table.from_pylist(rows)
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table, max_chunksize=2)
        return sink.getvalue()
    raise AssertionError(form)


def decode(found):
    """The tuples as rows again."""

    def value(name, at):
        valid = found.valid.get(name)
        return None if valid is not None and not valid[at] else found.columns[name][at]

    rows = []
    for at in range(len(found)):
        row = {name: value(name, at) for name in found.columns}
        row["weight"] = None if row["weight"] is None else row["weight"] / 10
        rows.append({"_tick": int(found.tick[at]) if found.has_tick[at] else None, **row})
    return rows


@pytest.mark.parametrize("form", [form for form in FORMATS if form != "senml"])
def test_formats_give_the_same_tuples(form):
    found = read_tuples(encode(ROWS, form), form, TRAFFIC, 1_000)
    assert decode(found) == ROWS and found.rejected == ()


@given(st.lists(st.fixed_dictionaries({
    "_tick": st.none() | st.integers(0, 10**9), "lane": st.none() | st.integers(-(2**63), 2**63 - 1),
    "weight": st.none() | st.integers(-(10**9), 10**9).map(lambda n: n / 10), "seen": st.none() | st.integers(0, 10**9),
    "kind": st.none() | st.text(st.characters(codec="utf-8", exclude_characters='"\r\x00'), max_size=5), "device": st.just("d"),
}), min_size=1, max_size=30))  # fmt: skip
def test_lines_keep_every_value(rows):
    for form in "jsonl", "json":
        assert decode(read_tuples(encode(rows, form), form, TRAFFIC, 1_000)) == rows


@pytest.mark.parametrize(
    ("line", "column", "code"),
    [
        (b'{"lane": "1"}', "lane", "SN506"), (b'{"lane": 1.5}', "lane", "SN506"), (b'{"lan": 1}', "lan", "SN504"),
        (b'{"lane": 1', None, "SN502"), (b"[1]", None, "SN502"), (b'"lane"', None, "SN502"), (b"\xff", None, "SN502"),
        (b'{"weight": NaN}', "weight", "SN506"), (b'{"seen": "yesterday"}', "seen", "SN506"),
        (b'{"kind": "\\ud800"}', "kind", "SN506"), (b'{"lane": 99999999999999999999}', "lane", "SN507"),
        (b'{"_tick": -1}', "_tick", "SN506"), (b'{"_tick": 9999999999999}', "_tick", "SN506"),
        (b'{"lane": {"a": [1]}}', "lane", "SN506"), (b"[" * 50_000, None, "SN502"),
    ],
)  # fmt: skip
def test_wrong_line_is_rejected_and_the_others_are_taken(line, column, code):
    lines = [b'{"lane": 1, "kind": "car"}'] * 3_000
    lines[2_500] = line
    found = read_tuples(b"\n".join(lines), "jsonl", TRAFFIC, 1_000)
    [wrong] = found.rejected
    assert (wrong.row, wrong.column, wrong.code) == (2_501, column, code) and wrong.message
    assert len(found) == 2_999 and set(found.columns["kind"]) == {"car"}


@pytest.mark.parametrize("form", ["csv", "arrow"])
@pytest.mark.parametrize("at", [0, 1_023, 1_024, 2_000, 2_999])
def test_wrong_row_of_a_long_body_is_rejected(form, at):
    lanes = [n % 7 for n in range(3_000)]
    kinds = ["car" if n != at else None for n in range(3_000)]
    if form == "csv":
        rows = (f"{'x' if kind is None else lane},2.5,3,car,d" for lane, kind in zip(lanes, kinds, strict=True))
        body, column = "\n".join(["lane,weight,seen,kind,device", *rows]).encode(), "lane"
    else:
        seen = [3 if kind is not None else -(2**62) for kind in kinds]
        table = pa.table({"lane": lanes, "weight": [2.5 if each else 1e300 for each in kinds], "seen": seen, "kind": ["car"] * 3_000,
                          "device": ["d"] * 3_000})  # fmt: skip
        body, column = io.BytesIO(), "weight"
        with pa.ipc.new_stream(body, table.schema) as stream:
            stream.write_table(table)
        body = body.getvalue()
    found = read_tuples(body, form, TRAFFIC, 1_000)
    assert [(wrong.row, wrong.column) for wrong in found.rejected] == [(at + 1, column)]
    assert len(found) == len(found.has_tick) == 2_999 and not found.has_tick.any()
    assert found.columns["lane"].tolist() == lanes[:at] + lanes[at + 1 :]


def test_rows_of_csv_of_another_width_are_rejected():
    body = b"lane,weight,seen,kind,device\n1,2.5,3,car,d\n1,2\n2,2.5,3,van,d\n3,x,3,bus,d\n4,2.5,3,lorry,d\n"
    found = read_tuples(body, "csv", TRAFFIC, 1_000)
    assert [(wrong.row, wrong.column) for wrong in found.rejected] == [(2, None), (4, "weight")]
    assert found.columns["lane"].tolist() == [1, 2, 4] and not found.has_tick.any()


def test_rows_without_attributes_or_lines_are_none():
    assert len(read_tuples(b"", "jsonl", TRAFFIC, 1_000)) == 0
    assert len(read_tuples(b"\n\n", "jsonl", TRAFFIC, 1_000)) == 0
    blank = read_tuples(b'{"lane": 1}\n\n{"lane": "x"}\n', "jsonl", TRAFFIC, 1_000)
    assert (len(blank), blank.rejected[0].row) == (1, 3)


def test_times_are_ticks_or_texts():
    body = b'{"_time": "2026-11-19T00:00:00Z", "lane": 1}\n{"lane": 2}\n{"_time": 7, "lane": 3}\n'
    found = read_tuples(body, "jsonl", TRAFFIC, 1_000)
    assert found.tick.tolist() == [1_795_046_400, 0, 7] and found.has_tick.tolist() == [True, False, True]


def test_too_many_wrong_rows_refuse_the_whole_push():
    lines = [b'{"lane": "x"}'] * (MOST_REJECTED + 1)
    assert len(read_tuples(b"\n".join(lines[:-1]), "jsonl", TRAFFIC, 1_000).rejected) == MOST_REJECTED
    with pytest.raises(InputError) as refused:
        read_tuples(b"\n".join(lines), "jsonl", TRAFFIC, 1_000)
    assert refused.value.row == 1 and "none is taken" in refused.value.help


@pytest.mark.parametrize(
    ("form", "body", "words"),
    [
        ("csv", b"", "there is no header"), ("csv", b"lane,wait\n1,2\n", "unknown column `wait`"),
        ("csv", b"lane\n1\n", "the column `weight` is missing"), ("arrow", b"PAR1", "expected an Arrow stream"),
        ("json", b"[1, ", "is not JSON"), ("senml", b"{}", "expected an array"), ("senml", b"\xff", "is not a SenML pack"),
    ],
)  # fmt: skip
def test_unreadable_body_is_refused(form, body, words):
    with pytest.raises(InputError, match=words):
        read_tuples(body, form, TRAFFIC, 1_000)


def test_senml_records_of_one_device_and_time_are_one_tuple():
    pack = [
        {"bn": "urn:dev:mac:7/", "bt": 1_800_000_000, "bu": "kg", "n": "weight", "v": 1200.5},
        {"n": "lane", "u": "1", "v": 2}, {"n": "kind", "vs": "car", "u": "kg"}, {"n": "weight", "t": -10, "v": 80},
        {"n": "weight", "u": "g", "v": 1}, {"n": "height", "v": 1}, {"n": "lane"}, 7, {"n": "lane", "t": "now", "v": 1},
    ]  # fmt: skip
    found = read_tuples(json.dumps(pack).encode(), "senml", TRAFFIC, 1_000)
    assert [(row["_tick"], row["lane"], row["weight"], row["kind"], row["device"]) for row in decode(found)] == [
        (1_800_000_000, 2, 1200.5, "car", "urn:dev:mac:7"), (1_799_999_990, None, 80.0, None, "urn:dev:mac:7")]  # fmt: skip
    assert [(wrong.row, wrong.column) for wrong in found.rejected] == [
        (5, "weight"), (6, None), (7, "lane"), (8, None), (9, None)]  # fmt: skip


@pytest.mark.parametrize(
    "record",
    [
        {"bt": 10**400, "n": "lane", "v": 1}, {"bv": 10**400, "n": "lane", "v": 1}, {"n": "lane", "v": 1, "t": 1e308},
        {"bt": 1e308, "n": "lane", "v": 1, "t": 1e308}, {"n": "lane", "v": 1, "t": -1e300},
        {"bt": 1e308, "n": "lane", "v": 1, "t": float("-inf")},
    ],
)  # fmt: skip
def test_senml_number_beyond_every_range_is_rejected(record):
    found = read_tuples(json.dumps([record, {"bt": 0, "bv": 0, "n": "lane", "v": 2}]).encode(), "senml", TRAFFIC, 1_000)
    assert (len(found), [wrong.row for wrong in found.rejected]) == (1, [1])


@pytest.mark.parametrize("compression", [None, "zstd"])
def test_arrow_that_unpacks_to_too_much_is_refused(compression, monkeypatch):
    monkeypatch.setattr("acquisition.sources.pushed_tuples.MOST_ARROW_BYTES", 1_000_000)
    values = pa.nulls(2**31 - 1) if compression is None else pa.array(np.zeros(200_000, np.int64))
    batch = pa.record_batch([values], names=["lane"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as stream:
        stream.write_batch(batch)
    body = sink.getvalue().to_pybytes()
    assert len(body) < 2_000
    with pytest.raises(InputError, match="when unpacked"):
        read_tuples(body, "arrow", TRAFFIC, 1_000)


def test_senml_without_time_has_the_time_of_its_delivery():
    found = read_tuples(
        b'[{"n": "lane", "v": 1}, {"n": "kind", "vs": "car", "t": -5}]', "senml", TRAFFIC, 1_000, 60_000
    )
    assert found.has_tick.tolist() == [False, True] and found.tick[1] == 55


@given(st.binary(max_size=200) | st.lists(st.sampled_from([b'{"lane":1}', b"{}", b"\n", b"[", b",", b'"', b"lane", b"1"])).map(b"".join),
       st.sampled_from(FORMATS))  # fmt: skip
def test_any_bytes_give_tuples_or_an_input_error(body, form):
    try:
        found = read_tuples(body, form, TRAFFIC, 1_000)
    except InputError as error:
        assert str(error)
    else:
        assert all(len(column) == len(found) for column in found.columns.values())
        assert isinstance(found.tick, np.ndarray)


_RECORDS = st.fixed_dictionaries(
    {"n": st.sampled_from(["lane", "weight", "lane", "weight", "kind", "height", "x/lane"])},
    optional={
        "v": st.integers(-5, 5) | st.sampled_from([2.5, 2.0, 2**53 + 1, 1e300, True]), "vs": st.sampled_from(["car", "}, {", ""]),
        "bn": st.sampled_from(["d/", "d:", "e/", "e"]), "bt": st.sampled_from([1_800_000_000, 1_800_000_000.5, -3, 0, 10**400]),
        "bu": st.sampled_from(["kg", "g"]), "u": st.just("kg"), "t": st.sampled_from([-10, 0, 0.25]), "bv": st.just(1),
    },
)  # fmt: skip
_PLAIN = st.fixed_dictionaries(
    {"n": st.sampled_from(["lane", "weight"]), "v": st.integers(-5, 5)},
    optional={"bn": st.sampled_from(["d/", "d:", "e/"]), "bt": st.integers(1_800_000_000, 1_800_000_005), "t": st.integers(0, 2)},
)  # fmt: skip


@pytest.mark.parametrize("records", [_RECORDS, _PLAIN], ids=["any", "plain"])
@given(data=st.data(), space=st.sampled_from([(", ", ": "), (",", ":")]))
def test_senml_in_columns_gives_the_tuples_of_its_records(records, data, space):
    pack = data.draw(st.lists(records, min_size=1, max_size=12))
    pack[0] = {"bn": "d/"} | pack[0]
    check_columns(json.dumps(pack, separators=space).encode())


_BODY = b'[{"bn": "d/", "bt": 1800000000, "n": "kind", "vs": "car"}, {"n": "lane", "v": 3}]'


@given(at=st.integers(0, len(_BODY) - 1), byte=st.integers(0, 255))
@example(at=_BODY.index(b"car"), byte=0xFF)
@example(at=_BODY.index(b"d/"), byte=0xC3)
@example(at=_BODY.index(b"kind"), byte=0x80)
def test_senml_with_a_wrong_byte_is_that_of_its_records(at, byte):
    check_columns(_BODY[:at] + bytes([byte]) + _BODY[at + 1 :])


def check_columns(body):
    """A body gives the same in columns as record by record."""

    def read():
        try:
            found = read_tuples(body, "senml", TRAFFIC, 1_000, 60_000)
            return decode(found), found.has_tick.tolist(), found.rejected
        except InputError as error:
            return error.code, error.message

    in_columns = read()
    with mock.patch.object(senml, "read_columns", lambda *given: None):
        assert read() == in_columns


def test_senml_of_devices_is_read_in_columns():
    pack = [{"bn": f"d{n}/", "bt": 1_800_000_000 + n, "n": "lane", "v": n} for n in range(3)]
    with mock.patch.object(senml, "_read_records", side_effect=AssertionError):
        found = read_tuples(json.dumps([*pack, {"n": "weight", "v": 2.5}]).encode(), "senml", TRAFFIC, 1_000)
    assert [(row["lane"], row["weight"], row["device"]) for row in decode(found)] == [
        (0, None, "d0"), (1, None, "d1"), (2, 2.5, "d2")]  # fmt: skip
