"""Corrections with their reversal: statements that revise the readings so far, and later ones that restore them.

Each extent with a horizon beyond the recording gets one pair: readings change their values and change back, a new reading is
inserted and deleted, or a reading is deleted and inserted again.
"""

import numpy as np

from acquisition.batch import mask_of
from acquisition.extent import ExtentKind, LatePolicy
from acquisition.schema import Type

_FAR = 1_000_000
"""Added to numbers on the way there; none of the recording is as large."""


def revert_corrections(case, rng):
    """{clock tick: texts of statements}."""
    found = {}
    for extent in case.catalog:
        if extent.kind is ExtentKind.STORED or extent.late is not LatePolicy.REVISE or extent.horizon <= case.until:
            continue
        there, back = sorted((rng.randint(0, case.until), rng.randint(0, case.until)))
        for way in rng.sample((_far, _extra, _again), 3):
            made = way(extent, case.recording.batches[extent.name], there, rng)
            if made is not None:
                found.setdefault(there, []).append(made[0])
                found.setdefault(back, []).append(made[1])
                break
    return found


def _far(extent, batch, there, rng):
    """Change the values of all tuples, and restore them."""
    for attribute in _numbers(extent):
        values = batch.columns[attribute.name][mask_of(batch, attribute.name)]
        if (np.abs(values) < _FAR / 4).all() and (values == np.round(values)).all():
            name = attribute.name
            return (
                f"REVISE {extent.name} SET {name} = {name} + {_FAR} WHERE {name} < {_FAR // 2}",
                f"REVISE {extent.name} SET {name} = {name} - {_FAR} WHERE {name} >= {_FAR // 2}",
            )
    return None


def _extra(extent, batch, there, rng):
    """Insert a new tuple, and delete it."""
    if batch.replaces is not None or (extent.kind is ExtentKind.SENSED and not extent.site_attribute):
        return None  # corrections name tuples by index, which another tuple would shift
    for attribute in _numbers(extent):
        values = batch.columns[attribute.name]
        if (np.abs(values) < _FAR / 4).all():
            name = attribute.name
            delete = f"DELETE FROM {extent.name} WHERE {name} = {_FAR}"
            if extent.kind is ExtentKind.PUSHED:
                tick = rng.randint(0, there)
                return f"INSERT INTO {extent.name} (tick, {name}) VALUES ({tick}, {_FAR})", delete
            came = set(zip(batch.tick.tolist(), batch.site.tolist(), strict=True))
            missing = [(t, s) for t in range(0, there + 1, extent.interval) for s in extent.sites if (t, s) not in came]
            if missing:
                tick, site = rng.choice(missing)
                columns, row = ("tick, site", f"{tick}, {site}")
                return f"INSERT INTO {extent.name} ({columns}, {name}) VALUES ({row}, {_FAR})", delete
    return None


def _again(extent, batch, there, rng):
    """Delete a reading, and insert it again."""
    if extent.kind is ExtentKind.PUSHED or not extent.site_attribute or batch.replaces is not None:
        return None
    keys = list(zip(batch.tick.tolist(), batch.site.tolist(), strict=True))
    due = [
        i for i, (tick, site) in enumerate(keys)
        if keys.count((tick, site)) == 1 and batch.arrival[i] <= there and batch.weight[i] > 0
        and tick % extent.interval == 0 and site in extent.sites and tick - batch.arrival[i] <= (extent.ahead or 0)
    ]  # fmt: skip
    if not due:
        return None
    at = rng.choice(due)
    known = {extent.site_attribute, extent.time_attribute}
    attributes = [a for a in extent.schema if a not in known]
    tick, site = keys[at]
    names = ", ".join(a.name for a in attributes)
    values = ", ".join(_literal(batch, a, at) for a in attributes)
    return (
        f"DELETE FROM {extent.name} WHERE site = {site} AND tick = {tick}",
        f"INSERT INTO {extent.name} (tick, site, {names}) VALUES ({tick}, {site}, {values})",
    )


def _numbers(extent):
    known = (extent.site_attribute, extent.time_attribute)
    return [a for a in extent.schema if a.type.numeric and a.scale is None and a.range is None and a not in known]


def _literal(batch, attribute, at):
    if not mask_of(batch, attribute.name)[at]:
        return "NULL"
    value = (
        batch.columns[attribute.name][at].item()
        if attribute.type is not Type.STRING
        else batch.columns[attribute.name][at]
    )
    if attribute.type is Type.STRING:
        return "'" + value.replace("'", "''") + "'"
    if attribute.scale is not None:
        value = value / 10**attribute.scale
    return repr(value).replace("e+", "e")
