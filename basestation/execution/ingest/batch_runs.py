"""Batch runs: a batch cut into plain insertions, which are taken together, and single corrections."""

from dataclasses import replace
from itertools import pairwise

import numpy as np

from acquisition.arrays import BoolArray
from acquisition.batch import Batch
from basestation.algebra.vector import all_true, any_true


def is_plain(batch: Batch) -> bool:
    """Return whether a batch has new tuples only, and no marks."""
    if batch.marks or (batch.replaces is not None and any_true(batch.replaces != 0)):
        return False
    weight = batch.weight
    return bool(weight[0] == 1) if weight.strides == (0,) and len(weight) else all_true(weight == 1)


def find_corrections(batch: Batch) -> BoolArray:
    """Return a mask of the tuples that take one back or replace one."""
    return batch.weight < 0 if batch.replaces is None else (batch.weight < 0) | (batch.replaces != 0)


def split_runs(batch: Batch) -> list[tuple[Batch, list[object]]]:
    """Cut a batch into runs of plain insertions and single corrections, in order, each with the marks before it."""
    single = find_corrections(batch)
    if not single.any() and not batch.marks:
        return [(replace(batch, replaces=None), [])] if len(batch) else []
    after = (np.flatnonzero(single) + 1).tolist()
    edges = sorted({0, len(batch), *np.flatnonzero(single).tolist(), *after, *(at for at, _ in batch.marks)})
    unmarked = replace(batch, marks=())
    cut = [unmarked.take(slice(a, b)) for a, b in pairwise([*edges, len(batch)])]
    values = [[value for at, value in batch.marks if at == edge] for edge in edges]
    cut = [run if len(run) and single[a] else replace(run, replaces=None) for run, a in zip(cut, edges, strict=True)]
    return list(zip(cut, values, strict=True))
