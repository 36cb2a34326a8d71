"""Statistics: how often conditions hold, and what there is of a slice: guessed, or counted in readings that somebody has.

A planner that has seen no readings takes each comparison to hold as often as comparisons usually do, and readings to be
independent of each other; what is taken for it stands here and nowhere else. Answers never depend on any of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Protocol

import numpy as np

from innet.operators.acquire import find_acquires
from innet.operators.column_evaluation import ValueColumn, evaluate_columns
from innet.operators.deliver import Deliver
from innet.operators.fold import Fold
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
"""The share of readings for which a comparison is taken to hold."""
DEFAULT_DISTINCT_VALUES = 8
"""How many values a grouping column is taken to have; of the site, as many as there are sites."""


@dataclass(frozen=True, slots=True)
class SliceContents:
    """What some sites have in each of some slices: partials of groups, and bare ones, of readings in no group."""

    whole: np.ndarray
    bare: np.ndarray


class Statistics(Protocol):
    """What a cost model asks; printed, it says where its answers come from."""

    def wanted_share(self, operators: Sequence[Deliver], site: int, every: int) -> float:
        """The share of a site's readings, one each `every` ticks, that at least one of the operators wants."""

    def contents(self, fold: Fold, sites: Sequence[int]) -> SliceContents:
        """What there is of a fold in slices, if nothing is lost, at a mote that has the partials of these sites."""

    def most_groups(self, fold: Fold, sites: Sequence[int]) -> int:
        """How many groups of one slice a mote needs room for that has the partials of these sites."""


# --- guessed ---------------------------------------------------------------------------------------------------------


class GuessedStatistics:
    """Nothing is known."""

    def __str__(self) -> str:
        return "guessed"

    def wanted_share(self, operators: Sequence[Deliver], site: int, every: int) -> float:
        return 1 - prod(
            1 - estimate_selectivity(operator) * every / sampling_interval(operator) for operator in operators
        )

    def contents(self, fold: Fold, sites: Sequence[int]) -> SliceContents:
        cells = DEFAULT_DISTINCT_VALUES ** sum(not isinstance(key, SiteNumber) for key in fold.keys)
        return expect_contents(fold, sites, estimate_selectivity(fold), cells)

    def most_groups(self, fold: Fold, sites: Sequence[int]) -> int:
        keys = [len(sites) if isinstance(key, SiteNumber) else DEFAULT_DISTINCT_VALUES for key in fold.keys]
        return max(1, min(prod(keys), fold.slices.max_ticks(fold.interval) * len(sites)))


GUESS = GuessedStatistics()


def expect_contents(fold: Fold, sites: Sequence[int], share: float, cells: float) -> SliceContents:
    """Each reading passes or not, and then falls into one of the cells; so many of them are hit on average."""
    many = max(1, len(sites)) if _by_site(fold) else 1
    readings = len(sites) * fold.slices.max_ticks(fold.interval)
    whole = many * cells * (1 - (1 - share / cells) ** (readings / many))
    return SliceContents(np.array([whole]), np.array([1 - share**readings]))


def _by_site(fold: Fold) -> bool:
    return any(isinstance(key, SiteNumber) for key in fold.keys)


def sampling_interval(operator: Placeable) -> int:
    return find_acquires(operator)[operator.extent].interval


def estimate_selectivity(operator: Placeable) -> float:
    """The share of its readings that an operator is taken to take."""
    return prod(estimate_condition(term) for term in conditions(operator) if not is_about_site(term))


def estimate_condition(term: MoteExpression) -> float:
    """For which share of the readings a condition is taken to hold."""
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
            return 1.0 if name == "EQ" else 0.0  # what always holds of a value that is there
        case Instruction(name):
            return DEFAULT_SELECTIVITY.get(name, 0.5)
    return 0.5


# --- counted ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ExtentReadings:
    """Of one extent: by whom and when, and the value of each attribute, in multiples of its scale."""

    site: np.ndarray
    tick: np.ndarray
    values: Mapping[str, ValueColumn]

    @staticmethod
    def together(parts: Sequence["ExtentReadings"]) -> "ExtentReadings":
        lanes = {
            name: ValueColumn(
                *(
                    np.concatenate([getattr(part.values[name], what) for part in parts])
                    for what in ValueColumn.__slots__
                )
            )
            for name in parts[0].values
        }
        return ExtentReadings(np.concatenate([p.site for p in parts]), np.concatenate([p.tick for p in parts]), lanes)


@dataclass(frozen=True)
class CountedStatistics:
    """Observed as columns, a row for each site and tick. `sampled` says, by extent, which rows are readings of it.

    What is asked of an extent, an attribute or a site of which there are none is guessed.
    """

    site: np.ndarray
    tick: np.ndarray
    measured: Mapping[SensorValue, ValueColumn]
    sampled: Mapping[str, np.ndarray]

    def __str__(self) -> str:
        return f"counted in {sum(int(rows.sum()) for rows in self.sampled.values()):,} readings"

    @classmethod
    def of(cls, readings: Mapping[str, ExtentReadings]) -> "CountedStatistics":
        """The readings of each extent by its name, side by side."""
        places = {extent: each.site << 40 | each.tick for extent, each in readings.items()}
        whole = np.unique(np.concatenate([*places.values(), np.zeros(0, np.int64)]))
        measured, sampled = {}, {}
        for extent, each in readings.items():
            row = np.searchsorted(whole, places[extent])
            sampled[extent] = np.zeros(len(whole), bool)
            sampled[extent][row] = True
            for attribute, lane in each.values.items():
                spread = ValueColumn(np.zeros(len(whole), np.int64), np.zeros(len(whole), bool))
                spread.values[row], spread.valid[row] = lane.values, lane.valid
                measured[SensorValue(extent, attribute)] = spread
        return cls(whole >> 40, whole & ((1 << 40) - 1), measured, sampled)

    def wanted_share(self, operators: Sequence[Deliver], site: int, every: int) -> float:
        if not all(self.covers(operator) for operator in operators):
            return GUESS.wanted_share(operators, site, every)
        rows = self._rows_of.get(site, np.zeros(0, np.int64))
        extent = operators[0].extent
        rows = rows[self.sampled[extent][rows] & (self.tick[rows] % every == 0)]
        if not len(rows):
            return GUESS.wanted_share(operators, site, every)
        return float(np.mean(np.logical_or.reduce([self._taken(operator)[rows] for operator in operators])))

    def share(self, operator: Placeable) -> float:
        """The share of its readings, all sites together, that an operator takes."""
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
        keys = [lane for key in fold.keys for lane in self._parts(key, rows[taken])]
        groups = np.unique(np.stack([number[taken], *keys]), axis=1)
        return SliceContents(np.bincount(groups[0], minlength=len(slices)), bare.astype(np.int64))

    def most_groups(self, fold: Fold, sites: Sequence[int]) -> int:
        return max(1, int(np.ceil(self.contents(fold, sites).whole.max())))

    @cached_property
    def _rows_of(self) -> dict[int, np.ndarray]:
        order = np.argsort(self.site, kind="stable")
        sites, begins = np.unique(self.site[order], return_index=True)
        ends = np.append(begins, len(order))[1:]  # where there are no readings there is neither
        return {site: order[begin:end] for site, begin, end in zip(sites.tolist(), begins, ends, strict=True)}

    @cached_property
    def _known(self) -> dict[Placeable, np.ndarray]:
        return {}

    def covers(self, operator: Placeable) -> bool:
        """Whether there are readings of all that it reads, with what it asks of them."""
        keys = operator.keys if isinstance(operator, Fold) else ()
        parts = {part for each in (*conditions(operator), *keys) for part in walk(each)}
        known = all(part in self.measured for part in parts if isinstance(part, SensorValue))
        return known and all(extent in self.sampled for extent in extents_of(operator))

    def _taken(self, operator: Placeable) -> np.ndarray:
        """Of which rows an operator takes the reading."""
        if operator not in self._known:
            here = np.logical_and.reduce([self.sampled[extent] for extent in extents_of(operator)])
            terms = [term for term in conditions(operator) if not is_about_site(term)]
            truth = evaluate_columns(all_of(terms), self.site, self.measured).is_true
            self._known[operator] = here & truth & (self.tick % sampling_interval(operator) == 0)
        return self._known[operator]

    def _parts(self, key: MoteExpression, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        measured = {place: ValueColumn(lane.values[rows], lane.valid[rows]) for place, lane in self.measured.items()}
        lane = evaluate_columns(key, self.site[rows], measured)
        return lane.valid.astype(np.int64), lane.values
