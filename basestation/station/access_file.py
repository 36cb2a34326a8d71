"""AccessFile: the file `access.db` of a data directory, with the tokens of a station.

It is not a part of `station.db`: a restored backup must not bring revoked tokens back (docs/decisions/0183). A token is a random
text that is shown once; the file has its SHA-256. Every method may be called from any thread, and from other processes.
"""

import hashlib
import hmac
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from basestation.rest.access import Principal, TokenScope, include_implied
from basestation.station.journal_file import JournalError

NAME = "access.db"
APPLICATION, VERSION = 0x4D4F5441, 1  # "MOTA"
TOKEN_FILE = "token"
"""In the data directory: the first token, readable by its owner only."""
FIRST_USER = "admin"
PREFIX = "moteloom_"
"""Begins every token, so that people and scanners of repositories know what they see."""
SECRET_BYTES = 32
LONGEST_TOKEN = 200
_SCHEMA = """
CREATE TABLE tokens (
  number INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, digest BLOB NOT NULL UNIQUE, scopes TEXT NOT NULL,
  created_ms INTEGER NOT NULL, expires_ms INTEGER, revoked_ms INTEGER
) STRICT;
"""


@dataclass(frozen=True, slots=True)
class TokenRecord:
    """A token without its secret. Times are ms since 1970; `expires_ms` of None is never."""

    number: int
    name: str
    scopes: tuple[TokenScope, ...]
    created_ms: int
    expires_ms: int | None
    revoked_ms: int | None

    def state(self, now_ms: int) -> str:
        """`active`, `expired` or `revoked`."""
        if self.revoked_ms is not None:
            return "revoked"
        return "active" if self.expires_ms is None or now_ms < self.expires_ms else "expired"


class AccessFile:
    """The open file. JournalError where it cannot be used."""

    def __init__(self, folder: Path, create: bool = False) -> None:
        self.path = folder / NAME
        if not self.path.exists():
            if not create:
                raise JournalError(
                    f"{folder} is not the data directory of a station",
                    "name it with --data; `moteloom run` makes one when it starts for the first time",
                )
            os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o600))  # its -wal gets the same mode
        self._lock = threading.Lock()
        try:
            self._db = sqlite3.connect(self.path, isolation_level="IMMEDIATE", check_same_thread=False)
            self._open()
        except sqlite3.Error as why:
            raise JournalError(
                f"access.db cannot be used: {why}",
                f"move {self.path} away: the next start makes a new one, which admits the token in {folder / TOKEN_FILE}",
            ) from why

    def _open(self) -> None:
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")  # two processes may open a new file at once
            application = self._db.execute("PRAGMA application_id").fetchone()[0]
            version = self._db.execute("PRAGMA user_version").fetchone()[0]
            if application == 0 and version == 0:
                for statement in _SCHEMA.split(";\n"):
                    self._db.execute(statement)
                self._db.execute(f"PRAGMA application_id = {APPLICATION}")
                self._db.execute(f"PRAGMA user_version = {VERSION}")
            elif (application, version) != (APPLICATION, VERSION):
                raise sqlite3.DatabaseError(f"it has format {version}, this program reads {VERSION}")

    def __enter__(self) -> "AccessFile":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the file back."""
        with self._lock:
            self._db.close()

    def find(self, token: str) -> Principal | None:
        """The holder of a token that is active now.

        The time that it takes tells something of the digest of a token at most, and no token can be made from that.
        """
        if len(token) > LONGEST_TOKEN:
            return None
        digest = digest_of(token)
        with self._lock:
            row = self._db.execute(
                "SELECT digest, number, name, scopes, expires_ms FROM tokens WHERE digest = ? AND revoked_ms IS NULL",
                (digest,),
            ).fetchone()
        if row is None or not hmac.compare_digest(row[0], digest):
            return None
        if row[4] is not None and row[4] <= _now_ms():
            return None
        return Principal(row[2], include_implied(_scopes_of(row[3])), row[1])

    def create(
        self, name: str, scopes: Iterable[TokenScope], expires_ms: int | None = None, token: str | None = None
    ) -> str:
        """Make a token for a user; returns it. This is the only time that anything has it."""
        token = PREFIX + secrets.token_urlsafe(SECRET_BYTES) if token is None else token
        named = ",".join(scope.value for scope in TokenScope if scope in set(scopes))
        with self._lock, self._db:
            self._db.execute(
                "INSERT INTO tokens (name, digest, scopes, created_ms, expires_ms) VALUES (?, ?, ?, ?, ?)",
                (name, digest_of(token), named, _now_ms(), expires_ms),
            )
        return token

    def tokens(self) -> list[TokenRecord]:
        """All tokens that have ever been, the oldest first."""
        with self._lock:
            rows = self._db.execute(
                "SELECT number, name, scopes, created_ms, expires_ms, revoked_ms FROM tokens ORDER BY number"
            ).fetchall()
        return [TokenRecord(number, name, _scopes_of(scopes), *times) for number, name, scopes, *times in rows]

    def revoke(self, which: str) -> list[TokenRecord]:
        """Revoke the active token with a number, or all active ones of a user, at once; returns them. KeyError: there is none."""
        now_ms = _now_ms()
        active = [each for each in self.tokens() if each.state(now_ms) == "active"]
        chosen = {each.number for each in active if which in (str(each.number), each.name)}
        if not chosen:
            raise KeyError(which)
        with self._lock, self._db:
            self._db.executemany(
                "UPDATE tokens SET revoked_ms = ? WHERE number = ? AND revoked_ms IS NULL",
                [(now_ms, number) for number in chosen],
            )
        return [each for each in self.tokens() if each.number in chosen]


def open_station_access(folder: Path) -> tuple[AccessFile, str | None]:
    """The tokens of a station that starts, and the first one where it has just been made.

    A data directory of before tokens had names has one in its file `token`; it is the first token then.
    """
    access = AccessFile(folder, create=True)
    if access.tokens():
        return access, None
    path = folder / TOKEN_FILE
    if path.exists() and (token := path.read_text(encoding="utf-8").strip()):
        access.create(FIRST_USER, [TokenScope.ADMIN], token=token)
        return access, None
    token = PREFIX + secrets.token_urlsafe(SECRET_BYTES)
    _write_secret(path, token)  # before the file knows it: after a power cut between the two it is the first one still
    access.create(FIRST_USER, [TokenScope.ADMIN], token=token)
    return access, token


def forget_first_token(folder: Path, access: AccessFile) -> bool:
    """Remove the file with the first token if that is admitted no more; whether it did."""
    path = folder / TOKEN_FILE
    if not path.exists() or access.find(path.read_text(encoding="utf-8").strip()) is not None:
        return False
    path.unlink()
    return True


def digest_of(token: str) -> bytes:
    """The SHA-256 of a token. A token has 256 random bits, so a slow hash would add nothing."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def _write_secret(path: Path, token: str) -> None:
    staged = path.with_name(f"{path.name}.part")
    staged.unlink(missing_ok=True)
    with os.fdopen(os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(token + "\n")
        file.flush()
        os.fsync(file.fileno())  # a power cut leaves a whole token or none
    os.replace(staged, path)


def _scopes_of(text: str) -> tuple[TokenScope, ...]:
    return tuple(TokenScope(name) for name in text.split(",") if name)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
