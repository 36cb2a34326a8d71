"""Sources: equal tuples from CSV, Parquet and Python values; errors of inputs that do not fit an extent."""

import random
from decimal import Decimal

import numpy as np
import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from acquisition.batch import BY_KEY, concatenate
from acquisition.errors import InputError
from acquisition.sources.batch_conversion import batch_of, table_of
from acquisition.sources.csv import read_csv
from acquisition.sources.python_values import to_recorded_table
from basestation.errors import CATALOGUE, ROAD
from basestation.planner.catalog import read_schema
from basestation.replay.csv_output import field

ATTRIBUTES = "n:integer, x:float, c:float {scale 2}, s:string, at:time"
CATALOG = read_schema(
    f"road: sensed (site:integer, time:integer, {ATTRIBUTES}) every 1 min at sites 1, 2\n"
    f"plain: sensed ({ATTRIBUTES}) every 1 min at sites 1, 2\n"
    f"hits: pushed ({ATTRIBUTES})\n"
    f"kinds: stored ({ATTRIBUTES})\n"
)
BLANK = {"n": 1, "x": 1.5, "c": 1.5, "s": "a", "at": 0}


def listed(batch):
    """A batch as plain values, for comparison."""
    columns = {
        name: [
            v if there else None
            for v, there in zip(c.tolist(), batch.valid.get(name, np.ones(len(c), bool)), strict=True)
        ]
        for name, c in batch.columns.items()
    }
    replaces = np.zeros(len(batch), np.int64) if batch.replaces is None else batch.replaces
    tags = [batch.tick, batch.site, batch.arrival, batch.weight, replaces]
    return [tag.tolist() for tag in tags], columns


def read(data, extent):
    return batch_of(to_recorded_table(data, extent), CATALOG.find(extent))


def error_of(data, extent="hits"):
    with pytest.raises(InputError) as error:
        if extent == "kinds":
            table_of(to_recorded_table(data, extent), CATALOG.find(extent))
        else:
            read(data, extent)
    assert error.value.code in CATALOGUE
    return error.value


def rows(rng, count):
    def maybe(value):
        return None if rng.random() < 0.2 else value

    return [
        {
            "_tick": 60 * rng.randint(0, 5), "_site": rng.randint(1, 2), "_arrival": maybe(rng.randint(0, 400)),
            "_weight": maybe(rng.choice([1, 1, -1])), "_replaces": maybe(rng.randint(1, 9)),
            "n": maybe(rng.choice([0, 2**53 + 1, -(2**63)])), "x": maybe(rng.choice([0.1, 1.0, 1e300])),
            "c": maybe(rng.choice([1.25, 3.0, -0.5])), "s": maybe(rng.choice(["", "a", 'b "c",\nd', "木"])),
            "at": maybe(rng.randint(0, 9)),
        }
        for _ in range(count)
    ]  # fmt: skip


def test_csv_parquet_python_give_equal_batches(tmp_path, rng: random.Random, counts):
    for _ in range(counts(20, 200)):
        dictionaries = rows(rng, rng.randint(1, 12))
        names = list(dictionaries[0])
        columns = {name: [row[name] for row in dictionaries] for name in names}
        text = "\n".join(",".join(map(field, line)) for line in [names, *(r.values() for r in dictionaries)]) + "\n"
        (tmp_path / "a.csv").write_text(text, newline="")
        types = {"x": pa.float64(), "s": pa.string(), "c": rng.choice([pa.float64(), pa.decimal128(18, 2)])}
        if types["c"] != pa.float64():
            columns["c"] = [None if v is None else Decimal(str(v)) for v in columns["c"]]
        table = pa.table({name: pa.array(c, types.get(name, pa.int64())) for name, c in columns.items()})
        pq.write_table(table, tmp_path / "a.parquet")
        forms = [dictionaries, columns, table, tmp_path / "a.csv", str(tmp_path / "a.parquet")]
        forms.append({name: np.array(c, object) for name, c in columns.items()})
        forms.append(pandas.DataFrame({name: pandas.Series(c, dtype=object) for name, c in columns.items()}))
        for extent in ("road", "plain", "hits"):
            found = [listed(read(form, extent)) for form in forms]
            assert all(each == found[0] for each in found), dictionaries


def test_numpy_columns_without_nulls():
    columns = {"_arrival": np.arange(3), "n": np.array([1, 2, 3], np.int32), "x": np.array([1, 2, 3], np.float32),
               "c": np.array([1.25, 2, 3]), "s": np.array(["a", "b", ""]), "at": np.arange(3, dtype=np.uint8)}  # fmt: skip
    tags, found = listed(read(columns, "hits"))
    assert tags[0] == tags[2] == [0, 1, 2] and found["c"] == [125, 200, 300] and found["x"] == [1.0, 2.0, 3.0]


def test_sensed_system_columns():
    (tick, site, arrival, weight, _), columns = listed(
        read([{"_tick": 60, "_site": 2, **BLANK}, {"_tick": 0, "site": 7, "_site": 1, "_arrival": 3, **BLANK}], "road")
    )
    assert (tick, site, arrival, weight) == ([60, 0], [2, 1], [60, 3], [1, 1])
    assert columns["site"] == [2, 1] and columns["time"] == [60, 0]  # known without the sensor
    assert listed(read([{"_tick": 0, "site": 2, **BLANK}], "road"))[0][1] == [2]


def test_pushed_system_columns():
    (tick, _, arrival, _, _), _ = listed(
        read([{"_arrival": 5, **BLANK}, {"_tick": 4, **BLANK}, {"_tick": 4, "_arrival": 6, **BLANK}], "hits")
    )
    assert (tick, arrival) == ([5, 4, 4], [5, 4, 6])


def test_correction_by_index_alone():
    (tick, _, arrival, weight, replaces), _ = listed(read([{"_arrival": 5, "_replaces": 3, "_weight": -1}], "road"))
    assert (tick, arrival, weight, replaces) == ([5], [5], [-1], [3])


def test_correction_tells_which_parts_of_a_key_it_states():
    rows = [
        {"_arrival": 5, "_replaces": 3, **BLANK}, {"_arrival": 5, "_tick": 5, "_replaces": 3, **BLANK},
        {"_arrival": 5, "_site": 2, "_replaces": 3, **BLANK}, {"_tick": 5, "_site": 1, "_replaces": 0, **BLANK},
    ]  # fmt: skip
    batch = read(rows, "road")
    assert batch.replaces.tolist() == [3, 3, 3, BY_KEY]
    assert batch.states_tick.tolist() == [False, True, False, True]
    assert batch.states_site.tolist() == [False, False, True, True]
    both = concatenate([batch, read([{"_tick": 0, "_site": 2, **BLANK}], "road"), batch.take(np.array([2]))])
    assert both.states_site.tolist() == [False, False, True, True, False, True]


def test_archive_file_is_an_input():
    more = {"_time": None, "_index": 4, "_version": 1, "_revision": 0}
    assert listed(read([{"_tick": 0, "_site": 1, **BLANK, **more}], "road"))[0][0] == [0]
    assert listed(read([{"_tick": 0, "_site": 1, **BLANK, **more}], "hits"))[0][0] == [0]


def test_rows_may_omit_attributes_files_may_not():
    assert listed(read([{"_arrival": 1}], "hits"))[1]["s"] == [None]
    assert str(error_of({"_arrival": [1]})) == "hits: the column `n` is missing: it is an attribute of `hits`"


def test_empty_input():
    for nothing in ([], {}):
        assert len(read(nothing, "road")) == len(read(nothing, "hits")) == 0
    assert table_of(to_recorded_table([], "kinds"), CATALOG.find("kinds"))[0]["n"].tolist() == []


@pytest.mark.parametrize(
    "data, extent, message, help",
    [
        ([{"_arrival": 1, "m": 1}], "hits", "hits: unknown column `m`", "columns are"),
        ([{"_arrival": 1, "_tik": 1}], "hits", "hits: unknown column `_tik`", "did you mean `_tick`?"),
        ([{"_tick": 1, **BLANK}], "kinds", "kinds: unknown column `_tick`", "columns are"),
        ([{"n": 1}], "hits", "hits: the column `_arrival` is missing", None),
        ([{"_site": 1}], "road", "hits: the column `_tick` is missing".replace("hits", "road"), None),
        ([{"_tick": 0}], "road", "road: the column `_site` is missing", None),
        ([{"_tick": 0, "site": 1}], "plain", "plain: unknown column `site`", None),
        ([{"_arrival": 1}, {"n": 2}], "hits", "hits, row 2, column _arrival: a pushed tuple needs its delivery", None),
        ([{"_tick": 0, "_site": 1}, {"_tick": 0}], "road", "road, row 2, column _site: a reading needs its site", None),
        ([{"_site": 1, "_tick": None}], "road", "road, row 1, column _tick: a reading needs its tick", None),
        ([{"_arrival": 1, "_weight": 2}], "hits", "hits, row 1, column _weight: a weight is 1", None),
        ([{"_arrival": 1, "_replaces": -1}], "hits", "hits, row 1, column _replaces: indexes count from 1", None),
        ([{"_arrival": 1, "_replaces": 0}], "hits", "hits, row 1, column _replaces: a pushed tuple has no key", None),
        ([{"_arrival": 1, "_site": 1, "_replaces": 0}], "road", "road: the column `_tick` is missing", None),
        ([{"_arrival": 1, "n": "x"}], "hits", "hits, row 1, column n: expected an integer, found `x`", None),
        ([{"_arrival": 1.5}], "hits", "hits, row 1, column _arrival: expected an integer, found `1.5`", None),
        ([7], "hits", "hits, row 1: expected a dictionary for a row, found int", None),
        (
            {"_arrival": [1, 2], "n": [1]},
            "hits",
            "hits, column n: expected 2 values, as in the first column; found 1",
            None,
        ),
    ],
)
def test_input_mismatch_errors(data, extent, message, help):
    error = error_of(data, extent)
    assert str(error).startswith(message)
    assert help is None or help in error.help


def test_malformed_parquet_error(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"PAR1 and nothing more")
    assert error_of(tmp_path / "a.parquet").code == "SN502"
    assert error_of(tmp_path / "gone.parquet").code == "SN501"


@pytest.mark.parametrize("code", [code for code, entry in CATALOGUE.items() if code.startswith("SN50")])
def test_catalogue_examples_of_inputs_cause_their_errors(code):
    """An example is a recording of `road`, an empty line, and its error."""
    recording, _, message = CATALOGUE[code].example.rpartition("\n\n")
    with pytest.raises(InputError) as error:
        source = read_csv(recording.encode(), "road.csv") if recording else to_recorded_table("gone.csv", "road")
        batch_of(source, read_schema(ROAD).find("road"))
    assert (error.value.code, str(error.value)) == (code, message)


def test_any_values_give_batch_or_input_error(rng: random.Random, counts):
    values = [
        None,
        0,
        1,
        -1,
        2**63,
        2.5,
        1e19,
        float("nan"),
        "",
        "1",
        "\ud800",
        True,
        Decimal("1.5"),
        b"x",
        [],
        np.int64(3),
    ]
    for _ in range(counts(300, 3_000)):
        names = rng.sample(
            ["_tick", "_site", "_arrival", "_weight", "_replaces", "site", "time", *BLANK, "?"], rng.randint(0, 8)
        )
        data = [{name: rng.choice(values) for name in names if rng.random() < 0.9} for _ in range(rng.randint(0, 3))]
        try:
            batch = read(data, rng.choice(["road", "plain", "hits"]))
        except InputError as error:
            assert "\n" not in str(error)
            continue
        assert len(batch) == len(data)


def test_damaged_parquet_gives_batch_or_input_error(tmp_path, rng: random.Random, counts):
    table = pa.table(
        {"_arrival": [1, 2, 3], "n": [1, None, 3], "x": [1.5] * 3, "c": [1.5] * 3, "s": ["a", "b", "a"], "at": [0] * 3}
    )
    pq.write_table(table, tmp_path / "a.parquet")
    whole = (tmp_path / "a.parquet").read_bytes()
    for _ in range(counts(200, 2_000)):
        data = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        (tmp_path / "b.parquet").write_bytes(data[: rng.choice([len(data), len(data), rng.randrange(len(data))])])
        try:
            read(tmp_path / "b.parquet", "hits")
        except InputError as error:
            assert "\n" not in str(error)
