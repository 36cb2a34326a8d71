"""Sizes from which on the engine takes another way, or does in parts what it does at once: none of them may show in an answer.

Cases are small: under the usual sizes they would never come to the ways that are for much.
"""

from contextlib import contextmanager

import pytest

from basestation.algebra import vector
from basestation.execution import engine
from basestation.execution.answers import outputs
from basestation.execution.columns import bags, distinct, frame, grown, indexing, numbered, parts, tuples
from basestation.execution.contents import groups, relational
from basestation.execution.joining import codes, differing, held, join, module, run
from basestation.execution.slices import folding, slicing
from basestation.execution.taking import aside, intake, moments
from basestation.execution.wanting import ends, grouped, spans
from basestation.windows import keys, tally
from innet.aggregates import exact, rounding

SIZES = (
    (vector, "_MANY", 0),
    (engine, "_PLENTY", (1, 2)),
    (outputs, "_AT_ONCE", 2),
    (bags, "LOOSE", 0),
    (bags, "SMALL", 0),
    (distinct, "_LOOSE", 0),
    (distinct, "_SMALL", 0),
    (frame, "_MANY", 0),
    (grown, "_SPARE", 2),
    (indexing, "_MANY", 1),
    (numbered, "_FEW", 0),
    (numbered, "_SPARSE", 1),
    (parts, "_MANY", 2),
    (parts, "_SEVERAL", 1),
    (tuples, "_SEVERAL", 1),
    (tuples, "_MANY", 1),
    (groups, "_LOOSE", 0),
    (groups, "_SMALL", 0),
    (relational, "_AT_ONCE", 2),
    (codes, "_LOOSE", 1),
    (codes, "_SMALL", 0),
    (differing, "_WORTH", 0.0),
    (differing, "_WORTH", 2.0),
    (held, "_CLEAR", 0),
    (join, "AT_ONCE", 2),
    (join, "_SAMPLE", 1),
    (join, "_FEW", 0),
    (join, "_FEW", 100),
    (module, "_FEW", 0),
    (run, "_LOOSE", 1),
    (folding, "_FULL", 0),
    (folding, "_FULL", 100_000),
    (folding, "_SMALL", 0),
    (slicing, "_MANY", 2),
    (slicing, "_SOME", 0),
    (slicing, "_SOME", 12),
    (aside, "_MANY", 3),
    (aside, "_LARGE", 3),
    (intake, "_FEW", 0),
    (moments, "PORTION", 1),
    (moments, "PORTION", 2),
    (ends, "_LOOSE", 0),
    (ends, "_SMALL", 0),
    (spans, "_LITTLE", 0),
    (spans, "_SMALL", 0),
    (grouped, "_FEW", 1),
    (grouped, "_YOUNG", 1),
    (keys, "_SPARSE", 1),
    (tally, "_AT_ONCE", 1),
    (exact, "ROWS", 2),
    (rounding, "FEW", 0),
)
"""(where a size stands, its name, another one)."""


@contextmanager
def sized(rng):
    """Most sizes are other ones: which of them stay is left to chance."""
    with pytest.MonkeyPatch.context() as patch:
        for where, name, size in SIZES:
            if rng.random() < 0.8:
                patch.setattr(where, name, size)
        yield
