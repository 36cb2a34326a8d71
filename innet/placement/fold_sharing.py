"""Fold sharing: folds of several queries that merge into one, folds that contain the states of another, and fold numbers."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from innet.operators import MoteOperator
from innet.operators.fold import Fold
from innet.operators.mote_expression import MoteExpression
from innet.operators.slices import SlicePattern

SUMS = ("COUNT", "SUM", "VARIANCE")
"""The state of each contains the states of those before it."""
FOLD_NUMBERS = range(1, 256)
"""The numbers of folds in frames."""


def merge_folds(folds: Iterable[Fold], fits: Callable[[Fold], bool] = lambda fold: True) -> tuple[Fold, ...]:
    """Folds of the same tuples in the same slices and groups as one, which keeps what any of them keeps, once; where that
    `fits` into a frame."""
    found: list[Fold] = []
    for fold in folds:
        wider = (
            (at, _united(other, fold)) for at, other in enumerate(found) if sharing_key(other) == sharing_key(fold)
        )
        at, one = next(((at, one) for at, one in wider if fits(one)), (len(found), fold))
        found[at : at + 1] = [one]
    return tuple(found)


def _united(a: Fold, b: Fold) -> Fold:
    states: list[tuple[str, MoteExpression]] = []
    for kind, value in (*a.states, *b.states):
        same = [i for i, (k, v) in enumerate(states) if v == value and (k == kind or {k, kind} <= set(SUMS))]
        if not same:
            states.append((kind, value))
        elif kind in SUMS and SUMS.index(kind) > SUMS.index(states[same[0]][0]):
            states[same[0]] = kind, value
    return replace(a, states=tuple(states))


def has_all_states(wider: Fold, fold: Fold) -> bool:
    """Whether the states of `wider` contain all states of `fold`, over the same tuples, slices and groups."""
    return sharing_key(wider) == sharing_key(fold) and all(_places(wider, state) for state in fold.states)


def find_state(wider: Fold, state: tuple[str, MoteExpression]) -> int:
    """Return the index of the state in `wider` that contains a state of another fold."""
    return _places(wider, state)[0]


def _places(wider: Fold, state: tuple[str, MoteExpression]) -> list[int]:
    kind, value = state
    kinds = (kind,) if kind not in SUMS else SUMS[SUMS.index(kind) :]
    return [place for place, (k, v) in enumerate(wider.states) if v == value and k in kinds]


def sharing_key(fold: Fold) -> tuple[MoteOperator, str, SlicePattern, tuple[MoteExpression, ...]]:
    """Return the tuples, slices and groups of a fold; folds with equal keys can share partials."""
    return fold.child, fold.extent, fold.slices, fold.keys


def free_numbers(last: int, used: Collection[int]) -> list[int]:
    """Return the fold numbers that are not in `used`, from the one after `last` on.

    The number that was released longest ago comes first: the fewest frames on the way still have it.
    """
    circle = [*FOLD_NUMBERS[last:], *FOLD_NUMBERS[:last]]
    return [number for number in circle if number not in used]
