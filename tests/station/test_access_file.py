"""The file of tokens: what it keeps, what a start makes of older data directories, and what it refuses."""

import os
import sqlite3
import subprocess
import sys
import threading
import time

import pytest

from basestation.rest.access import TokenScope
from basestation.station.access_file import NAME, AccessFile, digest_of, open_station_access
from basestation.station.journal_file import JournalError, backup
from tests.station.small_network import QUERIES, SmallNetwork


@pytest.fixture
def access(tmp_path):
    with AccessFile(tmp_path, create=True) as opened:
        yield opened


def bytes_of(folder):
    """Everything that lies in a data directory but the file of the first token."""
    return b"".join(path.read_bytes() for path in folder.iterdir() if path.is_file() and path.name != "token")


@pytest.mark.promise("access")
def test_token_is_found_by_its_whole_text_only(access):
    token = access.create("anna", [TokenScope.SUBMIT])
    found = access.find(token)
    assert (found.name, found.scopes, found.token) == ("anna", {TokenScope.SUBMIT, TokenScope.READ}, 1)
    for wrong in (
        "",
        token[:-1],
        token + "x",
        token[1:],
        token.upper(),
        "x" * 100_000,
        "\ud800",
        digest_of(token).hex(),
    ):
        assert access.find(wrong) is None


@pytest.mark.promise("access")
def test_file_holds_digests_and_no_token(access, tmp_path):
    tokens = [access.create(name, [TokenScope.READ]) for name in ("anna", "ben", "anna")]
    assert len(set(tokens)) == 3 and all(token.startswith("moteloom_") and len(token) == 52 for token in tokens)
    kept = bytes_of(tmp_path)
    assert all(digest_of(token) in kept and token.encode() not in kept for token in tokens)
    for path in tmp_path.iterdir():
        assert path.stat().st_mode & 0o777 == 0o600, path


@pytest.mark.promise("access")
def test_token_expires_at_its_time(access, monkeypatch):
    now = [1_000_000]
    monkeypatch.setattr(time, "time_ns", lambda: now[0] * 1_000_000)
    token = access.create("anna", [TokenScope.READ], expires_ms=1_000_010)
    now[0] = 1_000_009
    assert access.find(token) is not None and access.tokens()[0].state(now[0]) == "active"
    now[0] = 1_000_010
    assert access.find(token) is None and access.tokens()[0].state(now[0]) == "expired"
    with pytest.raises(KeyError):
        access.revoke("anna")


@pytest.mark.promise("access")
def test_revocation_by_number_or_name(access):
    anna, other, ben = (access.create(name, [TokenScope.READ]) for name in ("anna", "anna", "ben"))
    assert [each.number for each in access.revoke("2")] == [2]
    assert access.find(other) is None and access.find(anna) and access.find(ben)
    assert [each.number for each in access.revoke("anna")] == [1]
    assert access.find(anna) is None and access.find(ben)
    for which in ("anna", "1", "4", "x", ""):
        with pytest.raises(KeyError):
            access.revoke(which)
    assert [each.state(0) for each in access.tokens()] == ["revoked", "revoked", "active"]


@pytest.mark.promise("access")
def test_first_start_makes_one_token_and_later_ones_none(tmp_path):
    access, token = open_station_access(tmp_path)
    assert (tmp_path / "token").read_text() == token + "\n"
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600
    assert access.find(token).scopes == set(TokenScope)
    access.close()
    again, nothing = open_station_access(tmp_path)
    assert nothing is None and again.find(token) is not None
    again.revoke("admin")
    again.close()
    third, nothing = open_station_access(tmp_path)
    assert nothing is None and third.find(token) is None, "a start must not admit a revoked token"
    third.close()


def test_token_of_an_older_data_directory_is_admitted(tmp_path):
    (tmp_path / "token").write_text("old-token-of-before\n")
    access, made = open_station_access(tmp_path)
    assert made is None and access.find("old-token-of-before").scopes == set(TokenScope)
    access.close()


def test_token_file_that_a_power_cut_emptied_is_made_anew(tmp_path):
    (tmp_path / "token").write_text("")
    access, token = open_station_access(tmp_path)
    assert (tmp_path / "token").read_text() == token + "\n" and access.find(token)
    access.close()


@pytest.mark.promise("access")
def test_first_token_outlives_a_death_before_its_commit(tmp_path, monkeypatch):
    def die(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(AccessFile, "create", die)
        with pytest.raises(KeyboardInterrupt):
            open_station_access(tmp_path)
    access, made = open_station_access(tmp_path)
    assert made is None and access.find((tmp_path / "token").read_text().strip()) is not None
    access.close()


def test_tokens_of_another_process_count_at_once(access, tmp_path):
    code = (
        "import sys; from pathlib import Path; from basestation.rest.access import TokenScope\n"
        "from basestation.station.access_file import AccessFile\n"
        "with AccessFile(Path(sys.argv[1])) as access: print(access.create('eva', [TokenScope.READ]))"
    )
    made = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True)
    token = made.stdout.strip()
    assert access.find(token).name == "eva"
    access.revoke("eva")
    assert access.find(token) is None


def test_many_threads_ask_and_create_at_once(access):
    token, found = access.create("anna", [TokenScope.READ]), []

    def ask(number):
        for _ in range(50):
            found.append(access.find(token) is not None)
        access.create(f"user{number}", [TokenScope.READ])

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 400 and len(access.tokens()) == 9


@pytest.mark.parametrize("content", [b"no database at all" * 100, "newer", "foreign"])
def test_file_that_is_none_of_ours_is_refused(tmp_path, content):
    path = tmp_path / NAME
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        database = sqlite3.connect(path)
        database.execute("CREATE TABLE t (x)")
        pragma = f"application_id = {0x4D4F5441}" if content == "newer" else "application_id = 7"
        database.execute(f"PRAGMA {pragma}")
        database.execute("PRAGMA user_version = 9")
        database.close()
    with pytest.raises(JournalError, match=NAME) as refused:
        open_station_access(tmp_path)
    assert "the next start makes a new one" in refused.value.help


def test_folder_without_a_station_is_refused(tmp_path):
    with pytest.raises(JournalError, match="not the data directory of a station"):
        AccessFile(tmp_path)
    assert os.listdir(tmp_path) == []


@pytest.mark.promise("access")
def test_backup_holds_owners_and_no_tokens(tmp_path):
    network = SmallNetwork(tmp_path / "data")
    access, token = open_station_access(tmp_path / "data")
    number = network.durable.submit(QUERIES[0], network.now_ms, owner="anna")
    assert network.journal.owner(number) == "anna"
    network.end()
    access.close()
    backup(tmp_path / "data", tmp_path / "copy.db")
    kept = (tmp_path / "copy.db").read_bytes()
    assert b"anna" in kept and token.encode() not in kept and digest_of(token) not in kept


@pytest.mark.promise("access")
def test_owner_of_a_query_survives_restarts(tmp_path):
    network = SmallNetwork(tmp_path)
    numbers = [
        network.durable.submit(text, network.now_ms, owner=name)
        for text, name in zip(QUERIES[:3], ("anna", "ben", None), strict=True)
    ]
    network.durable.replace(numbers[0], QUERIES[0], network.now_ms)
    network.restart()
    assert [network.journal.owner(number) for number in (*numbers, 4)] == ["anna", "ben", None, "anna"]
    assert [owner for _, owner in network.journal.queries(0, 10)] == ["anna", "ben", None, "anna"]
    assert network.journal.query_numbers("anna") == (1, 4) and network.journal.query_numbers("eva") is None
    network.end()


def test_file_of_before_owners_is_opened(tmp_path):
    network = SmallNetwork(tmp_path)
    number = network.durable.submit(QUERIES[0], network.now_ms)
    network.journal._db.execute("DROP TABLE owners")
    network.restart()
    assert network.journal.owner(number) is None
    assert network.durable.submit(QUERIES[1], network.now_ms, owner="ben") == 2
    assert [owner for _, owner in network.journal.queries(0, 10)] == [None, "ben"]
    network.end()
