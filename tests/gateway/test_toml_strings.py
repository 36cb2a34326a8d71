"""Where each character of a TOML string stands in the text of its file."""

import tomllib

import pytest

from gateway.source import Source
from gateway.toml import read_toml
from gateway.toml_strings import locate_characters

QUOTES = '"' * 3


def located(text):
    """(character, text of the file at its position) of the value of `a`, and the position behind the last one."""
    table = read_toml(Source(text))
    value, at = tomllib.loads(text)["a"], locate_characters(text, table.places["a",][1])
    assert len(at) == len(value) + 1 and list(at) == sorted(at)
    return [(character, text[place:]) for character, place in zip(value, at, strict=False)], text[at[-1] :]


@pytest.mark.promise("errors-point")
@pytest.mark.parametrize(
    "written",
    ["'C:\\new'", '"plain"', "'''\nlit\nted'''", f"{QUOTES}\nab\ncd{QUOTES}", f"{QUOTES}ab\r\ncd{QUOTES}", '""', "''",
     f"{QUOTES}{QUOTES}", f'{QUOTES}a "quoted" word"{QUOTES}'],
)  # fmt: skip
def test_characters_of_a_toml_string_stand_as_written(written):
    found, behind = located(f"b = 1\na = {written}\nc = 2")
    assert all(rest.startswith((character, "\r\n") if character == "\n" else character) for character, rest in found)
    assert behind.lstrip("\"'") == "\nc = 2"


@pytest.mark.promise("errors-point")
def test_escape_stands_at_its_backslash():
    found, _ = located('a = "x\\t\\u00e9\\U0001F600\\\\\\"z"')
    assert [rest[:2] for _, rest in found] == ["x\\", "\\t", "\\u", "\\U", "\\\\", '\\"', 'z"']


@pytest.mark.promise("errors-point")
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_folded_line_end_is_left_out(end):
    found, behind = located(f"a = {QUOTES}one \\{end}\n   two{QUOTES}")
    assert [character for character, rest in found if rest.startswith(character)] == list("one two")
    assert behind == QUOTES
