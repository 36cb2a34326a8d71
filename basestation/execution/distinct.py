"""Distinct: the different values of integers, in order. Ticks and numbers are mostly in order already, which is seen sooner
than sorted."""

import numpy as np


def distinct(values):
    """The different values, ascending."""
    if (values[1:] > values[:-1]).all():
        return values
    ordered = values if (values[1:] >= values[:-1]).all() else np.sort(values, kind="stable")
    return ordered[_new(ordered)]


def ranked(values):
    """(the different values, ascending; and for each value its place among them)."""
    if (values[1:] > values[:-1]).all():
        return values, np.arange(len(values))
    if (values[1:] >= values[:-1]).all():
        new = _new(values)
        return values[new], np.cumsum(new) - 1
    return np.unique(values, return_inverse=True)


def _new(ordered):
    new = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return new
