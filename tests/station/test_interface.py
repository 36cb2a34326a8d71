"""How users reach a station: TLS from files that are read again, the rule for other machines, and the tables of the deployment."""

import argparse
import os
import shutil
import socket
import ssl
import subprocess

import pytest

from basestation.cli.station_arguments import client_of
from basestation.cli.station_interface import Interface, add_interface, publish_certificate, read_interface
from basestation.rest.access import TokenScope
from basestation.rest.limits import RequestLimits
from basestation.station.certificate import Certificate
from basestation.station.rest_server import RestServer
from gateway.errors import TransportError
from gateway.toml import ConfigError
from innet.deployment.toml_reader import read_deployment
from moteloom.client import StationClient, StationError
from moteloom.station_address import Address
from tests.docs.pages import ROOT
from tests.rest.running_station import TOKEN, RunningStation
from tests.station.certificates import make_certificate


@pytest.fixture(scope="module")
def files(tmp_path_factory, need):
    need("openssl")
    folder = tmp_path_factory.mktemp("certificates")
    return {name: make_certificate(folder, name, kind) for name, kind in (("old", "rsa:2048"), ("new", "ec"))}


@pytest.fixture
def pair(files, tmp_path):
    """Copies of the old files, which a test may replace."""
    return [shutil.copy(source, tmp_path / source.name) for source in files["old"]]


def served(url):
    """The certificate that a server shows to a new connection."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    host, port = url.removeprefix("https://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as plain, context.wrap_socket(plain) as wire:
        return ssl.DER_cert_to_PEM_cert(wire.getpeercert(binary_form=True)), wire.version()


def options(data, **changed):
    return argparse.Namespace(**{"url": None, "token": None, "ca": None, "data": data} | changed)


@pytest.fixture
def station(tmp_path):
    with RunningStation(tmp_path / "data") as running:
        yield running


@pytest.mark.promise("access")
def test_certificate_is_read_again_when_it_changes(station, files, pair):
    certificate, key = Certificate(*pair), pair[1]
    with RestServer(station.control, station.tokens, certificate=certificate) as server:
        old, version = served(server.url)
        assert old == files["old"][0].read_text() and version in ("TLSv1.2", "TLSv1.3")
        shutil.copy(files["new"][0], pair[0])  # the key is not there yet
        assert served(server.url)[0] == old
        shutil.copy(files["new"][1], key)
        assert served(server.url)[0] == files["new"][0].read_text()
        os.remove(key)
        assert served(server.url)[0] == files["new"][0].read_text()
        shutil.copy(files["old"][1], key)
        shutil.copy(files["old"][0], pair[0])
        assert served(server.url)[0] == old


@pytest.mark.promise("access")
def test_commands_trust_the_certificate_of_their_own_station(station, files, pair, tmp_path):
    data = tmp_path / "data"
    interface = Interface("127.0.0.1", 0, Certificate(*pair), RequestLimits(), True)
    (data / "token").write_text(TOKEN)
    with RestServer(station.control, station.tokens, certificate=interface.certificate) as server:
        (data / "url").write_text(server.url + "\n")
        publish_certificate(interface, data)
        assert client_of(options(data)).get("/v1/queries")["queries"] == []
        for wrong in (
            options(tmp_path, url=server.url, token=TOKEN),  # the system's authorities
            options(tmp_path, url=server.url, token=TOKEN, ca=files["new"][0]),
            options(tmp_path, url=server.url, token=TOKEN, ca=files["old"][0]),  # its name is another
        ):
            with pytest.raises(StationError, match=r"certificate verify failed|CERTIFICATE_VERIFY_FAILED"):
                client_of(wrong).get("/v1/queries")
        with pytest.raises(StationError, match="no station answers"):
            client_of(options(data, url=server.url.replace("https", "http"), token=TOKEN)).get("/v1/queries")
        os.remove(data / "certificate.pem")
        os.symlink(files["new"][0], data / "certificate.pem")
        with pytest.raises(StationError, match=r"(?i)certificate.verify.failed"):
            client_of(options(data)).get("/v1/queries")


def test_certificate_for_the_address_is_trusted_by_its_authority(station, tmp_path, need):
    need("openssl")
    files = make_certificate(tmp_path, "local", "ec", common_name="localhost")
    with RestServer(station.control, station.tokens, certificate=Certificate(*files)) as server:
        url = server.url.replace("127.0.0.1", "localhost")
        assert client_of(options(tmp_path, url=url, token=TOKEN, ca=files[0])).get("/v1/extents")["extents"]


@pytest.mark.parametrize("fault", ["missing", "other key", "no PEM", "password", "swapped"])
def test_certificate_that_cannot_be_used_is_refused(files, pair, tmp_path, fault):
    certificate, key = pair
    if fault == "missing":
        os.remove(key)
    elif fault == "other key":
        key = files["new"][1]
    elif fault == "no PEM":
        certificate.write_text("no certificate")
    elif fault == "swapped":
        certificate, key = key, certificate
    else:
        subprocess.run(["openssl", "rsa", "-aes256", "-passout", "pass:secret", "-in", files["old"][1], "-out", key],
                       check=True, capture_output=True)  # fmt: skip
    with pytest.raises(TransportError, match=r"cannot be used: .+"):
        Certificate(certificate, key)


def parse(*arguments):
    parser = argparse.ArgumentParser()
    add_interface(parser)
    parser.add_argument("-c", "--config")
    return parser.parse_args([str(each) for each in arguments])


DEPLOYMENT = (ROOT / "examples/roadbridge/deployment.toml").read_text()


@pytest.fixture
def deployment(tmp_path, files):
    """A function that writes a deployment with more tables, beside a certificate and its key."""
    shutil.copy(ROOT / "examples/roadbridge/schema.sneeql", tmp_path)
    for source, name in zip(files["old"], ("station.pem", "station.key"), strict=True):
        shutil.copy(source, tmp_path / name)

    def write(text):
        path = tmp_path / "deployment.toml"
        path.write_text(f"{DEPLOYMENT}\n{text}\n")
        return path

    return write


@pytest.mark.promise("access")
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "station.example", ""])
def test_other_machines_need_tls_or_an_explicit_setting(files, host):
    with pytest.raises(TransportError, match=r"unencrypted: name --certificate FILE --key FILE, or say --no-tls"):
        read_interface(parse("--host", host or "0.0.0.0"))
    with pytest.raises(TransportError, match="this machine only"):
        read_interface(parse("--host", host or "0.0.0.0", "--no-token", "--no-tls"))
    certificate, key = files["old"]
    tls = read_interface(parse("--host", host or "0.0.0.0", "--certificate", certificate, "--key", key))
    assert f"TLS by {certificate}" in tls.describe(ROOT)
    plain = read_interface(parse("--host", host or "0.0.0.0", "--no-tls"))
    assert "NO TLS: tokens and results cross the network unencrypted" in plain.describe(ROOT)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.0.0.2"])
def test_this_machine_needs_no_tls(host):
    assert read_interface(parse("--host", host)).describe(ROOT).endswith("no TLS")
    assert "without a token" in read_interface(parse("--host", host, "--no-token")).describe(ROOT)


def test_arguments_come_before_the_deployment(deployment):
    path = deployment(
        '[rest]\nhost = "0.0.0.0"\nport = 9000\ncertificate = "station.pem"\nkey = "station.key"\n'
        "[limits]\nrequests_per_second = 2.5\nburst = 7\nopen_requests = 3\nbody_kb = 20\nupload_mb = 5"
    )
    assert read_deployment(path).name
    found = read_interface(parse("-c", path))
    assert (found.host, found.port, found.certificate.certificate) == ("0.0.0.0", 9000, path.parent / "station.pem")
    assert found.limits == RequestLimits(2.5, 7, 3, 20_000, 5_000_000)
    found = read_interface(parse("-c", path, "--host", "127.0.0.1", "--port", "0"))
    assert (found.host, found.port) == ("127.0.0.1", 0)
    assert read_interface(parse("-c", deployment('[rest]\nhost = "::"\nno_tls = true'))).host == "::"
    assert read_interface(parse("-c", deployment(""))) == read_interface(parse())
    with pytest.raises(TransportError, match="need each other"):
        read_interface(parse("--key", "x"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[rest]\nhots = 1", "unknown key `hots` in `rest`"),
        ("[rest]\nport = 70000", "`port`: expected a whole number from 0 to 65,535"),
        ('[rest]\nkey = "a"', "`key` needs `certificate`"),
        ('[rest]\ncertificate = "a"', "`certificate` needs `key`"),
        ("[rest]\nno_tls = 1", "`no_tls`: expected true or false"),
        ("[limits]\nburst = 0", "`burst`: expected a whole number from 1"),
        ('[limits]\nrequests_per_second = "many"', "`requests_per_second`: expected a number"),
        ("[limits]\nbody = 1", "unknown key `body` in `limits`"),
        ("rest = 1", "`rest`: expected a table"),
    ],
)
@pytest.mark.promise("bad-files")
def test_wrong_tables_are_shown_with_their_place(deployment, text, message):
    top = text.startswith("rest")
    path = deployment("" if top else text)
    if top:
        path.write_text(f"{text}\n{path.read_text()}")
    with pytest.raises(ConfigError) as refused:
        read_deployment(path)
    assert message in str(refused.value) and "deployment.toml:" in str(refused.value)


@pytest.mark.promise("access")
def test_canary_route_needs_a_token_over_tls_too(station, pair):
    station.tokens.create("reader", [TokenScope.READ])
    with RestServer(station.control, station.tokens, certificate=Certificate(*pair)) as server:
        with pytest.raises(StationError, match="asks for a token"):
            StationClient(Address(server.url, "wrong", pair[0], has_own_certificate=True)).get("/v1/queries")
        known = StationClient(Address(server.url, TOKEN, pair[0], has_own_certificate=True))
        assert known.get("/v1/queries") == {"queries": [], "next": 0}
