"""Memory headroom: whether there is memory for what a step needs: the intake, which all queries share, and the text of its answers."""

import functools
import resource
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from acquisition.batch import Batch
from basestation.execution import thresholds

_PIECE = 1 << 20
_LIMITS = resource.RLIMIT_AS, resource.RLIMIT_DATA
_OVERCOMMIT = Path("/proc/sys/vm/overcommit_memory")


def estimate_intake_bytes(delivered: Mapping[Any, Sequence[Any]]) -> int:
    """Return the bytes that the intake of a step over these deliveries takes at most, beside the deliveries."""
    return thresholds.INTAKE_COPIES * sum(_bytes(batch) for batches in delivered.values() for batch in batches)


def _bytes(batch: Any) -> int:
    columns: Iterable[Any] = batch.columns if isinstance(batch, Batch) else (*batch.keys, *batch.states)
    return 8 * len(batch) * (4 + len(tuple(columns)))


def has_room(size: int) -> bool:
    """Return whether so many bytes can be allocated now, in pieces as arrays are.

    A process without a limit always can: the system promises memory that it may not have.
    """
    if not is_limited():
        return True
    try:
        pieces = [np.empty(min(_PIECE, size - at), np.uint8) for at in range(0, size, _PIECE)]
    except MemoryError:
        return False
    return len(pieces) > 0


def is_limited() -> bool:
    """Return whether an allocation can fail at all."""
    return _counts_promises() or any(resource.getrlimit(limit)[0] != resource.RLIM_INFINITY for limit in _LIMITS)


@functools.cache
def _counts_promises() -> bool:
    """Return whether the system promises no more memory than it has."""
    return _OVERCOMMIT.exists() and _OVERCOMMIT.read_text().strip() == "2"
