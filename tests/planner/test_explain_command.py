"""The verb explain: what it prints, its exit codes, and how it tells that something cannot be read."""

import json

import pytest

from basestation.cli import explain as verb
from gateway.cli import parser_of

QUERY = "SELECT temp FROM road [NOW] WHERE temp > 3"


@pytest.fixture
def call(tmp_path, capsys):
    """(exit code, standard output, standard error) of the verb, as the command runs it."""
    schema = tmp_path / "schema.sneeql"
    schema.write_text("road: sensed (site:integer, temp:integer) every 1 min at sites 1, 2")

    def called(*arguments, schema=schema):
        code = verb.run(parser_of("explain", verb).parse_args(["--schema", str(schema), *map(str, arguments)]))
        told = capsys.readouterr()
        return code, told.out, told.err

    return called


def test_a_query_is_explained(call):
    code, out, err = call(QUERY)
    assert code == 0 and err == "" and out.startswith("query 1: window query\n")
    code, out, err = call("-o", "json", f"{QUERY}; {QUERY}")
    assert code == 0 and [json.loads(line)["query"] for line in out.splitlines()] == [1, 2]


def test_a_refused_query_is_told_beside_the_answers_or_as_one_line_of_them(call):
    code, out, err = call("SELECT tmep FROM road")
    assert code == 2 and out == "" and err.startswith("SN202")
    code, out, err = call("-o", "json", "SELECT tmep FROM road")
    assert code == 2 and json.loads(out)["code"] == "SN202" and err == ""


def test_what_cannot_be_read_is_bad_input(call, tmp_path):
    gone = tmp_path / "gone.sneeql"
    for arguments, schema in (((QUERY,), {"schema": gone}), (("-f", gone), {})):
        code, out, err = call(*arguments, **schema)
        assert code == 3 and out == "" and err == f"SN501: {gone}: cannot be read: No such file or directory\n"
        code, out, err = call("-o", "json", *arguments, **schema)
        assert code == 3 and err == ""
        assert json.loads(out) == {
            "type": "error", "kind": "input", "code": "SN501", "file": str(gone), "row": None, "column": None,
            "message": "cannot be read: No such file or directory", "expected": [], "help": None,
        }  # fmt: skip
    (tmp_path / "latin.sneeql").write_bytes(b"SELECT '\xe9' FROM road")
    assert call("-f", tmp_path / "latin.sneeql")[0] == 3
