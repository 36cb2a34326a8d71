"""Broker settings: how a station or a gateway reaches an MQTT broker, from a URL or the table `[link]` of a deployment.

    [link]
    url = "mqtts://broker.example/lab54"
    user = "station"
    password = { file = "broker.password" }     # or { env = "BROKER_PASSWORD" }

A secret stands in a file or in an environment variable. The settings hold the reference, and its value is read when a
connection is opened, so no log, snapshot or message can show it.
"""

import ipaddress
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from gateway.errors import TransportError
from gateway.toml import TomlTable

SCHEMES = {"mqtt": 1883, "mqtts": 8883}
PROTOCOLS = ("3.1.1", "5")
PREFIX = "moteloom"
LONGEST_PREFIX = 200
_EXAMPLE = "for example mqtt://127.0.0.1:1883/lab54"


@dataclass(frozen=True, slots=True)
class SecretReference:
    """The name of a file or of an environment variable that holds a secret."""

    file: Path | None = None
    env: str | None = None

    def read(self) -> str:
        """Return the secret. Raises TransportError, without it, where there is none."""
        if self.file is not None:
            try:
                found = self.file.read_text(encoding="utf-8").rstrip("\r\n")
            except (OSError, UnicodeDecodeError) as error:
                reason = getattr(error, "strerror", None) or "not UTF-8"
                raise TransportError(f"the secret in {self.file} cannot be read: {reason}") from error
            if not found:
                raise TransportError(f"the secret in {self.file} is empty")
            return found
        found = os.environ.get(self.env or "", "")
        if not found:
            raise TransportError(f"the environment variable {self.env} holds no secret")
        return found


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """`prefix` begins every topic. Times are in seconds. `may_send_plainly` admits a password without TLS."""

    host: str
    port: int
    prefix: str = PREFIX
    has_tls: bool = False
    user: str | None = None
    password: SecretReference | None = field(default=None, repr=False)
    authority: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    protocol: str = "3.1.1"
    keepalive: int = 30
    may_send_plainly: bool = False

    @property
    def url(self) -> str:
        """The URL without user and password."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'mqtts' if self.has_tls else 'mqtt'}://{host}:{self.port}/{self.prefix}"

    def check(self) -> None:
        """Raise TransportError where a password would cross a network without encryption."""
        if self.password is not None and not (self.has_tls or self.may_send_plainly or is_loopback(self.host)):
            raise TransportError(
                f"a password for {self.host} needs TLS: write mqtts://, or set plain_password = true in [link]"
            )


def is_broker_url(text: str) -> bool:
    """Return whether a text is meant as the URL of a broker, rather than as a serial line."""
    return text.partition("://")[0].lower() in SCHEMES


def parse_broker_url(text: str) -> BrokerSettings:
    """Return the settings that a URL gives. Raises TransportError, without repeating a password."""
    scheme, _, rest = text.partition("://")
    if scheme.lower() not in SCHEMES or not rest:
        raise TransportError(f"expected the URL of a broker, {_EXAMPLE}")
    if "@" in rest:
        raise TransportError("a URL holds no user and no password: write them into the table [link] of the deployment")
    try:
        parts = urlsplit(f"{scheme.lower()}://{rest}")
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise TransportError(f"`{text}` is not the URL of a broker: {error}") from error
    if not host or parts.query or parts.fragment:
        raise TransportError(f"`{text}` is not the URL of a broker; expected host, port and prefix, {_EXAMPLE}")
    prefix = unquote(parts.path).strip("/") or PREFIX
    if reason := _find_prefix_fault(prefix):
        raise TransportError(f"the prefix of `{text}` {reason}")
    return BrokerSettings(host, port or SCHEMES[parts.scheme], prefix, parts.scheme == "mqtts")


def _find_prefix_fault(prefix: str) -> str | None:
    levels = prefix.split("/")
    if len(prefix.encode()) > LONGEST_PREFIX:
        return f"has more than {LONGEST_PREFIX} bytes"
    if prefix.startswith("$"):
        return "begins with `$`, which belongs to the broker"
    if not all(levels) or any(c in "+#" or not c.isprintable() for c in prefix):
        return "needs levels of printable characters without `+` and `#`"
    return None


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine, by its name or address alone."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def read_link_table(top: TomlTable, folder: Path) -> BrokerSettings | None:
    """Read the table `link` of a deployment; files stand beside it in `folder`. None where it is missing or faulty."""
    if (table := top.table("link")) is None:
        return None
    before = len(table.faults)
    found: BrokerSettings | None = None
    if (url := table.text("url")) is not None:
        try:
            found = parse_broker_url(url)
        except TransportError as error:
            table.fault("SN704", str(error), "url")
    user, password = table.text("user", None), _read_secret(table, folder)
    if password is not None and user is None:
        table.fault("SN703", "a `password` needs a `user`", "password")
    authority, certificate, key = (_read_path(table, name, folder) for name in ("ca", "certificate", "key"))
    if (certificate is None) != (key is None):
        table.fault("SN703", "`certificate` and `key` need each other", "key" if certificate is None else "certificate")
    if found is not None and not found.has_tls and (authority or certificate or key):
        table.fault("SN705", "`ca`, `certificate` and `key` need an mqtts:// URL", "url")
    protocol = table.one_of("protocol", "version of MQTT", PROTOCOLS, "3.1.1")
    keepalive = table.integer("keepalive_s", 5, 3_600, 30)
    is_plain = table.get("plain_password", "true or false", lambda value: isinstance(value, bool), False)
    table.close()
    if found is None or len(table.faults) > before:
        return None
    return replace(
        found, user=user, password=password, authority=authority, certificate=certificate, key=key,
        protocol=protocol or "3.1.1", keepalive=keepalive or 30, may_send_plainly=bool(is_plain),
    )  # fmt: skip


def _read_secret(table: TomlTable, folder: Path) -> SecretReference | None:
    if "password" in table and not isinstance(table.values["password"], dict):
        table.read_keys.add("password")
        table.fault("SN704", "`password`: expected { file = … } or { env = … }, found the password itself", "password")
        return None
    if (inner := table.table("password")) is None:
        return None
    file, env = _read_path(inner, "file", folder), inner.text("env", None)
    if ("file" in inner) == ("env" in inner):
        inner.fault("SN705" if file else "SN703", "a password needs either `file` or `env`")
    inner.close()
    return SecretReference(file, env)


def _read_path(table: TomlTable, key: str, folder: Path) -> Path | None:
    name = table.text(key, None)
    return None if name is None else folder / name
