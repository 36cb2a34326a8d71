"""`moteloom push` against a station over a socket: receipts, wrong rows with their numbers, standard input, exit codes."""

import io
import json
from types import SimpleNamespace

import pytest

from basestation.cli import push
from basestation.station.rest_server import RestServer
from gateway.cli import dispatch
from tests.docs.commands import verbs
from tests.rest.running_station import RunningStation
from tests.station.test_uploads import CATALOG, COUNT


@pytest.fixture
def command(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with RunningStation(tmp_path / "data", CATALOG) as station, RestServer(station.control, None) as rest:

        def run(*arguments, code=0, stdin=b""):
            monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(stdin)))
            assert dispatch(["push", *arguments, "--url", rest.url], verbs()) == code
            return capsys.readouterr()

        run.station = station
        yield run


def test_file_is_pushed_and_answered(command, tmp_path):
    command.station.submit(COUNT)
    (tmp_path / "belt.csv").write_text("lane,kind\n1,car\n1,\n2,bus\n")
    assert command("traffic", "belt.csv").out == "accepted 3, rejected 0\n"
    for count in range(1, 50):
        rows = [row for update in command.station.wait_for(1, count) for row in update.get("rows", ())]
        if rows:
            assert sorted(rows) == [[1, 2], [2, 1]]
            return
    raise AssertionError("the tuples are in no window")


def test_wrong_rows_have_their_numbers_in_the_whole_input(command, monkeypatch):
    monkeypatch.setattr(push, "BATCH_BYTES", 20)
    lines = b'{"lane": 1}\n' * 5 + b'{"lane": "x"}\n{"lane": 2}\n{"lane": 3, "kin": 1}\n{"lane": 4}'
    found = command("traffic", code=3, stdin=lines)
    assert found.out == "accepted 7, rejected 2\n", found.err
    assert [line.split(": ")[1] for line in found.err.splitlines()] == ["row 6, column lane", "row 8, column kin"]
    receipts = command("traffic", "-o", "json", stdin=b'{"lane": 1}\n' * 4).out.splitlines()
    assert len(receipts) > 1 and sum(json.loads(receipt)["accepted"] for receipt in receipts) == 4


def test_refusal_in_the_middle_says_what_was_taken(command, monkeypatch):
    monkeypatch.setattr(push, "BATCH_BYTES", 2_000)
    monkeypatch.setattr("acquisition.sources.pushed_tuples.MOST_REJECTED", 3)
    found = command("traffic", code=2, stdin=b'{"lane": 1}\n' * 400 + b'{"lane": "x"}\n' * 100)
    assert "rows 1 to 333 were answered: accepted 333, rejected 0; begin behind them" in found.err, found.err
    assert "SN506" in found.err or "expected an integer" in found.err


@pytest.mark.parametrize(
    ("arguments", "stdin", "code", "words"),
    [(("trafic",), b"{}", 2, "there is no extent trafic; extents are field, traffic, lanes"),
     (("field",), b"{}", 2, "`field` is sensed, not pushed"), (("traffic", "none.csv"), b"", 3, "none.csv cannot be read"),
     (("traffic", "--format", "csv"), b"", 2, "there is no header"),
     (("traffic", "--url", "http://127.0.0.1:9"), b"{}", 4, "no station answers")],
)  # fmt: skip
def test_wrong_use_says_what_is_wrong(command, arguments, stdin, code, words, monkeypatch, capsys):
    if "--url" in arguments:
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(stdin)))
        assert dispatch(["push", *arguments], verbs()) == code
        assert words in capsys.readouterr().err
    else:
        assert words in command(*arguments, code=code, stdin=stdin).err


def test_lines_are_sent_as_they_come():
    parts = iter([b'{"a"', b": 1}\n{", b"}", b"\n\n", b"tail", b""])
    stream = SimpleNamespace(read1=lambda size: next(parts))
    assert list(push.split_lines(stream)) == [b'{"a": 1}\n', b"{}\n\n", b"tail"]
