"""The exact conversion of input values to attributes; whole columns and single values agree."""

import random
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from acquisition.errors import InputError
from acquisition.schema import Attribute, Type
from acquisition.sources.column_conversion import convert_column
from acquisition.sources.recorded_table import RecordedTable
from acquisition.sources.value_conversion import ValueRejectedError, convert_value

INTEGER, FLOAT, STRING, TIME = (Attribute("a", t) for t in (Type.INTEGER, Type.FLOAT, Type.STRING, Type.TIME))
CENTI = Attribute("a", Type.FLOAT, scale=2)


def column(values, attribute, text=False, tick_ms=1000):
    recorded = RecordedTable("f", {"a": values}, len(values), text)
    found, mask = convert_column(recorded, "a", attribute, tick_ms)
    return [None if mask is not None and not mask[i] else v for i, v in enumerate(found.tolist())]


def error_of(values, attribute, text=False):
    with pytest.raises(InputError) as error:
        column(values, attribute, text)
    return error.value


def test_integers_are_exact_in_64_bits():
    big = [2**53 + 1, -(2**63), 2**63 - 1, 0]
    assert column([str(v) for v in big], INTEGER, text=True) == big
    assert column(big, INTEGER) == big
    assert column(np.array(big, np.int64), INTEGER) == big
    assert column([2**53 + 1, 0.0], INTEGER) == [2**53 + 1, 0]  # one float must not turn the others into floats
    assert column([2**53 + 1, None], INTEGER) == [2**53 + 1, None]


def test_non_integer_error_names_row():
    assert str(error_of(["1", None, "1.5"], INTEGER, True)) == "f, row 3, column a: expected an integer, found `1.5`"
    assert error_of(["9223372036854775808"], INTEGER, True).code == "SN507"
    for text in ("0x10", "1_000", "", "e", "٣"):
        assert error_of([text], INTEGER, True).code == "SN506"
    assert error_of([" 5"], INTEGER, True).help == "remove the blanks"
    assert error_of(["5"], INTEGER).code == "SN506"  # a string of Python is a string
    assert error_of([True], INTEGER).code == "SN506"
    assert column(["+5", "007", "3.0", "1e3", "-0"], INTEGER, True) == [5, 7, 3, 1000, 0]


def test_float_attribute_holds_floats():
    for values, text in ((["1", "-0.5", "1e-7", "+2", ".5"], True), ([1, -0.5, 1e-7, 2, 0.5], False)):
        found = column(values, FLOAT, text)
        assert found == [1.0, -0.5, 1e-7, 2.0, 0.5] and all(isinstance(v, float) for v in found)
    assert column(["4.9e-324", "0.1", "1e-400"], FLOAT, True) == [5e-324, 0.1, 0.0]
    assert column(np.array([2**53 + 1], np.int64), FLOAT) == [float(2**53)]


@pytest.mark.parametrize("bad", ["nan", "inf", "-Infinity", "NaN"])
def test_nan_and_infinity_are_bad_input(bad):
    for attribute in (FLOAT, CENTI, INTEGER):
        assert error_of([bad], attribute, True).code == "SN506"
        for values in ([float(bad)], np.array([float(bad)]), pa.array([float(bad)])):
            assert error_of(values, attribute).code == "SN506"
    assert error_of(["1e400"], FLOAT, True).code == "SN507"


def test_scaled_values_round_half_away_from_zero():
    texts = ["1.005", "-1.005", "0.014999999999999999999999", "3", "1e-30", "-0.005", "21.5", "1.5E1"]
    assert column(texts, CENTI, True) == [101, -101, 1, 300, 0, -1, 2150, 1500]
    # 1.005 as a double is a little less than 1.005; 0.125 is exact.
    assert column([1.005, 0.125, -0.125], CENTI) == [100, 13, -13]
    assert column([Decimal("1.005")], CENTI) == [101]
    assert column(pa.array([Decimal("1.005"), None]), CENTI) == [101, None]
    for digits in (10, 17, 18, 19, 20, 30, 37):  # where a decimal of 128 bits could overflow on the way
        large = Decimal(10) ** digits
        for values, text in (
            (pa.array([large], pa.decimal128(38, 0)), False),
            ([f"{large:f}"], True),
            ([f"{large:e}"], True),
        ):
            if digits < 17:
                assert column(values, CENTI, text) == [10**digits * 100]
                assert column(values, INTEGER, text) == [10**digits]
            elif digits > 18:
                assert error_of(values, CENTI, text).code == error_of(values, INTEGER, text).code == "SN507"
    assert column([2**62 // 100, -3], CENTI) == [2**62 // 100 * 100, -300]
    assert error_of(["92233720368547758.08"], CENTI, True).code == "SN507"
    assert column(["92233720368547758.07"], CENTI, True) == [2**63 - 1]


def test_huge_numbers_are_rejected_fast():
    for bad in ("1e999999999", "9" * 100_000):
        for attribute in (INTEGER, CENTI, FLOAT):
            assert error_of([bad], attribute, True).code == "SN507"
    assert column(["1e-999999999", "0e999999999"], CENTI, True) == [0, 0]


def test_times_are_ticks_or_rfc_3339():
    assert column(["60", "1970-01-01T00:02:00Z"], TIME, True) == [60, 120]
    assert column(["1970-01-01T01:00:00+01:00", None], TIME, True) == [0, None]
    assert column(["1970-01-01T00:00:01", "1970-01-01T00:00:01.5Z"], TIME, True, 500) == [2, 3]
    assert column([datetime(1970, 1, 1, 0, 1, tzinfo=UTC), 7], TIME) == [60, 7]
    assert column(np.array(["1970-01-01T00:01"], "datetime64[s]"), TIME) == [60]
    assert error_of(["1970-01-01T00:00:00.5Z"], TIME, True).code == "SN506"
    for finer in (
        ["1970-01-01T00:00:00.0000001Z"],
        pa.array([1], pa.timestamp("ns")),
        pa.array([1], pa.timestamp("us", "UTC")),
    ):
        assert error_of(finer, TIME, True).code == "SN506"
    assert column(pa.array([10**9, None], pa.timestamp("ns", "Europe/Paris")), TIME) == [1, None]
    assert column(pa.array([10**12, 1], pa.timestamp("s")), TIME) == [10**12, 1]
    assert error_of(pa.array([10**15 + 1], pa.timestamp("ms", "No/Where")), TIME).code == "SN506"
    assert column(pa.array([1], pa.date32()), TIME) == [86400]
    assert error_of(["yesterday"], TIME, True).code == "SN506"
    assert error_of(["1970-01-01T00:00:00Z"], INTEGER, True).code == "SN506"


def test_strings_are_code_points():
    words = ["", "a", "木", "\U0001f600", None, "it's"]
    assert column(words, STRING) == column(pa.array(words).dictionary_encode(), STRING) == words
    assert error_of(["\ud800"], STRING).code == "SN506"
    assert error_of([3], STRING).code == "SN506"
    assert column(np.array(["a", "b"]), STRING) == ["a", "b"]


def test_column_of_nulls():
    for attribute in (INTEGER, FLOAT, STRING, TIME, CENTI):
        assert column([None, None], attribute) == column(pa.nulls(2), attribute) == [None, None]
        assert column([], attribute) == []


def nearest(value, scale):
    whole = abs(Fraction(value)) * 10**scale
    count = int(whole + Fraction(1, 2))
    return -count if Fraction(value) < 0 else count


@pytest.mark.parametrize("scale", [0, 1, 2, 5, 9])
def test_column_conversion_equals_value_conversion(scale, rng: random.Random):
    """The fast conversions against fractions, especially for values close to the middle of two multiples."""
    attribute = Attribute("a", Type.FLOAT, scale=scale)
    floats = [rng.uniform(-100, 100) for _ in range(200)]
    for _ in range(300):
        half = (rng.randint(-(10**6), 10**6) + 0.5) / 10**scale
        floats += [half, np.nextafter(half, 1e9).item(), np.nextafter(half, -1e9).item()]
    expected = [nearest(v, scale) for v in floats]
    assert column(floats, attribute) == expected
    assert column(np.array(floats), attribute) == expected
    assert [convert_value(v, attribute, 1, False) for v in floats] == expected
    texts = [repr(v) for v in floats] + [f"{rng.randint(-999, 999)}.{'0' * rng.randint(0, 3)}5" for _ in range(50)]
    assert column(texts, attribute, True) == [nearest(Decimal(t), scale) for t in texts]


def test_value_nested_too_deep_for_repr_is_quoted():
    deep = []
    for _ in range(200_000):
        deep = [deep]
    with pytest.raises(ValueRejectedError, match=r"^expected an integer, found `\[\[\["):
        convert_value(deep, INTEGER, 1, False)


TEXTS = [
    "1",
    "-1",
    "0",
    "00",
    "1.",
    ".1",
    ".",
    "-",
    "+",
    "1e5",
    "1E-5",
    "e",
    " 1",
    "1 ",
    "nan",
    "inf",
    "0x1",
    "1,5",
    "",
    "½",
]
TEXTS += ["2026-11-18T08:00:00Z", "2026-11-18", "2026-11-18T08:00:00+14:00", "0001-01-01T00:00:00+14:00", "1__0"]


def test_text_converts_equally_alone_and_in_column(rng: random.Random, counts):
    for _ in range(counts(300, 3_000)):
        attribute = rng.choice([INTEGER, FLOAT, TIME, CENTI])
        texts = [rng.choice([*TEXTS, str(rng.randint(-9, 9))]) for _ in range(rng.randint(1, 3))]
        try:
            expected = [convert_value(t, attribute, 1000, True) for t in texts]
        except ValueRejectedError:
            error_of(texts, attribute, True)
            continue
        found = column(texts, attribute, True)
        assert found == expected and list(map(type, found)) == list(map(type, expected))
