"""Multiples: the least multiple of an interval that is enough, where not each one above an enough one is.

How rarely something may be sampled beside others depends on what its interval has in common with theirs: of those of three
minutes and of four, motes wake up each minute; and of one and the same, much is shared. Among the multiples that have the same
divisors in common with the others, more is never worse, but for what is shared; so few of them have to be tried.
"""

from collections.abc import Callable
from math import gcd, isqrt


def find_least_multiple(first: int, last: int, beside: int, enough: Callable[[int], bool]) -> int | None:
    """The least number from `first` to `last` that is enough; None if none is.

    Of two that have the same greatest common divisor with `beside`, the greater is enough if the other one is, unless that is
    the divisor itself.
    """
    divisors = [divisor for divisor in _divisors(beside) if divisor <= last]
    found = next((divisor for divisor in divisors if divisor >= first and enough(divisor)), None)
    for divisor in reversed(divisors):
        top = _before(found or last + 1, divisor, beside)
        if top >= first and enough(top):
            found = _least_alike(first, top, divisor, beside, enough)
    return found


def _least_alike(first: int, top: int, divisor: int, beside: int, enough: Callable[[int], bool]) -> int:
    """The least of one kind, of which `top` is enough. At first what is tried is doubled: most are found soon."""
    few = first - 1
    while (middle := _after(few, divisor, beside)) < top:
        doubled = 2 * few if few >= first else middle
        middle = max(middle, _before(min(doubled, (few + top) // 2) + 1, divisor, beside))
        if enough(middle):
            top = middle
        else:
            few = middle
    return top


def _before(number: int, divisor: int, beside: int) -> int:
    """The greatest below a number that has just that divisor in common; 0 if there is none."""
    times = (number - 1) // divisor
    while times > 0 and gcd(times, beside // divisor) != 1:
        times -= 1
    return max(0, times) * divisor


def _after(number: int, divisor: int, beside: int) -> int:
    """The least above a number that has just that divisor in common."""
    times = number // divisor + 1
    while gcd(times, beside // divisor) != 1:
        times += 1
    return times * divisor


def _divisors(number: int) -> list[int]:
    small = [each for each in range(1, isqrt(number) + 1) if number % each == 0]
    return sorted({*small, *(number // each for each in small)})
