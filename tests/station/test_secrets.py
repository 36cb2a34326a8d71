"""Secrets: the first token is shown once at a terminal; a canary in each place that holds a secret appears nowhere else."""

import json
import os
import pty
import shutil
import signal
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

from gateway.cli import main
from tests.docs.pages import ROOT
from tests.station.certificates import make_certificate

SCENARIO = ROOT / "examples/roadbridge/night.scenario.toml"
PASSWORD = "canary-of-the-broker-password"
TYPED = "canary-of-a-wrong-token"
QUERY = "SELECT COUNT(*) AS n FROM road [NOW]"


class Station:
    """`moteloom run` with TLS and a broker's password, in a process."""

    def __init__(self, folder):
        self.data, self.log = folder / "data", folder / "log"
        shutil.copytree(ROOT / "examples/roadbridge", folder / "roadbridge")
        self.config = folder / "roadbridge/deployment.toml"
        (folder / "roadbridge/password").write_text(PASSWORD)
        self.certificate, self.key = make_certificate(folder / "roadbridge", "station")
        with self.config.open("a") as file:
            file.write(
                '\n[link]\nurl = "mqtts://127.0.0.1:1/road"\nuser = "station"\npassword = { file = "password" }\n'
                '[rest]\ncertificate = "station.pem"\nkey = "station.key"\n'
            )
        self.process = None

    def start(self, stderr, *more):
        (self.data / "url").unlink(missing_ok=True)
        command = [
            "run",
            "-c",
            self.config,
            "--simulate",
            SCENARIO,
            "--speed",
            "100",
            "--port",
            "0",
            "--data",
            self.data,
        ]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gateway.cli", *map(str, [*command, *more])], stderr=stderr
        )
        end = time.monotonic() + 60
        while not (self.data / "url").exists() or not (self.data / "url").read_text().endswith("\n"):
            assert self.process.poll() is None and time.monotonic() < end, self.log.exists() and self.log.read_text()
            time.sleep(0.05)
        return (self.data / "url").read_text().strip()

    def stop(self):
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            assert self.process.wait(timeout=60) == 0


@pytest.fixture
def station(tmp_path, need):
    need("openssl")
    made = Station(tmp_path)
    yield made
    made.stop()


def ask(url, method, path, headers, body=None):
    """Head and body of an answer as bytes, and its cookie."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    request = urllib.request.Request(url + path, data=body, method=method, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60, context=context) as answer:
            return answer.read(), dict(answer.headers)
    except urllib.error.HTTPError as refused:
        return refused.read(), dict(refused.headers)


def read_terminal(descriptor):
    """Everything that was written to a pseudo-terminal that is closed at its other end."""
    found = b""
    while True:
        try:
            part = os.read(descriptor, 65_536)
        except OSError:  # its only writer has ended
            return found.decode()
        if not part:
            return found.decode()
        found += part


@pytest.mark.promise("access")
@pytest.mark.timeout(300)
def test_secrets_stand_in_their_places_only(station, tmp_path, capfd):
    def run(*arguments):
        """Everything that a command prints."""
        capfd.readouterr()
        try:
            main([str(each) for each in arguments])
        except SystemExit:  # argparse
            pass
        return "".join(capfd.readouterr()).encode()

    # The first start shows the first token at its terminal, once.
    terminal, end = pty.openpty()
    station.start(end)
    os.close(end)
    token = (station.data / "token").read_text().strip()
    assert (station.data / "token").stat().st_mode & 0o777 == 0o600
    station.stop()
    shown = read_terminal(terminal)
    os.close(terminal)
    assert shown.count(token) == 1 and f"TLS by {station.certificate}" in shown

    # A later start shows none, and neither does anything else.
    with open(station.log, "w") as log:
        url = station.start(log, "--log", "json", "-v")
    at = ("--data", station.data)
    made = json.loads(run("token", "create", "--name", "anna", "--scope", "submit", "-o", "json", *at).splitlines()[0])
    anna = made["token"]
    link = run("login", *at).decode().splitlines()[0]
    ticket = link.partition("#")[2]
    here = {"origin": url}
    _, headers = ask(url, "POST", "/v1/session", here, ticket.encode())
    cookie = headers["set-cookie"].partition(";")[0].partition("=")[2]
    assert len(cookie) == 43 and len(ticket) == 43

    seen = [run("query", "submit", QUERY, *at)]
    with_token, with_cookie = {"authorization": f"Bearer {anna}"}, {"cookie": f"moteloom_session={cookie}", **here}
    for headers in (
        with_token,
        with_cookie,
        {"authorization": f"Bearer {TYPED}"},
        {"authorization": f"Bearer {token[:-1]}"},
    ):
        for method, path in (
            ("GET", "/v1/queries"), ("GET", "/v1/queries/1/results?after=0"), ("GET", "/v1/audit"), ("GET", "/v1/motes"),
            ("GET", "/v1/events"), ("GET", "/v1/health"), ("GET", "/v1/metrics"), ("GET", "/v1/openapi.json"),
            ("GET", f"/v1/queries?token={TYPED}"), ("POST", "/v1/queries"), ("POST", "/v1/explain"), ("POST", "/v1/session"),
            ("GET", "/login"), ("GET", "/nowhere"),
        ):  # fmt: skip
            body, head = ask(url, method, path, headers, QUERY.encode() if method == "POST" else None)
            seen += [body, repr(head).encode()]
    for arguments in (
        ("token", "list", *at), ("token", "list", "-o", "json", *at), ("audit", *at), ("audit", "-o", "json", *at),
        ("query", "list", "-o", "json", *at), ("query", "list", "--token", TYPED, *at), ("events", *at), ("motes", *at),
        ("config", "check", station.config), ("config", "show", "--origin", station.config), ("doctor", "-c", station.config, *at),
        ("backup", tmp_path / "copy.db", *at),
    ):  # fmt: skip
        seen.append(run(*arguments))
    station.stop()
    seen += [station.log.read_bytes(), (tmp_path / "copy.db").read_bytes()]
    links = ("token", "certificate.pem")
    seen += [path.read_bytes() for path in station.data.rglob("*") if path.is_file() and path.name not in links]
    key = station.key.read_text().splitlines()[1]
    canaries = {
        "first token": token,
        "token": anna,
        "ticket": ticket,
        "cookie": cookie,
        "typed": TYPED,
        "password": PASSWORD,
        "key": key,
    }
    found = {name for name, canary in canaries.items() for each in seen if canary.encode() in each}
    assert not found and len(seen) > 100
    assert b'"ok"' in b"".join(seen) and b"station ready" in b"".join(seen), "there was something to look through"
