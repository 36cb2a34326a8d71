"""LongLivedObjects in a process of its own: full collections leave out what lives as long as the queries, and free what ended."""

import subprocess
import sys

import pytest

from tests.docs.pages import ROOT

SCRIPT = """
import gc, weakref
from basestation.station.long_lived_objects import LONGEST_MS, QUIET_MS, LongLivedObjects

class Operator:
    def __init__(self):
        self.itself = self  # freed by a collection only

def is_walked(operator):
    return any(each is operator for each in gc.get_objects())

objects, running = LongLivedObjects(), {1: Operator(), 2: Operator()}
ended = weakref.ref(running[2])
assert not objects.tend(running.keys(), 1_000)
assert is_walked(running[1])
assert not objects.tend(running.keys(), 999 + QUIET_MS)
assert objects.tend(running.keys(), 1_000 + QUIET_MS)
assert not is_walked(running[1]) and not is_walked(running[2])
assert not objects.tend(running.keys(), 2_000 + QUIET_MS)
del running[2]
gc.collect()
assert ended() is not None, "it is frozen"
assert not objects.tend(running.keys(), 100_000)
assert objects.tend(running.keys(), 100_000 + QUIET_MS)
assert ended() is None and not is_walked(running[1])
later = Operator()
gone = weakref.ref(Operator())
gc.collect()
assert gone() is None, "what is not frozen is collected as ever"
assert not objects.tend(running.keys(), 99_999 + QUIET_MS + LONGEST_MS) and is_walked(later)
assert objects.tend(running.keys(), 100_000 + QUIET_MS + LONGEST_MS) and not is_walked(later)
print("done")
"""


@pytest.mark.promise("bounded-memory")
def test_ended_queries_are_freed_from_frozen_objects():
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("done\n", "")
