"""A station whose disk is full or becomes read-only: a process of its own, on a small file system in a mount namespace.

A tmpfs of a few megabytes needs no right but that of a user namespace. ext4 as it is after an error of the disk needs root and a
loop device: another file system refuses to become read-only while the station has its files open.
"""

import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.conftest import FULL, ROOT

SCENARIO = ROOT / "examples/roadbridge/night.scenario.toml"
QUERY = "SELECT COUNT(*) AS n FROM road [NOW]"
SIZE_MB = 6
pytestmark = pytest.mark.mounts


class MountedStation:
    """Runs `moteloom run` on a file system that only its processes see, mounted at `folder` by a shell command."""

    def __init__(self, folder: Path, mount: str, namespace: tuple[str, ...]) -> None:
        self.folder, self.log, self._mount, self._namespace = folder, folder.with_suffix(".log"), mount, namespace
        folder.mkdir()
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        holder = ["unshare", *namespace, "--propagation", "private", "sh", "-c", f"{mount} && echo mounted && read end"]
        self._holder = subprocess.Popen(holder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._holder.stdout.readline() == "mounted\n"
        self.outside = Path(f"/proc/{self._holder.pid}/root{folder}")  # the folder as the station sees it
        self.process = None

    def enter(self, *command, **more):
        """Start a command that sees the file system."""
        user = ("-U", "--preserve-credentials") if "-r" in self._namespace else ()
        return subprocess.Popen(["nsenter", "-t", str(self._holder.pid), "-m", *user, *map(str, command)], **more)

    def start(self) -> None:
        with open(self.log, "a") as log:
            self.process = self.enter(
                sys.executable, "-m", "gateway.cli", "run", "--simulate", SCENARIO, "--speed", 20, "--data", self.folder / "data",
                "--port", self.port, "--no-token", cwd=ROOT, stderr=log,
            )  # fmt: skip
        self.wait(lambda: self.process.poll() is not None or self.get("health") is not None, 60)
        assert self.process.poll() is None, self.log.read_text()

    def end(self, number=signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(timeout=60)

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.end(signal.SIGKILL)
        self._holder.communicate("end\n")

    def get(self, path, body=None):
        """(status, JSON) of a route; None where no station listens."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/v1/{path}", data=body)
        try:
            with urllib.request.urlopen(request, timeout=40) as found:
                return found.status, json.load(found)
        except urllib.error.HTTPError as refused:
            return refused.code, json.load(refused)
        except (urllib.error.URLError, OSError):
            return None

    def wait(self, is_met, seconds):
        """Wait until a condition is met; returns what it found."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if found := is_met():
                return found
            time.sleep(0.05)
        raise AssertionError(self.log.read_text())

    def updates(self):
        """All updates of query 1 that are shown."""
        return self.get("queries/1/results?after=0&limit=10000")[1]["updates"]

    def has_answers(self, above):
        return lambda: len(self.updates()) > above


def check_answers(updates) -> None:
    """Numbers have no gap, and each window that no later reading can change has all sites that were due."""
    assert [update["number"] for update in updates] == list(range(1, len(updates) + 1))
    newest = {update["tick"]: update["coverage"]["road"] for update in updates}
    ticks = sorted(newest)
    assert all(after - before == ticks[1] - ticks[0] for before, after in itertools.pairwise(ticks))
    covered = [newest[tick] for tick in ticks[:-4]]
    assert covered and all(used == due for used, due in covered[2:]), covered


@pytest.fixture
def tmpfs(tmp_path, need):
    need("unshare", "nsenter", "mount")
    namespace = ("-r", "-m")
    allowed = subprocess.run(
        ["unshare", *namespace, "mount", "-t", "tmpfs", "tmpfs", tmp_path], capture_output=True, text=True
    )
    if allowed.returncode:
        pytest.skip(f"this machine allows no mount namespace: {allowed.stderr.strip()}")
    folder = tmp_path / "disk"
    station = MountedStation(folder, f"mount -t tmpfs -o size={SIZE_MB}m tmpfs {folder}", namespace)
    yield station
    station.close()


@pytest.mark.promise("durable")
@pytest.mark.timeout(300)
def test_station_on_a_full_disk_goes_on_when_there_is_room(tmpfs):
    tmpfs.start()
    assert tmpfs.get("queries", QUERY.encode())[0] == 201
    tmpfs.wait(tmpfs.has_answers(3), 60)
    with open(tmpfs.outside / "filler", "wb", buffering=0) as filler, pytest.raises(OSError, match="No space left"):
        while True:
            filler.write(bytes(4_096))
    status, health = tmpfs.wait(lambda: (found := tmpfs.get("health"))[0] == 503 and found, 60)
    assert any("disk is full" in problem for problem in health["problems"]) and not health["takes_commands"]
    shown = len(tmpfs.updates())
    status, problem = tmpfs.get("queries", b"SELECT light FROM road [NOW]")
    assert (status, problem["title"]) == (503, "nothing can be kept now: database or disk is full")
    time.sleep(1.5)  # half a minute of the motes
    assert tmpfs.get("health")[0] == 503 and len(tmpfs.updates()) == shown
    assert len(tmpfs.get("queries")[1]["queries"]) == 1
    (tmpfs.outside / "filler").unlink()
    tmpfs.wait(lambda: tmpfs.get("health")[0] == 200, 30)
    tmpfs.wait(tmpfs.has_answers(shown + 6), 60)
    kinds = [event["event"] for event in tmpfs.get("events?limit=1000")[1]["events"]]
    assert kinds.index("journal fails") < kinds.index("journal works again")
    assert "journal fails" in tmpfs.log.read_text()
    check_answers(tmpfs.updates())
    assert tmpfs.end() == 0


@pytest.fixture
def ext4(tmp_path, need):
    """ext4 on a loop device, which becomes read-only after an error."""
    need("unshare", "nsenter", "mount", "umount", "mkfs.ext4", "e2fsck", "findmnt")
    if os.geteuid() or not os.access("/dev/loop-control", os.W_OK):
        pytest.skip("only root can mount ext4 on a loop device")
    folder, image = tmp_path / "disk", tmp_path / "image"
    with open(image, "wb") as file:
        file.truncate(64_000_000)
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    station = MountedStation(folder, f"mount -o loop,errors=remount-ro {image} {folder}", ("-m",))
    yield station
    station.close()


if FULL:  # a station of its own each

    @pytest.mark.timeout(300)
    def test_station_on_a_read_only_disk_says_so_and_ends(tmpfs):
        tmpfs.start()
        assert tmpfs.get("queries", QUERY.encode())[0] == 201
        assert tmpfs.end() == 0
        assert tmpfs.enter("mount", "-o", "remount,ro", tmpfs.folder).wait() == 0
        for name in ("data", "other"):
            refused = tmpfs.enter(
                sys.executable, "-m", "gateway.cli", "run", "--simulate", SCENARIO, "--data", tmpfs.folder / name, "--port", tmpfs.port,
                cwd=ROOT, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
            _, said = refused.communicate(timeout=60)
            [line] = [line for line in said.splitlines() if "level=info" not in line]
            assert refused.returncode == 1 and line.startswith("moteloom: ") and str(tmpfs.folder / name) in line, said
            assert "ead-only file system" in line, said
        assert tmpfs.enter("mount", "-o", "remount,rw", tmpfs.folder).wait() == 0
        tmpfs.start()
        assert [query["number"] for query in tmpfs.get("queries")[1]["queries"]] == [1]

    @pytest.mark.promise("durable")
    @pytest.mark.timeout(300)
    def test_station_shows_nothing_that_a_failed_disk_lacks(ext4):
        ext4.start()
        assert ext4.get("queries", QUERY.encode())[0] == 201
        ext4.wait(ext4.has_answers(3), 60)
        source = (
            ext4.enter("findmnt", "-no", "SOURCE", ext4.folder, stdout=subprocess.PIPE, text=True)
            .communicate()[0]
            .strip()
        )
        Path(f"/sys/fs/ext4/{Path(source).name}/trigger_fs_error").write_text("1")
        _, health = ext4.wait(lambda: (found := ext4.get("health"))[0] == 503 and found, 60)
        assert any("nothing can be committed" in problem for problem in health["problems"])
        shown = ext4.updates()
        assert ext4.get("queries", b"SELECT light FROM road [NOW]")[0] == 503
        time.sleep(1.5)  # half a minute of the motes
        assert ext4.get("health")[0] == 503 and ext4.updates() == shown
        ext4.end()
        for command in (("umount", ext4.folder), ("e2fsck", "-p", ext4.folder.parent / "image")):
            assert ext4.enter(*command, stdout=subprocess.DEVNULL).wait() in (0, 1)
        assert ext4.enter("mount", "-o", "loop", ext4.folder.parent / "image", ext4.folder).wait() == 0
        ext4.start()
        ext4.wait(ext4.has_answers(len(shown) + 2), 60)
        after = ext4.updates()
        assert after[: len(shown)] == shown and [each["number"] for each in after] == list(range(1, len(after) + 1))
        assert len(ext4.get("queries")[1]["queries"]) == 1
