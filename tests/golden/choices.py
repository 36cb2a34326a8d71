"""Metamorphic tests: choices that must not change answers.

A Choice sets how deliveries are cut into batches, which clock ticks end, which rewrite rules apply, when state is tidied,
which queries run beside, whether the engine is saved and restored, and at which sizes it changes its strategy.

Corrections with their reversal, and pushed tuples in another order, give the same final answer but another history and other
indexes. So these choices apply only to queries without indexes and rows.
"""

import re
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass

from acquisition.extent import ExtentKind
from basestation.algebra.converters import Converter
from basestation.planner.executable_rules import EXECUTABLE_RULES
from basestation.replay.inputs import read_recording
from basestation.replay.statements import read_catalog, read_statements
from tests.agreement.history import bag, difference, of_replay
from tests.golden.choice_run import ChoiceRun
from tests.golden.size_overrides import override_sizes


@dataclass(frozen=True)
class Choice:
    """`same`: what must be equal, the `history` of updates or only the `sums` at the end."""

    name: str
    same: str = "history"
    batches: int | None = None  # tuples in each; 0: random cuts
    ticks: str = "needed"  # all, or random others beside those that are needed; or only some of these
    rules: tuple = EXECUTABLE_RULES
    tidy_every: int = 64
    others: str = ""  # from the beginning, or coming and going
    shuffled: ExtentKind | None = None  # the kind of extents whose deliveries of one clock tick are shuffled
    detours: bool = False
    saved: bool = False
    marked: bool = False
    exchanged: bool = False
    sized: bool = False

    def suits(self, case):
        """Whether the choice applies to a case."""
        return self.same == "history" or not case.positional


def _without(rule):
    return tuple(each for each in EXECUTABLE_RULES if each is not rule)


CHOICES = (
    Choice("every tuple in a batch of its own", batches=1),
    Choice("batches of two", batches=2),
    Choice("random batches", batches=0),
    Choice("every clock tick ended by itself", ticks="all"),
    Choice("random clock ticks ended", ticks="random", batches=0),
    Choice("many clock ticks ended at once", ticks="some"),
    Choice("many clock ticks in random batches", ticks="some", batches=0),
    Choice("no rewrites", rules=()),
    *(Choice(f"without {rule.__name__}", rules=_without(rule)) for rule in EXECUTABLE_RULES),
    Choice("state tidied in every step", tidy_every=1),
    Choice("state tidied in every clock tick", tidy_every=1, ticks="all"),
    Choice("among fifty others", others="from the beginning"),
    Choice("while others come and go", others="coming and going", ticks="random"),
    Choice("readings shuffled within a clock tick", shuffled=ExtentKind.SENSED),
    Choice("pushed tuples shuffled within a clock tick", same="sums", shuffled=ExtentKind.PUSHED),
    Choice("revised away and back", same="sums", detours=True),
    Choice("revised away and back, tidily", same="sums", detours=True, tidy_every=1, ticks="all"),
    Choice("another plan of its joins after each batch", exchanged=True, batches=0),
    Choice("other sizes", sized=True, tidy_every=2, batches=0),
    Choice("other sizes, every clock tick ended", sized=True, tidy_every=1, ticks="all"),
    Choice("other sizes, many clock ticks at once", sized=True, ticks="some"),
    Choice("random marks", marked=True, batches=0),
    Choice("random marks, many clock ticks at once", marked=True, ticks="some"),
    Choice("saved and restored on the way", saved=True, ticks="random", batches=0),
    Choice("saved, restored and tidied everywhere", saved=True, ticks="all", tidy_every=1),
)


class ChoiceCase:
    """A schema, a recording and statements, and the engine's usual answers to them."""

    def __init__(self, schema, inputs, queries, others=()):
        """`others` are texts of queries over the same schema."""
        self.catalog = read_catalog(schema)
        self.recording = read_recording(self.catalog, inputs, read_statements(queries, self.catalog))
        self.catalog = self.recording.catalog
        self.statements = read_statements(queries, self.catalog)
        clocks = [given.clock for given in self.statements if given.clock]
        self.until = max([self.recording.end(), *clocks])
        self.queries = [given for given in self.statements if given.is_query]
        self.positional = any(map(is_positional, self.statements))
        self.others = others
        self.usual = ChoiceRun(self, Choice("as always"), None).run()

    def difference(self, choice, rng):
        """The difference of the answers under a choice; None if they are equal."""
        with override_sizes(rng) if choice.sized else nullcontext():
            emitted = ChoiceRun(self, choice, rng).run()
        for given in self.queries:
            in_order = (
                choice.rules == EXECUTABLE_RULES
            )  # without a rewrite, rows of one window may have another order (6.4)
            before, now = (_history(result, given.number, in_order) for result in (self.usual, emitted))
            if choice.same == "sums":
                before, now = (_sums(result, given.number) for result in (self.usual, emitted))
                if before != now:
                    return f"statement {given.number}\nexpected {before}\ngot      {now}"
                continue
            what = difference(before, now)
            forgiven = not in_order and not before.windows and before.without_order() == now.without_order()
            if what is not None and not forgiven:
                return f"statement {given.number}: {what}"
        if choice.same == "history" and self.usual.ledger != emitted.ledger:
            return f"the ledger\nexpected {self.usual.ledger}\ngot      {emitted.ledger}"
        return None


def _history(result, number, in_order):
    return of_replay(result, [None] * len(result.history(number)), number, clocks=False, in_order=in_order)


def _sums(result, number):
    """The current answer and its coverage; of a stream without indexes."""
    current = result.current(number)
    if isinstance(current, list):
        rows = Counter((tick, *map(tuple, bag([row]))) for tick, _, row in current)
        return rows, {mark.tick: mark.coverage for mark in result.epochs(number)}
    covers = {window.key: window.coverage for window in result.windows(number)}
    return {key: bag(rows) for key, rows in current.items()}, covers


_POSITIONS = frozenset(("ROW", "ROWS", "INDEX", "FIRST", "LAST", "HISTORY", "SINCE"))


def is_positional(given):
    """Whether an answer may depend on the order of tuples, or on the time of their revision."""
    if not given.is_query or _POSITIONS & {word.upper() for word in re.findall(r"\w+", given.source.text)}:
        return True
    # FOR on a plain stream emits the tuples that arrive until its end; a later restored tuple is missing (14).
    plan = given.bound
    return plan.options.run_for is not None and plan.kind == "stream" and not isinstance(plan.root, Converter)
