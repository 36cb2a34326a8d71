"""Overrides the sizes at which the engine changes its strategy or splits its work; none of them may change an answer.

Test cases are small: with the usual sizes they would never reach the strategies for large inputs.
"""

from contextlib import contextmanager

import pytest

from basestation.algebra import vector
from basestation.execution import thresholds
from basestation.progress import coverage_sums, epoch_keys
from innet.aggregates import exact_sums, rounding

SIZES = (
    (vector, "_LARGE", 0),
    (thresholds, "PRUNE_AFTER_TUPLES", (1, 2)),
    (thresholds, "OUTPUT_WINDOWS", 2),
    (thresholds, "DENSE_FACTOR", 0),
    (thresholds, "DENSE_FACTOR", 1),
    (thresholds, "DENSE_SLACK", 0),
    (thresholds, "BINARY_SEARCH_ROWS", 0),
    (thresholds, "GROWTH_DIVISOR", 2),
    (thresholds, "MIN_SPARE", 0),
    (thresholds, "PENDING_PARTS", 1),
    (thresholds, "SPARSE_FACTOR", 1),
    (thresholds, "LOG_PARTS", 2),
    (thresholds, "BUFFER_SCAN_PARTS", 1),
    (thresholds, "BUFFER_PARTS", 1),
    (thresholds, "COALESCED_BATCHES", 3),
    (thresholds, "COALESCED_TUPLES", 3),
    (thresholds, "IDENTITY_CHECK_TUPLES", 0),
    (thresholds, "MAX_STEP_TUPLES", 1),
    (thresholds, "MAX_STEP_TUPLES", 2),
    (thresholds, "STEP_ROWS", 1),
    (thresholds, "FIRST_STEP", (1, 1)),
    (thresholds, "JOIN_COMBINATIONS", 2),
    (thresholds, "DELTA_SHARE", 0.0),
    (thresholds, "DELTA_SHARE", 2.0),
    (thresholds, "DEAD_TUPLES", 0),
    (thresholds, "SAMPLED_WINDOWS", 1),
    (thresholds, "SHARED_WINDOWS", 0),
    (thresholds, "SHARED_WINDOWS", 100),
    (thresholds, "SMALL_RUN", 0),
    (thresholds, "COUNT_TABLE_FACTOR", 1),
    (thresholds, "MATRIX_FACTOR", 0),
    (thresholds, "MATRIX_FACTOR", 100_000),
    (thresholds, "MATRIX_SLACK", 0),
    (thresholds, "WAITING_TUPLES", 2),
    (thresholds, "MIN_COMPACTED", 0),
    (thresholds, "UNTRIMMED_ROWS", 0),
    (thresholds, "SEGMENT_ROWS", 1),
    (thresholds, "SEGMENT_ROWS", 3),
    (thresholds, "OPEN_SLICES", 0),
    (thresholds, "PREFIX_FACTOR", 0),
    (thresholds, "UNFOLDED_SLICES", 1),
    (thresholds, "LINEAGE_PAIRS", 1),
    (thresholds, "WAITING_VERSIONS", 0),
    (thresholds, "WAITING_VERSIONS", 12),
    (thresholds, "SPAN_FACTOR", 0),
    (thresholds, "SPAN_SLACK", 0),
    (thresholds, "UNINDEXED_QUERIES", 1),
    (thresholds, "YOUNG_QUERIES", 1),
    (epoch_keys, "_SPARSE", 1),
    (coverage_sums, "_AT_ONCE", 1),
    (exact_sums, "CHUNK_ROWS", 2),
    (rounding, "SMALL_GROUP_COUNT", 0),
)
"""(where a size stands, its name, another one)."""


@contextmanager
def override_sizes(rng):
    """Override most sizes, chosen at random."""
    with pytest.MonkeyPatch.context() as patch:
        for where, name, size in SIZES:
            if rng.random() < 0.8:
                patch.setattr(where, name, size)
        yield
