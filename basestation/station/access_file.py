"""AccessFile: the file `access.db` of a data directory, with the tokens of a station and the audit of their use.

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

from basestation.rest.access import AuditEntry, Principal, RequestRecord, TokenScope, include_implied
from basestation.rest.limits import RateLimiter
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
MOST_ENTRIES = 1_000_000
"""Of the audit: the oldest above them are dropped, some 150 MB."""
TRIM_EVERY = 1_000
"""Entries after which that happens, besides each start."""
REFUSALS_PER_SECOND, REFUSALS_AT_ONCE = 5.0, 100
"""Refused requests that become entries of the audit; more are counted in the next one."""
_SCHEMA = f"""
CREATE TABLE tokens (
  number INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, digest BLOB NOT NULL UNIQUE, scopes TEXT NOT NULL,
  created_ms INTEGER NOT NULL, expires_ms INTEGER, revoked_ms INTEGER
) STRICT;
CREATE TABLE actions (
  number INTEGER PRIMARY KEY AUTOINCREMENT, at_ms INTEGER NOT NULL, user TEXT NOT NULL, token INTEGER,
  address TEXT NOT NULL, action TEXT NOT NULL
) STRICT;
CREATE INDEX actions_by_user ON actions (user, number);
CREATE TABLE outcomes (
  number INTEGER PRIMARY KEY REFERENCES actions, at_ms INTEGER NOT NULL, status INTEGER NOT NULL, code TEXT, query INTEGER
) STRICT;
CREATE TRIGGER actions_are_kept BEFORE UPDATE ON actions BEGIN SELECT raise(ABORT, 'the audit is append-only'); END;
CREATE TRIGGER outcomes_are_kept BEFORE UPDATE ON outcomes BEGIN SELECT raise(ABORT, 'the audit is append-only'); END;
CREATE TRIGGER actions_stay BEFORE DELETE ON actions
  WHEN old.number > (SELECT max(number) FROM actions) - {MOST_ENTRIES}
  BEGIN SELECT raise(ABORT, 'the audit is append-only'); END;
CREATE TRIGGER outcomes_stay BEFORE DELETE ON outcomes
  WHEN old.number > (SELECT max(number) FROM actions) - {MOST_ENTRIES}
  BEGIN SELECT raise(ABORT, 'the audit is append-only'); END;
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
        self._lock, self._reading = threading.Lock(), threading.Lock()
        self._refusals = RateLimiter(REFUSALS_PER_SECOND, REFUSALS_AT_ONCE)
        self._uncounted = 0  # refusals that are no entries
        try:
            self._db = sqlite3.connect(self.path, isolation_level="IMMEDIATE", check_same_thread=False)
            self._open()
            # Of its own: a request that looks its token up never waits for the commit of another.
            self._reader = sqlite3.connect(
                f"{self.path.absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False
            )
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
            if application == 0 and self._db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0:
                for statement in _SCHEMA.split(";\n"):
                    self._db.execute(statement)
                self._db.execute(f"PRAGMA application_id = {APPLICATION}")
                self._db.execute(f"PRAGMA user_version = {VERSION}")
            application = self._db.execute("PRAGMA application_id").fetchone()[0]
            version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if (application, version) != (APPLICATION, VERSION):
            raise sqlite3.DatabaseError(f"it has format {version}, this program reads {VERSION}")

    def __enter__(self) -> "AccessFile":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the file back."""
        with self._reading:
            self._reader.close()
        with self._lock:
            self._db.close()

    def find(self, token: str) -> Principal | None:
        """The holder of a token that is active now.

        The time that it takes tells something of the digest of a token at most, and no token can be made from that.
        """
        if len(token) > LONGEST_TOKEN:
            return None
        digest = digest_of(token)
        with self._reading:
            row = self._reader.execute(
                "SELECT digest, number, name, scopes, expires_ms FROM tokens WHERE digest = ? AND revoked_ms IS NULL",
                (digest,),
            ).fetchone()
        if row is None or not hmac.compare_digest(row[0], digest):
            return None
        return _holder_of(*row[1:])

    def holder(self, number: int) -> Principal | None:
        """The holder of the token with a number, if that is active now."""
        with self._reading:
            row = self._reader.execute(
                "SELECT number, name, scopes, expires_ms FROM tokens WHERE number = ? AND revoked_ms IS NULL", (number,)
            ).fetchone()
        return None if row is None else _holder_of(*row)

    def create(
        self,
        name: str,
        scopes: Iterable[TokenScope],
        expires_ms: int | None = None,
        token: str | None = None,
        by: str = "",
    ) -> str:
        """Make a token for a user, which is an action of `by`; returns it. This is the only time that anything has it."""
        token = PREFIX + secrets.token_urlsafe(SECRET_BYTES) if token is None else token
        named = ",".join(scope.value for scope in TokenScope if scope in set(scopes))
        with self._lock, self._db:
            self._db.execute(
                "INSERT INTO tokens (name, digest, scopes, created_ms, expires_ms) VALUES (?, ?, ?, ?, ?)",
                (name, digest_of(token), named, _now_ms(), expires_ms),
            )
            self._insert_action(by, None, "", f"create a token of {name} with {named}", 201)
        return token

    def tokens(self) -> list[TokenRecord]:
        """All tokens that have ever been, the oldest first."""
        with self._reading:
            rows = self._reader.execute(
                "SELECT number, name, scopes, created_ms, expires_ms, revoked_ms FROM tokens ORDER BY number"
            ).fetchall()
        return [TokenRecord(number, name, _scopes_of(scopes), *times) for number, name, scopes, *times in rows]

    def revoke(self, which: str, by: str = "") -> list[TokenRecord]:
        """Revoke the active token with a number, or all active ones of a user, which is an action of `by`; returns them.

        KeyError: there is none.
        """
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
            for number in sorted(chosen):
                self._insert_action(by, None, "", f"revoke token {number}", 200)
        return [each for each in self.tokens() if each.number in chosen]

    # --- the audit ----------------------------------------------------------------------------------------------------

    def begin_action(self, record: RequestRecord) -> int:
        """Keep that an action begins; returns its number. sqlite3.Error: it must not happen."""
        with self._lock, self._db:
            return self._insert_action(record.holder.name, record.holder.token, record.address, record.action)

    def end_action(self, record: RequestRecord, status: int, code: str | None) -> None:
        """Keep the result of an action."""
        with self._lock, self._db:
            self._insert_outcome(record.entry, status, code, record.subject)

    def refuse_action(self, record: RequestRecord, status: int, code: str) -> None:
        """Keep that a request was refused. Of many, some are entries, which count the others."""
        with self._lock:
            if self._refusals.take(""):
                self._uncounted += 1
                return
            more = f" (and {self._uncounted} more were refused before)" if self._uncounted else ""
            with self._db:
                user, token = record.holder.name, record.holder.token or None
                self._insert_action(user, token, record.address, record.action + more, status, code)
            self._uncounted = 0

    def audit(self, after: int, limit: int, user: str | None = None) -> list[AuditEntry]:
        """The entries with numbers above `after`, of a user or of all, the oldest first."""
        of_user = "" if user is None else "user = :user AND"
        statement = (
            "SELECT number, actions.at_ms, user, token, address, action, status, code, query FROM actions"
            f" LEFT JOIN outcomes USING (number) WHERE {of_user} number > :after ORDER BY number LIMIT :limit"
        )
        with self._reading:
            rows = self._reader.execute(statement, {"after": after, "limit": limit, "user": user}).fetchall()
        return [AuditEntry(*row) for row in rows]

    def trim_audit(self) -> int:
        """Drop the oldest entries above `MOST_ENTRIES`; returns how many."""
        with self._lock, self._db:
            return self._drop_oldest()

    def _drop_oldest(self) -> int:
        last = f"(SELECT max(number) FROM actions) - {MOST_ENTRIES}"
        self._db.execute(f"DELETE FROM outcomes WHERE number <= {last}")
        return self._db.execute(f"DELETE FROM actions WHERE number <= {last}").rowcount

    def _insert_action(
        self,
        user: str,
        token: int | None,
        address: str,
        action: str,
        status: int | None = None,
        code: str | None = None,
    ) -> int:
        number = self._db.execute(
            "INSERT INTO actions (at_ms, user, token, address, action) VALUES (?, ?, ?, ?, ?)",
            (_now_ms(), user, token, address, action),
        ).lastrowid
        if status is not None:
            self._insert_outcome(number, status, code, None)
        if number is not None and number % TRIM_EVERY == 0:
            self._drop_oldest()
        return int(number or 0)

    def _insert_outcome(self, number: int | None, status: int, code: str | None, query: int | None) -> None:
        self._db.execute("INSERT INTO outcomes VALUES (?, ?, ?, ?, ?)", (number, _now_ms(), status, code, query))


def open_station_access(folder: Path) -> tuple[AccessFile, str | None]:
    """The tokens of a station that starts, and the first one where it has just been made.

    A data directory of before tokens had names has one in its file `token`; it is the first token then.
    """
    access = AccessFile(folder, create=True)
    access.trim_audit()
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


def _holder_of(number: int, name: str, scopes: str, expires_ms: int | None) -> Principal | None:
    if expires_ms is not None and expires_ms <= _now_ms():
        return None
    return Principal(name, include_implied(_scopes_of(scopes)), number)


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
