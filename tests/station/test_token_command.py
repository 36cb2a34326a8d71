"""`moteloom token` as its user types it, on a data directory, and against a station that runs."""

import json
import re

import pytest

from basestation.station.access_file import open_station_access
from gateway.cli import main


@pytest.fixture
def data(tmp_path):
    access, _ = open_station_access(tmp_path)
    access.close()
    return tmp_path


def run(capsys, *arguments, code=0):
    try:
        found = main(["token", *map(str, arguments)])
    except SystemExit as end:  # argparse
        found = end.code
    out, err = capsys.readouterr()
    assert found == code, err
    return out, err


@pytest.mark.promise("access")
def test_token_goes_to_standard_output_alone(data, capsys):
    out, err = run(capsys, "create", "--name", "anna", "--scope", "submit", "--expires", "90d", "--data", data)
    assert re.fullmatch(r"moteloom_[\w-]{43}\n", out)
    assert re.match(r"token 2 of anna, submit until 20\d\d-\d\d-\d\dT\S+Z: keep it", err)
    listed, _ = run(capsys, "list", "--data", data)
    assert out.strip() not in listed and len(listed.splitlines()) == 3
    out, err = run(capsys, "create", "--name", "anna", "--scope", "read,tag", "--data", data, "-o", "json")
    made = json.loads(out)
    assert (made["number"], made["scopes"], made["expires"], made["state"]) == (3, ["read", "tag"], None, "active")
    assert "anna also has token 2" in err


def test_tokens_are_listed_and_revoked(data, capsys):
    run(capsys, "create", "--name", "anna", "--scope", "operate", "--data", data)
    out, _ = run(capsys, "revoke", "anna", "--data", data)
    assert out == "token 2 of anna, operate: revoked\n"
    out, _ = run(capsys, "list", "--data", data, "-o", "json")
    assert [(each["name"], each["state"]) for each in map(json.loads, out.splitlines())] == [
        ("admin", "active"), ("anna", "revoked")]  # fmt: skip
    _, err = run(capsys, "revoke", "anna", "--data", data, code=2)
    assert "no token that is active has the number or name anna" in err


@pytest.mark.promise("access")
def test_file_with_a_revoked_first_token_is_removed(data, capsys):
    _, err = run(capsys, "revoke", "1", "--data", data)
    assert "had it and is removed" in err and not (data / "token").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["create", "--name", "a b", "--scope", "read"], 2, "`a b` is no name"),
        (["create", "--name", "7", "--scope", "read"], 2, "is no name"),
        (["create", "--name", "x" * 65, "--scope", "read"], 2, "is no name"),
        (["create", "--name", "anna\n", "--scope", "read"], 2, "is no name"),
        (["create", "--name", "anna", "--scope", "raed"], 2, "unknown scope `raed`; known are read, submit"),
        (["create", "--name", "anna", "--scope", ""], 2, "unknown scope"),
        (["create", "--name", "anna", "--scope", "read", "--expires", "soon"], 2, "neither a span such as 90d"),
        (["create", "--name", "anna", "--scope", "read", "--expires", "2020-01-01"], 2, "not in the future"),
        (["create", "--name", "anna", "--scope", "read", "--expires", "999999999d"], 2, "before the year 10000"),
        (["create", "--name", "anna", "--scope", "read", "--expires", "0s"], 2, "not in the future"),
        (["create", "--name", "anna"], 2, "--scope"),
        (["list", "--data", "/nowhere"], 1, "is not the data directory of a station"),
        (["revoke", "é" * 1_000], 2, "no token that is active"),
    ],
)
def test_wrong_arguments_are_refused_with_a_remedy(data, capsys, arguments, code, message):
    more = [] if "--data" in arguments else ["--data", data]
    out, err = run(capsys, *arguments, *more, code=code)
    assert message in err and out == "" and "Traceback" not in err
