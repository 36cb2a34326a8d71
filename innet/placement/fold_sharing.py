"""Folds: which of them are one, where one keeps what another asks for, and what frames call them."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from innet.operators.fold import Fold
from innet.operators.mote_expression import MoteExpression

SUMS = ("COUNT", "SUM", "VARIANCE")
"""Each holds what those before it hold."""
FOLD_NUMBERS = range(1, 256)


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


def has_all_states(held: Fold, fold: Fold) -> bool:
    """Whether one fold keeps all that another asks for."""
    return sharing_key(held) == sharing_key(fold) and all(_fitting(held, state) for state in fold.states)


def find_covering_fold(fold: Fold, folds: Iterable[Fold]) -> Fold:
    """The first of some folds that keeps what a fold asks for."""
    return next(held for held in folds if has_all_states(held, fold))


def find_state(held: Fold, state: tuple[str, MoteExpression]) -> int:
    """Where a fold keeps what is a state of its own in another, which asks for no more than it keeps."""
    return _fitting(held, state)[0]


def _fitting(held: Fold, state: tuple[str, MoteExpression]) -> list[int]:
    kind, value = state
    kinds = [kind] if kind not in SUMS else SUMS[SUMS.index(kind) :]
    return [place for place, (k, v) in enumerate(held.states) if v == value and k in kinds]


def sharing_key(fold: Fold) -> tuple:
    """What folds have in common that take the same tuples into the same slices and groups."""
    return fold.child, fold.extent, fold.slices, fold.keys


def free_numbers(last: int, used: Collection[int]) -> list[int]:
    """Numbers that are free, from the one after `last` on: the longer one is not used, the fewer frames under way have it."""
    circle = [*FOLD_NUMBERS[last:], *FOLD_NUMBERS[:last]]
    return [number for number in circle if number not in used]
