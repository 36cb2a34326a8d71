"""Statistics: the selectivity of conditions and the contents of slices, guessed or counted in readings.

A planner without readings assumes typical selectivities, and independent readings; all assumptions stand here. No answer
depends on any of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Protocol

import numpy as np

from acquisition.arrays import AnyArray, BoolArray, IntArray
from innet.operators.acquire import find_acquires
from innet.operators.column_evaluation import ValueColumn, evaluate_columns
from innet.operators.deliver import Deliver
from innet.operators.fold import Fold
from innet.operators.identity_cache import cache_by_identity
from innet.operators.mote_expression import (
    Instruction,
    MoteConstant,
    MoteExpression,
    SensorValue,
    SiteNumber,
    all_of,
    walk,
)
from innet.placement.placement import Placeable, conditions, extents_of, is_about_site

DEFAULT_SELECTIVITY = {"EQ": 0.1, "NE": 0.9, "LT": 0.3, "LE": 0.3, "GT": 0.3, "GE": 0.3, "ISNULL": 0.05}
"""The assumed share of readings for which a comparison is true."""
DEFAULT_DISTINCT_VALUES = 8
"""The assumed number of values of a grouping column; the site has as many as there are sites."""


@dataclass(frozen=True, slots=True)
class SliceContents:
    """The partials of some sites in some slices, one entry per slice: with a group in `whole`, without one in `bare`."""

    whole: AnyArray
    bare: AnyArray


class Statistics(Protocol):
    """The estimates that the cost model needs; its `str` names their source."""

    def wanted_shares(self, operators: Sequence[Deliver], sites: Sequence[int], every: int) -> list[float]:
        """Return by site the share of its readings, one each `every` ticks, that at least one of the operators takes."""

    def contents(self, fold: Fold, sites: Sequence[int]) -> SliceContents:
        """Return the contents of slices at a mote that has the partials of `sites`, if nothing is lost."""

    def most_groups(self, fold: Fold, sites: Sequence[int]) -> int:
        """Return the number of groups of one slice for which a mote with the partials of `sites` needs room."""


# --- guessed ---------------------------------------------------------------------------------------------------------


class GuessedStatistics:
    """Statistics without readings: typical selectivities."""

    def __str__(self) -> str:
        return "guessed"

    def wanted_shares(self, operators: Sequence[Deliver], sites: Sequence[int], every: int) -> list[float]:
        passed = prod(1 - estimate_selectivity(each) * every / sampling_interval(each) for each in operators)
        return [1 - passed] * len(sites)

    def contents(self, fold: Fold, sites: Sequence[int]) -> SliceContents:
        cells = DEFAULT_DISTINCT_VALUES ** sum(not isinstance(key, SiteNumber) for key in fold.keys)
        return expect_contents(fold, sites, estimate_selectivity(fold), cells)

    def most_groups(self, fold: Fold, sites: Sequence[int]) -> int:
        keys = [len(sites) if isinstance(key, SiteNumber) else DEFAULT_DISTINCT_VALUES for key in fold.keys]
        return max(1, min(prod(keys), fold.slices.max_ticks(fold.interval) * len(sites)))


GUESS = GuessedStatistics()


def expect_contents(fold: Fold, sites: Sequence[int], share: float, cells: float) -> SliceContents:
    """Return the expected contents of a slice: each reading passes with probability `share`, into one of `cells` groups per site."""
    many = max(1, len(sites)) if _by_site(fold) else 1
    readings = len(sites) * fold.slices.max_ticks(fold.interval)
    whole = many * cells * (1 - (1 - share / cells) ** (readings / many))
    return SliceContents(np.array([whole]), np.array([1 - share**readings]))


def _by_site(fold: Fold) -> bool:
    return any(isinstance(key, SiteNumber) for key in fold.keys)


def sampling_interval(operator: Placeable) -> int:
    """Return the ticks between the readings that an operator takes."""
    return find_acquires(operator)[operator.extent].interval


@cache_by_identity
def estimate_selectivity(operator: Placeable) -> float:
    """Return the assumed share of its readings that an operator takes."""
    return prod(estimate_condition(term) for term in conditions(operator) if not is_about_site(term))


def estimate_condition(term: MoteExpression) -> float:
    """Return the assumed share of the readings for which a condition is true."""
    match term:
        case MoteConstant(value):
            return 1.0 if value == 1 else 0.0
        case Instruction("AND", parts):
            return prod(estimate_condition(part) for part in parts)
        case Instruction("OR", parts):
            return 1 - prod(1 - estimate_condition(part) for part in parts)
        case Instruction("NOT", (part,)):
            return 1 - estimate_condition(part)
        case Instruction(name, (left, right)) if left == right and name in ("EQ", "NE"):
            return 1.0 if name == "EQ" else 0.0  # true or false for every value that is not null
        case Instruction(name):
            return DEFAULT_SELECTIVITY.get(name, 0.5)
    return 0.5


# --- counted ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ExtentReadings:
    """Readings of one extent: site and tick of each, and the value of each attribute, in multiples of its scale."""

    site: IntArray
    tick: IntArray
    values: Mapping[str, ValueColumn]

    @staticmethod
    def concatenate(parts: Sequence["ExtentReadings"]) -> "ExtentReadings":
        """Return the readings of all parts; there is at least one."""
        values = {}
        for name in parts[0].values:
            columns = [part.values[name] for part in parts]
            values[name] = ValueColumn(
                np.concatenate([column.values for column in columns]),
                np.concatenate([column.valid for column in columns]),
            )
        return ExtentReadings(np.concatenate([p.site for p in parts]), np.concatenate([p.tick for p in parts]), values)


@dataclass(frozen=True)
class CountedStatistics:
    """Statistics counted in readings: columns with a row per site and tick.

    `measured` has the values of each sensor, `sampled` by extent the rows that are readings of it. Questions about an extent,
    attribute or site without readings are answered by a guess.
    """

    site: IntArray
    tick: IntArray
    measured: Mapping[SensorValue, ValueColumn]
    sampled: Mapping[str, BoolArray]

    def __str__(self) -> str:
        return f"counted in {sum(int(rows.sum()) for rows in self.sampled.values()):,} readings"

    @classmethod
    def of(cls, readings: Mapping[str, ExtentReadings]) -> "CountedStatistics":
        """Combine the readings of each extent, by its name, into rows."""
        places = {extent: each.site << 40 | each.tick for extent, each in readings.items()}
        whole = np.unique(np.concatenate([*places.values(), np.zeros(0, np.int64)]))
        measured, sampled = {}, {}
        for extent, each in readings.items():
            row = np.searchsorted(whole, places[extent])
            sampled[extent] = np.zeros(len(whole), bool)
            sampled[extent][row] = True
            for attribute, column in each.values.items():
                aligned = ValueColumn(np.zeros(len(whole), np.int64), np.zeros(len(whole), bool))
                aligned.values[row], aligned.valid[row] = column.values, column.valid
                measured[SensorValue(extent, attribute)] = aligned
        return cls(whole >> 40, whole & ((1 << 40) - 1), measured, sampled)

    def wanted_shares(self, operators: Sequence[Deliver], sites: Sequence[int], every: int) -> list[float]:
        guessed = GUESS.wanted_shares(operators, sites, every)
        if not all(self.covers(operator) for operator in operators):
            return guessed
        due = self.sampled[operators[0].extent] & (self.tick % every == 0)
        taken = np.logical_or.reduce([self._taken(operator) for operator in operators])
        found = []
        for site, guess in zip(sites, guessed, strict=True):
            rows = self._rows_of.get(site, np.zeros(0, np.int64))
            rows = rows[due[rows]]
            found.append(float(np.mean(taken[rows])) if len(rows) else guess)
        return found

    def share(self, operator: Placeable) -> float:
        """Return the share of its readings, over all sites, that an operator takes."""
        rows = self.sampled[operator.extent] & (self.tick % sampling_interval(operator) == 0)
        return float(self._taken(operator)[rows].mean()) if rows.any() else estimate_selectivity(operator)

    def contents(self, fold: Fold, sites: Sequence[int]) -> SliceContents:
        some = [self._rows_of[site] for site in sites if site in self._rows_of]
        rows = np.concatenate(some) if some and self.covers(fold) else np.zeros(0, np.int64)
        if len(rows):
            here = np.logical_and.reduce([self.sampled[extent][rows] for extent in extents_of(fold)])
            rows = rows[here & (self.tick[rows] % fold.interval == 0)]
        if fold.slices.gap_edge is not None:
            rows = rows[fold.slices.is_in_windows(fold.slices.number(self.tick[rows]))]
        if not len(rows):
            return GUESS.contents(fold, sites)
        slices, number = np.unique(fold.slices.number(self.tick[rows]), return_inverse=True)
        taken = self._taken(fold)[rows]
        bare = np.bincount(number[~taken], minlength=len(slices)) > 0
        keys = [part for key in fold.keys for part in self._parts(key, rows[taken])]
        groups = np.unique(np.stack([number[taken], *keys]), axis=1)
        return SliceContents(np.bincount(groups[0], minlength=len(slices)), bare.astype(np.int64))

    def most_groups(self, fold: Fold, sites: Sequence[int]) -> int:
        return max(1, int(np.ceil(self.contents(fold, sites).whole.max())))

    @cached_property
    def _rows_of(self) -> dict[int, IntArray]:
        """The rows of each site."""
        order = np.argsort(self.site, kind="stable")
        sites, begins = np.unique(self.site[order], return_index=True)
        ends = np.append(begins, len(order))[1:]  # without readings, both are empty
        return {site: order[begin:end] for site, begin, end in zip(sites.tolist(), begins, ends, strict=True)}

    @cached_property
    def _known(self) -> dict[Placeable, BoolArray]:
        """By operator, the result of `_taken`."""
        return {}

    def covers(self, operator: Placeable) -> bool:
        """Whether there are readings of all extents and sensors that the operator uses."""
        keys = operator.keys if isinstance(operator, Fold) else ()
        parts = {part for each in (*conditions(operator), *keys) for part in walk(each)}
        known = all(part in self.measured for part in parts if isinstance(part, SensorValue))
        return known and all(extent in self.sampled for extent in extents_of(operator))

    def _taken(self, operator: Placeable) -> BoolArray:
        """Return the rows whose reading an operator takes."""
        if operator not in self._known:
            here = np.logical_and.reduce([self.sampled[extent] for extent in extents_of(operator)])
            terms = [term for term in conditions(operator) if not is_about_site(term)]
            truth = evaluate_columns(all_of(terms), self.site, self.measured).is_true
            self._known[operator] = here & truth & (self.tick % sampling_interval(operator) == 0)
        return self._known[operator]

    def _parts(self, key: MoteExpression, rows: IntArray) -> tuple[IntArray, IntArray]:
        """Return the group key of some rows as (validity, value)."""
        measured = {sensor: ValueColumn(c.values[rows], c.valid[rows]) for sensor, c in self.measured.items()}
        column = evaluate_columns(key, self.site[rows], measured)
        return column.valid.astype(np.int64), column.values
