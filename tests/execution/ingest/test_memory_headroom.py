"""Memory headroom: only a process that may be refused memory tries whether it gets any."""

import resource

import numpy as np
import pytest

from basestation.execution.ingest import memory_headroom

UNLIMITED = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)


@pytest.mark.parametrize("limited", [None, resource.RLIMIT_AS, resource.RLIMIT_DATA])
@pytest.mark.parametrize("counts_promises", [False, True])
def test_memory_is_tried_where_a_limit_may_refuse_it(monkeypatch, limited, counts_promises):
    tried = []

    def refuse(size, dtype):
        tried.append(size)
        raise MemoryError

    monkeypatch.setattr(resource, "getrlimit", lambda limit: (1 << 30, 1 << 30) if limit == limited else UNLIMITED)
    monkeypatch.setattr(memory_headroom, "_counts_promises", lambda: counts_promises)
    monkeypatch.setattr(np, "empty", refuse)
    expected = limited is None and not counts_promises
    found = memory_headroom.has_room(1 << 21)
    monkeypatch.undo()
    assert (found, tried) == (expected, [] if expected else [1 << 20])


@pytest.mark.parametrize(("mode", "expected"), [("0", False), ("1", False), ("2", True), (None, False)])
def test_mode_of_the_system_is_read(monkeypatch, tmp_path, mode, expected):
    """Mode 2 counts each promise of memory; with the others, a piece is never refused. Not all systems have modes."""
    if mode is not None:
        (tmp_path / "mode").write_text(f"{mode}\n")
    monkeypatch.setattr(memory_headroom, "_OVERCOMMIT", tmp_path / "mode")
    assert memory_headroom._counts_promises.__wrapped__() is expected
