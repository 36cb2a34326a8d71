"""Dirty files: other delimiters, decimal commas, encodings, texts for null, bad rows, standard input, format files."""

import bz2
import gzip
import io
import os
import sys

import pytest

import moteloom
from acquisition.errors import InputError
from acquisition.sources.bad_rows import BadRows
from acquisition.sources.csv import read_table
from acquisition.sources.csv_dialect import CsvDialect
from acquisition.sources.csv_file import CsvFile
from acquisition.sources.input_format import InputFormat
from basestation.replay.inputs import read_recording
from basestation.replay.statements import read_catalog
from tests.replay.test_recording_times import Desk

CATALOG = read_catalog(
    "room: sensed (site:integer, temp:float, note:string) every 1 min at sites all\nhits: pushed (v:integer)\n"
)
NUMBERS = "SELECT site, temp FROM room"


@pytest.fixture
def desk(tmp_path, capsys):
    found = Desk(tmp_path, capsys)
    found.schema("room: sensed (site:integer, temp:float) every 1 min at sites all\n")
    return found


def temps(desk, content, *arguments):
    return [(row["site"], row["temp"]) for row in desk.replay(content, *arguments, query=NUMBERS)]


@pytest.mark.parametrize(
    ("content", "arguments"),
    [
        ("_tick;_site;temp\n60;1;2.5\n60;2;1e3\n", ("--delimiter", ";")),
        ("_tick;_site;temp\n60;1;2,5\n60;2;1.000\n", ("--delimiter", ";", "--decimal", ",")),
        ("_tick\t_site\ttemp\n60\t1\t2.5\n60\t2\t1000\n", ("--delimiter", "\\t")),
        ("  _tick _site   temp\n60  1\t2.5 \n\n 60 2 1000\n", ("--delimiter", " ")),
        ("60,x,1,2.5\n60,y,2,1000\n", ("--columns", "_tick,-,_site,temp")),
        ("made by a logger\nversion 3\n_tick,_site,temp\n60,1,2.5\n60,2,1000\n", ("--skip-lines", "2")),
        ('_tick;_site;temp;note\n60;1;2.5;"a;b\nc"\n60;2;1000;\n', ("--delimiter", ";")),
        ("_tick,t1,t2\n60,2.5,1000\n", ("--site-prefix", "t")),
    ],
)
def test_dialects_are_read(desk, content, arguments):
    assert temps(desk, content, *arguments) == [("1", "2.5"), ("2", "1000.0")]


def test_texts_of_null_are_null_where_they_are_not_quoted():
    dialect = CsvDialect(nulls=("NA", "-"))
    [block] = CsvFile(b'_tick,_site,temp,note\n0,1,NA,-\n60,1,5,"NA"\n', dialect=dialect).blocks({})
    columns = {name: column.to_pylist() for name, column in block.convert(lambda table: table.columns).items()}
    assert (columns["temp"], columns["note"]) == ([None, "5"], [None, "NA"])


def test_other_encodings_are_read_or_named(desk):
    content = "_tick,_site,temp,note\n60,1,2.5,Zürich\n"
    for encoding in ("latin-1", "utf-16"):
        path = desk.folder / "room.csv"
        path.write_bytes(content.encode(encoding))
        recording = read_recording(CATALOG, {"room": path}, form=InputFormat(dialect=CsvDialect(encoding=encoding)))
        assert recording.batches["room"].columns["note"].tolist() == ["Zürich"]
        with pytest.raises(InputError, match="UTF-16, not UTF-8" if encoding == "utf-16" else "is not UTF-8") as caught:
            read_recording(CATALOG, {"room": path})
        assert f"`--encoding {encoding}`" in caught.value.help
    with pytest.raises(InputError, match="cannot be read as ascii"):
        read_recording(CATALOG, {"room": path}, form=InputFormat(dialect=CsvDialect(encoding="ascii")))


def test_utf_16_is_read_as_its_error_advises(desk):
    path = desk.folder / "utf16.csv"
    path.write_bytes("_tick,_site,temp\n60,1,2.5\n".encode("utf-16"))
    given = "--input", f"room={path}"
    assert desk.replay("", *given, query=NUMBERS, code=3) == [] and "`--encoding utf-16`" in desk.errors
    assert temps(desk, "", *given, "--encoding", "utf-16") == [("1", "2.5")]
    found = moteloom.replay(desk.folder / "schema", {"room": path}, NUMBERS, encoding="utf-16")
    assert [each.row for each in found.tuples()] == [(1, 2.5)]


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress])
def test_compressed_file_is_known_by_its_first_bytes(desk, compress, monkeypatch):
    content = compress(b"_tick,_site,temp\n60,1,2.5\n")
    path = desk.folder / "logger.dat"
    path.write_bytes(content)
    assert temps(desk, "", "--input", f"room={path}") == [("1", "2.5")]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert temps(desk, "", "--input", "room=-") == [("1", "2.5")]
    path.write_bytes(content[:20])
    assert desk.replay("", "--input", f"room={path}", query=NUMBERS, code=3) == []
    assert "logger.dat: cannot be read: " in desk.errors


def test_pipe_as_a_file_points_at_standard_input(desk):
    os.mkfifo(desk.folder / "pipe")
    for name in (desk.folder / "pipe", "/dev/zero"):
        assert desk.replay("", "--input", f"room={name}", query=NUMBERS, code=3) == []
        assert "a pipe or device cannot be read twice; `-` reads standard input" in desk.errors


def test_sites_with_names_have_advice(desk):
    assert desk.replay("_tick,_site,temp\n60,north,2.5\n", query=NUMBERS, code=3) == []
    assert "expected an integer, found `north`; sites are whole numbers: give each name a number" in desk.errors


def test_binary_file_is_named_in_few_words(desk):
    path = desk.folder / "photo.csv"
    path.write_bytes(b"\x89\xff" * 500 + b",x\n1,2\n")
    assert desk.replay("", "--input", f"room={path}", query=NUMBERS, code=3) == []
    assert desk.errors.startswith(f"SN502: {path}: the header is not UTF-8; ") and len(desk.errors) < 400
    path.write_bytes(b"c" * 500 + b"\n\xff\n")
    assert desk.replay("", "--input", f"room={path}", query=NUMBERS, code=3) == []
    assert len(desk.errors) < 500


@pytest.mark.parametrize("sign", [";", "|", "\t"])
def test_other_delimiter_is_recognised_with_advice(desk, sign):
    desk.replay(f"_tick{sign}_site{sign}temp\n60{sign}1{sign}2\n", query=NUMBERS, code=3)
    assert "the header is one column" in desk.errors
    assert f"give `--delimiter {sign!r}`" in desk.errors


# --- bad rows --------------------------------------------------------------------------------------------------------

DIRTY = """_tick,_site,temp
0,1,1
60,1,warm
120,1,3,9
soon,1,4
180,1,hot
240,,6
300,1,7
"""


def test_bad_rows_are_left_out_and_reported(desk):
    assert temps(desk, DIRTY, "--skip-bad", "5") == [("1", "1.0"), ("1", "7.0")]
    assert desk.errors.splitlines()[-5:] == [
        "room: 5 bad rows left out",
        f"  1 x SN502: {desk.folder}/room.csv, row 3: expected 3 fields, as in the header; found 4",
        f"  1 x SN506: {desk.folder}/room.csv, row 4, column _tick: expected a time at a whole tick, found `soon`",
        f"  1 x SN508: {desk.folder}/room.csv, row 6, column _site: a reading needs its site",
        f"  2 x SN506: {desk.folder}/room.csv, row 2, column temp: expected a number, found `warm`",
    ]


def test_more_bad_rows_than_allowed_are_an_error(desk):
    desk.replay(DIRTY, "--skip-bad", "4", query=NUMBERS, code=3)
    assert "more than 4 rows are wrong; --skip-bad allows more" in desk.errors
    desk.replay(DIRTY, query=NUMBERS, code=3)
    assert "row 3: expected 3 fields" in desk.errors


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        ('"1,5"', "where a comma begins the decimals, give `--decimal ,`"),
        ('"-1.234,5"', "where a comma begins the decimals, give `--decimal ,`"),
        ("NA", "`--null 'NA'` reads this text as null"),
        ("--", "`--null '--'` reads this text as null"),
        ("nan", "`--null 'nan'` reads this text as null"),
        ("warm", None),
    ],
)
def test_wrong_number_names_the_option_that_reads_it(desk, value, advice):
    desk.replay(f"_tick,_site,temp\n0,1,2\n60,1,{value}\n", query=NUMBERS, code=3)
    [line] = [line for line in desk.errors.splitlines() if "SN506" in line]
    assert line.endswith(
        f"row 2, column temp: expected a number, found `{value.strip(chr(34))}`" + (f"; {advice}" if advice else "")
    )


def test_rows_that_are_not_utf_8_are_bad_rows(desk):
    rows = [b"_tick,_site,temp,note", b"0,1,1,fine", "60,1,2,Zürich".encode("latin-1"), b"120,1,3", b"180,1,4,\xff\xfe"]
    content = b"\n".join([*rows, "240,1,5,Zürich \ufdd0".encode(), b"300,1,x,\xe9"]) + b"\n"
    for block in (7, 40, 1 << 20):
        bad = BadRows(10)
        batch = _read(CsvFile(content, "room", block, bad=bad), bad)
        assert (batch.columns["temp"].tolist(), batch.columns["note"].tolist()) == ([1, 5], ["fine", "Zürich \ufdd0"])
        assert bad.report("room")[0] == "room: 4 bad rows left out"
        assert "  3 x SN502: room, row 2, column note: is not UTF-8" in bad.report("room")
    bad = BadRows(3)
    with pytest.raises(InputError) as caught:
        _read(CsvFile(content, "room", bad=bad), bad)
    assert caught.value.help == "more than 3 rows are wrong; --skip-bad allows more"
    with pytest.raises(InputError, match="the header is not UTF-8"):
        read_table(b"_tick,_site,temp,n\xff\n0,1,1,a\n", "room", bad=BadRows(1))


def test_bad_rows_do_not_depend_on_blocks(rng, counts):
    """The same rows are left out, whatever the size of blocks, and the others are read as without them."""
    for _ in range(counts(15, 150)):
        rows = [f"{60 * at},{rng.randint(1, 3)},{at}.5,ok" for at in range(40)]
        wrong = set(rng.sample(range(40), rng.randint(0, 12)))
        for at in wrong:
            rows[at] = rng.choice(["x,1,1,a", "60,,2,b", "60,1,z,c", "60,1", "60,1,2,3,4,5", "60,1.5,2,d"])
        content = ("_tick,_site,temp,note\n" + "\n".join(rows)).encode()
        for block in (7, 64, 1 << 20):
            bad = BadRows(40)
            source = CsvFile(content, "room", block, bad=bad)
            batch = _read(source, bad)
            assert batch.columns["temp"].tolist() == [at + 0.5 for at in range(40) if at not in wrong]
            assert len(bad) == len(wrong)
            assert bad._rows == {at + 1 for at in wrong}


def _read(source, bad):
    from acquisition.batch import concatenate
    from acquisition.sources.batch_conversion import batches_of
    from acquisition.sources.formatted import FormattedSource

    extent = CATALOG.find("room")
    return concatenate(list(batches_of(FormattedSource(source, InputFormat(), extent, 1_000, bad), extent)))


# --- standard input, format files ------------------------------------------------------------------------------------


class Stdin:
    def __init__(self, content):
        self.buffer = io.BytesIO(content)


def test_standard_input_is_an_input(desk, monkeypatch):
    monkeypatch.setattr(sys, "stdin", Stdin(b"_tick,_site,temp\n60,1,2\n"))
    assert temps(desk, "", "--input", "room=-") == [("1", "2.0")]
    monkeypatch.setattr(sys, "stdin", None)
    desk.replay("", "--input", "room=-", query=NUMBERS, code=3)
    assert "SN501: standard input: cannot be read: it is closed" in desk.errors


def test_format_file_has_the_options(desk):
    path = desk.folder / "form.toml"
    path.write_text('time_column = "when"\ndelimiter = ";"\nnull = ["NA"]\nsnap = true\nskip_bad = 1\n')
    content = "when;_site;temp\n1970-01-02 00:00:01;1;NA\n1970-01-02 00:01;1;x\n1970-01-02 00:01:59;1;3\n"
    assert temps(desk, content, "--format", str(path)) == [("1", ""), ("1", "3.0")]
    assert "2 of 2 readings were moved" in desk.errors and "1 bad row left out" in desk.errors
    desk.replay(content, "--format", str(path), "--null", "none", query=NUMBERS, code=3)
    assert "more than 1 rows are wrong" in desk.errors


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('time_colum = "x"', "unknown key `time_colum`; did you mean `time_column`?"),
        ("snap = 5", 'does not fit the key `snap`; expected `true` or a span such as "5s"'),
        ("null = [5]", "does not fit the key `null`"),
        ('zone = "Mars/Base"', "does not fit the key `zone`"),
        ("zone = [", "is not a TOML file"),
    ],
)
def test_wrong_format_file_is_named(desk, text, words):
    path = desk.folder / "form.toml"
    path.write_text(text)
    desk.replay("", "--format", str(path), query=NUMBERS, code=3)
    assert words in desk.errors and "form.toml" in desk.errors
    desk.replay("", "--format", "gone.toml", query=NUMBERS, code=3)
    assert desk.errors == "SN501: gone.toml: cannot be read: No such file or directory\n"


@pytest.mark.parametrize(
    "wrong",
    [("--delimiter", "ab"), ("--encoding", "klingon"), ("--skip-bad", "-1"), ("--skip-lines", "x"), ("--decimal", ";")],
)
def test_wrong_dialect_is_misuse(desk, wrong):
    with pytest.raises(SystemExit) as left:
        desk.replay("", *wrong)
    assert left.value.code == 2
