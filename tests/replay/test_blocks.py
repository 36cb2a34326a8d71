"""Recordings read block by block equal those read at once, in memory that does not grow with the file."""

import json
import random
import subprocess
import sys
import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from acquisition.batch import concatenate, empty_batch
from acquisition.errors import InputError
from acquisition.extent import ExtentKind
from acquisition.sources import parquet
from acquisition.sources.batch_conversion import batch_of, batches_of
from acquisition.sources.csv import read_csv
from acquisition.sources.csv_file import CsvFile
from acquisition.sources.parquet import ParquetFile
from basestation.errors import CATALOGUE
from basestation.planner.catalog import read_schema
from basestation.replay import recorded_stream, replay
from basestation.replay.csv_output import field
from basestation.replay.recorded_stream import read_stream
from tests.oracles.generate import case
from tests.replay.test_csv_input import PIECES
from tests.replay.test_sources import CATALOG, listed

HITS, ROAD = CATALOG.find("hits"), CATALOG.find("road")
WORDS = ["", "a", 'say "x"', "a,b", "two\nlines", "two\r\nlines", "木", "0x1f", " "]


def cell(rng, name):
    match name:
        case "_arrival" | "at":
            return (
                rng.choice(["5", "12", "2026-11-18T08:00:00Z", ""]) if rng.random() < 0.1 else str(rng.randint(0, 99))
            )
        case "n":
            return rng.choice(["", " 7", "0x1f", "5.0", "1e3", '"3"', "-0", "x"]) if rng.random() < 0.05 else "12"
        case "s":
            return rng.choice(["", *map(field, WORDS), 'a"b', '"a"b"c"'])
    if rng.random() < 0.05:
        return rng.choice(
            ["", "nan", "1.005", "2.675", "1e5", "-.5", "+1", "9007199254740993", "inf", "1e400", "0x1p3"]
        )
    return f"{rng.uniform(-50, 50):.{rng.randint(0, 3)}f}"


def text_of(rng):
    names = ["_arrival", "n", "x", "c", "s", "at"]
    rng.shuffle(names)
    end = rng.choice(["\n", "\r\n"]) if rng.random() < 0.9 else "\r"
    lines = [",".join(cell(rng, name) for name in names) for _ in range(rng.randint(0, 12))]
    if rng.random() < 0.1:
        lines.insert(rng.randint(0, len(lines)), rng.choice(["", "", "1,2", '"open,1,1,1,1,1', "\udcff"]))
    return (end.join([",".join(names), *lines]) + rng.choice(["", end])).encode("utf-8", "surrogateescape")


def outcome(read):
    """Tuples as plain values, or that there is an error: which of several comes first is left open."""
    try:
        return listed(read())
    except InputError as error:
        assert error.code in CATALOGUE
        return "refused"


def in_blocks(source, extent):
    return concatenate(list(batches_of(source, extent)) or [empty_batch(extent.schema)])


def test_csv_in_blocks_equals_csv_at_once(rng: random.Random, counts, tmp_path):
    read, path = 0, tmp_path / "hits.csv"
    for _ in range(counts(80, 1_500)):
        path.write_bytes(text_of(rng))
        whole = outcome(lambda: batch_of(read_csv(path), HITS))
        assert outcome(lambda: in_blocks(CsvFile(path, block=rng.choice([1, 7, 40, 1 << 20])), HITS)) == whole
        read += whole != "refused"
    assert read > 20


def test_any_bytes_in_blocks_equal_bytes_at_once(rng: random.Random, counts, tmp_path):
    extent = read_schema("hits: pushed (a:string, b:string)").find("hits")
    path = tmp_path / "hits.csv"
    for _ in range(counts(80, 1_500)):
        data = b"_arrival,a,b\n" + b"".join(rng.choices([*PIECES, b"1,2,3\n"], k=rng.randint(0, 30)))
        path.write_bytes(data)
        whole = outcome(lambda: batch_of(read_csv(path), extent))
        assert outcome(lambda: in_blocks(CsvFile(path, block=rng.choice([1, 5, 20])), extent)) == whole, data


@pytest.mark.parametrize("block", [1, 13, 1 << 20])
@pytest.mark.parametrize("row", [b"\r", b"1,2,3\n"], ids=["alone", "before a number"])
def test_byte_order_mark_between_rows_is_part_of_a_value(row, block):
    extent = read_schema("hits: pushed (a:string, b:string)").find("hits")
    data = b"_arrival,a,b\n\xef\xbb\xbf" + row
    assert outcome(lambda: batch_of(read_csv(data), extent)) == "refused"
    assert outcome(lambda: in_blocks(CsvFile(data, block=block), extent)) == "refused"


def test_parquet_in_blocks_equals_parquet_at_once(rng: random.Random, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "ROWS", 7)
    columns = {"_tick": range(50), "_site": [1, 2] * 25, "n": [rng.choice([None, 1]) for _ in range(50)]}
    columns |= {"x": np.arange(50) / 3, "c": [1.005] * 50, "s": ["a", None] * 25, "at": pa.nulls(50, pa.int64())}
    pq.write_table(pa.table(columns), tmp_path / "road.parquet", row_group_size=20)
    blocks = list(batches_of(ParquetFile(tmp_path / "road.parquet"), ROAD))
    assert listed(concatenate(blocks)) == listed(batch_of(ParquetFile(tmp_path / "road.parquet").whole(), ROAD))
    assert max(map(len, blocks)) == 7
    wrong = [1.5] * 49 + [float("nan")]
    pq.write_table(pa.table(columns | {"x": wrong}), tmp_path / "road.parquet")
    with pytest.raises(InputError, match="row 50, column x"):
        list(batches_of(ParquetFile(tmp_path / "road.parquet"), ROAD))


def files_of(made, folder):
    """The inputs of a case, its streams as CSV files."""
    catalog, inputs = read_schema(made.schema), {}
    for name, rows in made.inputs.items():
        extent = catalog.find(name)
        if extent.kind is ExtentKind.STORED:
            inputs[name] = rows
            continue
        names = [*dict.fromkeys([n for row in rows for n in row] + [a.name for a in extent.schema])]
        names += ["_arrival"] if "_arrival" not in names and "_tick" not in names else []
        lines = [",".join(field(row.get(n)) for n in names) for row in rows]
        inputs[name] = folder / f"{name}.csv"
        inputs[name].write_text("\n".join([",".join(names), *lines, ""]))
    return inputs


def answers(made, inputs):
    result = replay(made.schema, inputs, [(text, 0) for text in [made.query]])
    return result.ledger, [result.history(query) for query in result.columns], result.errors


def test_answers_do_not_depend_on_blocks(counts, rng: random.Random, tmp_path, monkeypatch):
    for _ in range(counts(25, 250)):
        made = case(rng.randrange(10**6))
        files = files_of(made, tmp_path)
        monkeypatch.setattr(recorded_stream, "HELD_BYTES", 1 << 26)
        monkeypatch.setattr(CsvFile.__init__, "__defaults__", (None, 1 << 20))
        at_once = outcome_of(made, files)
        monkeypatch.setattr(recorded_stream, "HELD_BYTES", 0)
        monkeypatch.setattr(CsvFile.__init__, "__defaults__", (None, 64))
        assert outcome_of(made, files) == at_once


def outcome_of(made, files):
    try:
        return answers(made, files)
    except Exception as error:
        return type(error), str(error)


def test_large_file_is_not_held(tmp_path, monkeypatch):
    extent = read_schema("hits: pushed (n:integer, x:float)").find("hits")
    (tmp_path / "hits.csv").write_text("_arrival,n,x\n" + "".join(f"{i},{i},{i / 2}\n" for i in range(200_000)))
    source = CsvFile(tmp_path / "hits.csv", block=1 << 16)
    tracemalloc.start()
    stream = read_stream(source, extent, 1_000, held_bytes=1 << 20)
    assert (stream.last, stream.ordered) == (199_999, True)
    assert sum(len(batch) for batch in stream.deliveries()) == 200_000
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 200_000 * 8  # a single one of its columns


def test_wrong_value_of_large_file_has_its_row(tmp_path):
    extent = read_schema("hits: pushed (n:integer)").find("hits")
    (tmp_path / "hits.csv").write_text("_arrival,n\n" + "".join(f"{i},{i}\n" for i in range(5_000)) + "5000,warm\n")
    stream = read_stream(CsvFile(tmp_path / "hits.csv", block=256), extent, 1_000, held_bytes=0)
    with pytest.raises(InputError, match="row 5001, column n: expected an integer, found `warm`"):
        list(stream.deliveries())


CLEAN = """
import json, os, sys
import numpy, pyarrow, pyarrow.csv, pyarrow.parquet
from acquisition.sources.python_values import open_file, read_file
from acquisition.sources.batch_conversion import batches_of
from basestation.errors import CATALOGUE
from basestation.planner.catalog import read_schema
extent = read_schema("hits: pushed (n:integer, s:string)").find("hits")
threads = lambda: len(os.listdir("/proc/self/task"))
before = threads()
for file in sys.argv[1:]:
    read_file(file)
    list(batches_of(open_file(file), extent))
print(json.dumps([before, threads()]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")
def test_reading_starts_no_thread(tmp_path):
    """A thread of Arrow that outlives the interpreter aborts the process at its exit."""
    (tmp_path / "hits.csv").write_text("_arrival,n,s\n" + "".join(f"{i},{i},a b\n" for i in range(100_000)))
    pq.write_table(pa.table({"_arrival": [1], "n": [2], "s": ["a"]}), tmp_path / "hits.parquet")
    files = [str(tmp_path / "hits.csv"), str(tmp_path / "hits.parquet")]
    done = subprocess.run([sys.executable, "-c", CLEAN, *files], capture_output=True, text=True, check=True)
    before, after = json.loads(done.stdout)
    assert after == before


IMPORTS = """
import sys
from basestation.cli import replay
from gateway.cli import parser_of
for output in ("csv", "json", "table"):
    code = replay.run(parser_of("replay", replay).parse_args([*sys.argv[1:], "-o", output]))
    assert code == 0, code
print("pandas" in sys.modules)
"""


def test_replay_of_files_does_not_import_pandas(tmp_path):
    (tmp_path / "schema").write_text("hits: pushed (n:integer, s:string, x:float {scale 1})")
    (tmp_path / "hits.csv").write_text("_arrival,n,s,x\n1,2,a,1.5\n2,,,\n")
    arguments = ["--schema", f"{tmp_path}/schema", "--input", f"hits={tmp_path}/hits.csv", "SELECT * FROM hits"]
    done = subprocess.run([sys.executable, "-c", IMPORTS, *arguments], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


@pytest.mark.parametrize(
    ("times", "options"),
    [
        (("2026-11-18T08:00:00Z", "2026-11-18T08:01:01Z"), ["--snap"]),
        (("18.11.2026 08:00", "18.11.2026 08:01"), ["--time-format", "%d.%m.%Y %H:%M", "--zone", "Europe/Zurich"]),
        (("1794988800000", "1794988860000"), ["--null", "NA", "--skip-bad", "1"]),
    ],
)
def test_replay_of_times_does_not_import_pandas(tmp_path, times, options):
    (tmp_path / "schema").write_text("lab: sensed (site:integer, x:float {scale 1}) every 1 min at sites all")
    rows = "".join(f"{when},{site},{x}\n" for when in times for site, x in ((1, "1.5"), (2, "")))
    (tmp_path / "lab.csv").write_text(f"when,site,x\n{rows}")
    arguments = ["--schema", f"{tmp_path}/schema", "--input", f"lab={tmp_path}/lab.csv", "--time-column", "when"]
    command = [sys.executable, "-c", IMPORTS, *arguments, "SELECT site, x FROM lab", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"
