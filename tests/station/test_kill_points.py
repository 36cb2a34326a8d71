"""A station that is killed by SIGKILL at each named point, and at random ones, answers as one that was never disturbed.

before commit ─ commit ─ after commit ─ before acknowledgement ─ send ─ after acknowledgement
before snapshot ─ write ─ before cut ─ cut ─ after cut ─ commit ─ after snapshot
"""

import json
import os
import subprocess
import sys

import pytest

from basestation.station.journal import Journal
from tests.conftest import ROOT, count_of
from tests.station.killed_station import NAMED
from tests.station.small_network import LOOK_MS, QUERIES, SmallNetwork

SETTLED_MS = 20_000
"""Motes have their programs by then; a frame that is lost before begins a schedule later."""
ROUND_MS, SNAPSHOT_MS, END_MS = 11_000, 3_000, 10_000
MOST_ROUNDS = 4
"""A point is passed twice within them: motes send every ten seconds, and again after ten without an acknowledgement."""

KILLS = int(os.environ.get("MOTELOOM_KILLS") or count_of(10, 48))
LONGEST_RUN = 50
"""Kills of one station; each of its rounds submits a query, so more kills are those of several stations."""
RUNS = -(-KILLS // LONGEST_RUN)


class KilledError(Exception):
    """The process of the station has ended before it answered."""


class KilledNetwork(SmallNetwork):
    """Two motes in this process, and their station in another. Bytes that no commit has kept come again, as from a radio."""

    def start(self) -> None:
        self.kills, self.looks, self.rounds, self.begin_ms = [], [], 0, self.now_ms
        self.run("none", 0)

    def run(self, point, count) -> None:
        """Start the process of the station, and give it what came since its last commit."""
        self.point = point
        self.child = subprocess.Popen(
            [sys.executable, "-m", "tests.station.killed_station", str(self.folder), point, str(count)],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        last = self._read()
        for look in [each for each in self.looks if each["now_ms"] > last]:
            self._request(look)

    def end(self) -> None:
        self.child.kill()
        self.child.communicate()

    def ask(self, request):
        """Let the station do something, however often it is killed; returns the answer."""
        while True:
            try:
                return self._request(request)
            except KilledError:
                self.kills.append(self.point)
                self.child.communicate()
                self.run("none", 0)
                if "chunk" in request:
                    return None  # it was among those that came since the last commit

    def arm(self, point, count) -> None:
        """From now on the station is to be killed at a point."""
        self.end()
        self.run(point, count)

    def look(self, kills_now=False) -> None:
        """Let motes and station live for one look."""
        self.now_ms += LOOK_MS
        self.network.run_until(self.now_ms)
        self.looks.append({"now_ms": self.now_ms, "chunk": self.wire.receive().hex()})
        if kills_now:
            self.point = "random"
            self.child.kill()
        self.ask(self.looks[-1])

    def _request(self, request):
        try:
            print(json.dumps(request), file=self.child.stdin, flush=True)
        except BrokenPipeError:
            raise KilledError from None
        return self._read()

    def _read(self):
        for line in self.child.stdout:
            reply = json.loads(line)
            if "done" in reply:
                return reply["done"]
            self.wire.send(bytes.fromhex(reply["sent"]))
        raise KilledError

    def live(self, kills, rounds) -> None:
        """Live through at least so many rounds, with these kills: each is (named point, its count) or ("random", look).

        Each kill has a round, and as many more as it takes until its point was passed so often.
        """
        self.live_for(SETTLED_MS)
        for reached, (kind, count) in enumerate(kills, 1):
            if kind == "random":
                self.live_round(kill_at=count)
            else:
                self.arm(kind, count)
                last = self.rounds + MOST_ROUNDS
                while len(self.kills) < reached:
                    assert self.rounds < last, f"{kind} was not passed {count} times in {MOST_ROUNDS} rounds"
                    self.live_round()
        while self.rounds < rounds:
            self.live_round()
        self.live_for(END_MS)

    def live_round(self, kill_at=None) -> None:
        """Live for a round, with a submission in its midst; `kill_at` is the look at which the station is killed."""
        self.live_for(ROUND_MS // 2, kill_at)
        request = {"text": QUERIES[2], "key": f"key {self.rounds}", "now_ms": self.now_ms}
        self.submitted.append(self.ask(request))
        self.live_for(ROUND_MS // 2, None if kill_at is None else kill_at - ROUND_MS // 2 // LOOK_MS)
        self.rounds += 1

    def live_for(self, time_ms, kill_at=None) -> None:
        """Live for some time, with snapshots."""
        for look in range(time_ms // LOOK_MS):
            if (self.now_ms - self.begin_ms) % SNAPSHOT_MS == 0:
                self.ask({"now_ms": self.now_ms})
            self.look(kills_now=look == kill_at)

    def finish(self):
        """The lines of each query, after the process has ended."""
        self.end()
        journal = Journal(self.folder)
        numbers = range(1, len(journal.queries(0, 1_000)) + 1)
        found = {
            number: "".join(chunk.lines for chunk in journal.results(number, 0, 10**9)).encode() for number in numbers
        }
        journal.close()
        return found


def run(folder, kills=(), rounds=0):
    """Let a station live, with these kills; returns its network, and the lines of each query."""
    network = KilledNetwork(folder)
    network.submitted = [network.ask({"text": text, "key": text, "now_ms": network.now_ms}) for text in QUERIES]
    network.live(kills, rounds)
    return network, network.finish()


@pytest.mark.promise("durable")
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("station", range(RUNS))
def test_station_killed_at_each_point_answers_the_same(station, tmp_path, rng):
    kills = [(point, rng.randint(1, 2)) for point in NAMED]
    count = KILLS // RUNS + (station < KILLS % RUNS) - len(NAMED)
    kills += [("random", rng.randrange(1, ROUND_MS // LOOK_MS)) for _ in range(count)]
    rng.shuffle(kills)
    killed, found = run(tmp_path / "killed", kills)
    undisturbed, expected = run(tmp_path / "undisturbed", rounds=killed.rounds)
    assert undisturbed.kills == [] and killed.kills == [point for point, _ in kills]
    assert killed.rounds == undisturbed.rounds >= len(kills)
    submitted = list(range(1, len(QUERIES) + killed.rounds + 1))
    assert killed.submitted == undisturbed.submitted == submitted
    assert found.keys() == expected.keys() == set(submitted)
    for number, lines in expected.items():
        assert found[number] == lines, number
    assert all(b'"coverage": {"field": [6, 6]}' in expected[number] for number in range(3, len(QUERIES) + 3))
