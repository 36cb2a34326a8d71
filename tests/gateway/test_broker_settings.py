"""The URL of a broker and the table [link]: each fault has its place, and no secret is ever shown."""

from dataclasses import replace
from pathlib import Path

import pytest

from gateway.broker_settings import (
    BrokerSettings,
    SecretReference,
    is_broker_url,
    parse_broker_url,
    read_link_table,
)
from gateway.errors import TransportError
from gateway.source import Source
from gateway.toml import ConfigError, read_toml


@pytest.mark.parametrize(
    ("url", "settings"),
    [
        ("mqtt://127.0.0.1", BrokerSettings("127.0.0.1", 1883)),
        ("mqtt://broker.example:1884/lab54/", BrokerSettings("broker.example", 1884, "lab54")),
        ("MQTTS://broker.example/a/b%20c", BrokerSettings("broker.example", 8883, "a/b c", True)),
        ("mqtt://[::1]/x", BrokerSettings("::1", 1883, "x")),
    ],
)
def test_url_names_host_port_and_prefix(url, settings):
    assert parse_broker_url(url) == settings and is_broker_url(url)
    assert parse_broker_url(settings.url) == settings


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("mqtt://", "for example mqtt://127.0.0.1:1883/lab54"),
        ("http://broker", "expected the URL of a broker"),
        ("mqtt:///prefix", "expected host, port and prefix"),
        ("mqtt://broker:99999/x", "Port out of range"),
        ("mqtt://broker/a?b=c", "expected host, port and prefix"),
        ("mqtt://broker/a//b", "needs levels"),
        ("mqtt://broker/a/%23", "without `+` and `#`"),
        ("mqtt://broker/$SYS", "belongs to the broker"),
        (f"mqtt://broker/{'x' * 201}", "more than 200 bytes"),
        ("mqtt://me:s3cret@broker/x", "table [link]"),
        ("mqtt://me:s3/cret@broker/x", "table [link]"),
    ],
)
def test_wrong_url_says_what_is_expected(url, words):
    with pytest.raises(TransportError) as refused:
        parse_broker_url(url)
    assert words in str(refused.value) and "s3" not in str(refused.value)


@pytest.mark.parametrize("text", ["/dev/ttyUSB0", "socket://h:1", "loop://", "COM3"])
def test_serial_lines_are_no_broker(text):
    assert not is_broker_url(text)


FULL = """
[link]
url = "mqtts://broker.example/lab54"
user = "station"
password = { file = "secret" }
ca = "/etc/ca.pem"
certificate = "own.pem"
key = "own.key"
protocol = "5"
keepalive_s = 60
"""


def read(text):
    top = read_toml(Source(text, "net.toml"))
    found = read_link_table(top, Path("/etc/net"))
    if top.faults:
        raise ConfigError(top.faults)
    return found


def test_table_gives_every_setting_and_files_stand_beside_it():
    assert read("") is None
    assert read(FULL) == BrokerSettings(
        "broker.example", 8883, "lab54", True, "station", SecretReference(Path("/etc/net/secret")),
        Path("/etc/ca.pem"), Path("/etc/net/own.pem"), Path("/etc/net/own.key"), "5", 60,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('url = "mqtts://broker.example/lab54"', "", "SN703: `link` has no `url`"),
        ('"mqtts://broker.example/lab54"', '"mqtt://broker.example"', "SN705: `ca`, `certificate` and `key` need"),
        ('user = "station"', "", "SN703: a `password` needs a `user`"),
        ('{ file = "secret" }', '"s3cret"', "SN704: `password`: expected { file = … } or { env = … }"),
        ('{ file = "secret" }', "112233", "SN704: `password`: expected { file = … } or { env = … }"),
        ('{ file = "secret" }', "{}", "SN703: a password needs either `file` or `env`"),
        ('{ file = "secret" }', '{ file = "a", env = "B" }', "SN705: a password needs either"),
        ('{ file = "secret" }', '"s3cret', "SN701"),
        ("broker.example", "me:s3cret@broker.example", "SN704: a URL holds no user and no password"),
        ('key = "own.key"', "", "SN703: `certificate` and `key` need each other"),
        ('"5"', '"3"', "SN706: unknown version of MQTT `3`"),
        ("60", "2", "SN704: `keepalive_s`: expected a whole number from 5 to 3,600"),
        ("keepalive_s", "keepalive", "did you mean `keepalive_s`?"),
    ],
)
def test_fault_of_the_table_is_named_without_its_secret(old, new, words):
    assert old in FULL
    with pytest.raises(ConfigError) as refused:
        read(FULL.replace(old, new))
    message = str(refused.value)
    assert words in message and "net.toml:" in message
    assert "s3cret" not in message and "112233" not in message
    assert "s3cret" not in repr(refused.value.diagnostics)


def test_secret_is_read_when_it_is_needed(tmp_path, monkeypatch):
    file = tmp_path / "secret"
    with pytest.raises(TransportError, match=r"secret cannot be read: No such file"):
        SecretReference(file).read()
    file.write_text("\n")
    with pytest.raises(TransportError, match="is empty"):
        SecretReference(file).read()
    file.write_text("s3cret\n")
    assert SecretReference(file).read() == "s3cret"
    monkeypatch.setenv("BROKER_PASSWORD", "other")
    assert SecretReference(env="BROKER_PASSWORD").read() == "other"
    file.write_bytes(b"\xff")
    with pytest.raises(TransportError, match="not UTF-8"):
        SecretReference(file).read()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_password_crosses_no_network_in_plain_text(host):
    settings = BrokerSettings("broker.example", 1883, user="a", password=SecretReference(env="X"))
    with pytest.raises(TransportError, match=r"needs TLS: write mqtts://"):
        settings.check()
    for safe in (
        replace(settings, host=host),
        replace(settings, has_tls=True),
        replace(settings, may_send_plainly=True),
        replace(settings, password=None),
    ):
        safe.check()
