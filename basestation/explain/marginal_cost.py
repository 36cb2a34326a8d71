"""Marginal: what each of several queries costs by itself, and what it adds to the others on the same motes.

They share schedules, programs, frames and tables, so a query may add much less than it costs alone, or nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from acquisition.extent import Catalog
from basestation.controller.forecast import CANNOT, Outlook
from basestation.controller.what_if import placing
from basestation.planner.plan import Plan
from innet.costs.energy_model import Prediction
from innet.deployment import Deployment
from innet.placement.statistics import GUESS, Statistics


@dataclass(frozen=True, slots=True)
class Hourly:
    """All motes together, in an hour, and the days until the first battery is empty."""

    messages: float
    bytes: float
    joules: float
    days: float

    @classmethod
    def of(cls, prediction: Prediction) -> "Hourly":
        hours, sent = prediction.epoch_ms / 3_600_000, prediction.total
        joules = sum(use.total for use in prediction.motes.values())
        days = min(prediction.lifetimes.values(), default=inf) / 86_400
        return cls(sent.attempts / hours, sent.bytes / hours, joules / hours, days)

    def __sub__(self, other: "Hourly") -> "Hourly":
        days = 0.0 if self.days == other.days else self.days - other.days
        return Hourly(self.messages - other.messages, self.bytes - other.bytes, self.joules - other.joules, days)


@dataclass(frozen=True, slots=True)
class Marginal:
    """Of one query; where some cannot be run, why."""

    alone: Hourly | str
    added: Hourly | str


@dataclass(frozen=True, slots=True)
class Together:
    """All of them on the same motes, and each by the number that it was given."""

    placed: Outlook | str
    each: Mapping[int, Marginal]


def together(plans: Mapping[int, Plan], deployment: Deployment, catalog: Catalog,
             statistics: Statistics = GUESS) -> Together | None:  # fmt: skip
    """None where fewer than two of them have motes do anything: there is nothing to share."""

    def tried(queries: Sequence[Plan]) -> Outlook | str | None:
        try:
            return placing(queries, deployment, catalog, statistics)
        except CANNOT as why:
            return str(why)

    alone = {number: tried([plan]) for number, plan in plans.items()}
    plans = {number: plan for number, plan in plans.items() if alone[number] is not None}
    if len(plans) < 2:
        return None
    whole = tried(list(plans.values()))
    others = {number: tried([plan for n, plan in plans.items() if n != number]) for number in plans}
    each = {
        number: Marginal(_hourly(alone[number]), _difference(_hourly(whole), _hourly(others[number])))
        for number in plans
    }
    return Together(whole, each)


def _hourly(placed: Outlook | str) -> Hourly | str:
    return placed if isinstance(placed, str) else Hourly.of(placed.predicted())


def _difference(whole: Hourly | str, others: Hourly | str) -> Hourly | str:
    for told in (whole, others):
        if isinstance(told, str):
            return told
    return whole - others
