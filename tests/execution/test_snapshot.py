"""Snapshots of an engine: it resumes, and other bytes are refused. The choices of the golden queries use snapshots, too."""

import hashlib
import os
import pickle

import numpy as np
import pytest

from acquisition.batch import Batch
from basestation.execution.engine import Engine
from basestation.execution.snapshot import FORMAT, SnapshotError, restore_engine, save_engine
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.updates.update import split_interleaved

CATALOG = read_schema("hits: pushed (v:integer, s:string) late revise by 10 sec")
HEAD = b"moteloom engine %d\n" % FORMAT


def running():
    engine = Engine(CATALOG)
    engine.add(
        1, bind_text("ISTREAM(SELECT s, MAX(v) FROM hits [FROM NOW-4 TO NOW SLIDE 2 SEC] GROUP BY s)", CATALOG)[0]
    )
    one = np.ones(1, np.int64)
    engine.deliver("hits", Batch(one, 0 * one, one, one, {"v": 7 * one, "s": np.array(["a"], object)}))
    engine.on_clock(1)
    return engine


@pytest.mark.promise("snapshot")
def test_restored_engine_resumes():
    engine = running()
    other = restore_engine(save_engine(engine))
    said = [(u.tick.tolist(), u.rows.to_lists()) for u in split_interleaved(engine.on_clock(2)) if hasattr(u, "rows")]
    assert said == [([2], [("a", 7)])]
    assert said == [
        (u.tick.tolist(), u.rows.to_lists()) for u in split_interleaved(other.on_clock(2)) if hasattr(u, "rows")
    ]
    assert other.ledger() == engine.ledger()


@pytest.mark.promise("snapshot")
def test_damaged_snapshot_is_refused(rng, counts):
    whole = save_engine(running())
    for _ in range(counts(200, 2_000)):
        data = bytearray(whole)
        if rng.random() < 0.5:
            data = data[: rng.randrange(len(data))]
        else:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        with pytest.raises(SnapshotError):
            restore_engine(bytes(data))


def sealed(body):
    """Bytes that look like a snapshot."""
    return HEAD + hashlib.sha256(body).digest() + body


class Runs:
    def __reduce__(self):
        return os.system, ("exit 3",)


class Names:
    def __reduce__(self):
        return eval, ("1",)


@pytest.mark.promise("snapshot")
@pytest.mark.parametrize(
    "data", [b"", b"moteloom engine x\n", HEAD, sealed(pickle.dumps(Runs())), sealed(pickle.dumps(Names())),
             sealed(b"\x80\x04\x8c\x0egateway.source\x8c\x0cbisect_right\x93."),
             sealed(b"\x80\x04\x8c\x0egateway.nowhat\x8c\x04Cell\x93."),
             sealed(b"\x80\x04\x8c\x0egateway.source\x8c\x04Nope\x93.")]
)  # fmt: skip
def test_snapshot_with_foreign_names_runs_nothing(data):
    with pytest.raises(SnapshotError):
        restore_engine(data)


@pytest.mark.promise("snapshot")
@pytest.mark.parametrize("version", [b"12", b"13", b"14"])
def test_snapshot_of_other_version_is_refused_with_both_versions(version):
    other = save_engine(running()).replace(HEAD, b"moteloom engine " + version + b"\n", 1)
    with pytest.raises(SnapshotError, match=f"found `moteloom engine {version.decode()}` of another version"):
        restore_engine(other)
