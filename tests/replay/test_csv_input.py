"""CSV input: values, nulls and errors of malformed files."""

import random

import pytest

from acquisition.errors import InputError
from acquisition.sources.csv import read_csv


def read(text):
    data = text if isinstance(text, bytes) else text.encode()
    return {name: column.to_pylist() for name, column in read_csv(data, "f.csv").columns.items()}


def error_of(text):
    with pytest.raises(InputError) as error:
        read(text)
    return str(error.value)


def test_empty_field_is_null_quoted_one_is_empty_string():
    assert read('a,b\n1,\n2,""\n') == {"a": ["1", "2"], "b": [None, ""]}


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_all_line_ends_are_read(end):
    assert read(end.join(["a,b", "1,2", "3,4"])) == {"a": ["1", "3"], "b": ["2", "4"]}
    assert read(end.join(["a,b", "1,2", "3,4", ""])) == {"a": ["1", "3"], "b": ["2", "4"]}


def test_quoted_fields_hold_commas_lines_quotes():
    assert read('a,b\n1,"x, ""y""\nz"\n') == {"a": ["1"], "b": ['x, "y"\nz']}


def test_header_alone_is_empty_table():
    assert read("a,b\n") == read("a,b") == {"a": [], "b": []}


def test_byte_order_mark_is_ignored():
    assert read(b"\xef\xbb\xbfa\n1\n") == {"a": ["1"]}


def test_empty_line_is_skipped_or_null_of_single_column():
    assert read("a,b\n\n1,2\n\n") == {"a": ["1"], "b": ["2"]}
    assert read('a\n1\n\n""\n') == {"a": ["1", None, ""]}


def test_blanks_and_signs_belong_to_field():
    assert read("a\n x \n") == {"a": [" x "]}


def test_value_larger_than_read_block():
    long = "x\n" * 3_000_000
    assert read(f'a,b\n1,"{long}"\n2,y\n') == {"a": ["1", "2"], "b": [long, "y"]}


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "f.csv: there is no header"),
        ("\n\n", "f.csv: there is no header"),
        ("a,a\n", "f.csv: the column `a` occurs twice in the header"),
        ("a,\n1,2\n", "f.csv: column 2 has no name in the header"),
        ("a,b\n1,2\n3\n", "f.csv, row 2: expected 2 fields, as in the header; found 1"),
        ("a,b\n1,2,3\n", "f.csv, row 1: expected 2 fields, as in the header; found 3"),
        ('a,b\n1,2\n3,"4\n5,6\n', "f.csv, row 2: a quote is never closed"),
        ('a\n"', "f.csv, row 1: a quote is never closed"),
        (b"a,b\n1,2\n3,\xff\n", "f.csv, row 2, column b: is not UTF-8"),
        (b"\xff\n1\n", "f.csv: the header is not UTF-8"),
    ],
)
def test_malformed_csv_errors(text, message):
    assert error_of(text) == message


def test_missing_csv_file(tmp_path):
    with pytest.raises(InputError, match="No such file") as error:
        read_csv(tmp_path / "gone.csv")
    assert error.value.code == "SN501"
    with pytest.raises(InputError, match="directory"):
        read_csv(tmp_path)


PIECES = [
    b"a",
    b"1",
    b",",
    b",",
    b"\n",
    b"\r",
    b'"',
    b'""',
    b"\xff",
    b"\0",
    b"\xef\xbb\xbf",
    b"\x02end\x03",
    "木".encode(),
    b" ",
]


def test_any_bytes_give_equal_columns_or_input_error(counts, rng: random.Random):
    taken = 0
    for _ in range(counts(500, 4_000)):
        data = b"".join(rng.choices(PIECES, k=rng.randint(0, 30)))
        if rng.random() < 0.5:
            data = b"a,b\n" + data
        if rng.random() < 0.1:
            data = rng.randbytes(rng.randint(0, 60))
        try:
            recorded = read_csv(data)
        except InputError:
            continue
        taken += 1
        assert {len(column) for column in recorded.columns.values()} <= {len(recorded)}
        for column in recorded.columns.values():
            column.validate(full=True)
    assert taken > 20
