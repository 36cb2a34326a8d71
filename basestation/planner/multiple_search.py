"""Finds the least multiple of an interval that satisfies a predicate that is monotone only within classes of multiples.

The sampling interval that LIFETIME allows depends on the intervals of the other queries. With intervals of three and four
minutes, motes wake up every minute; with equal intervals the queries share much work. Among the multiples with the same
greatest common divisor with the others, a longer interval is never worse, except the divisor itself, which shares most.
So the search tries few multiples.
"""

from collections.abc import Callable
from math import gcd, isqrt


def find_least_multiple(first: int, last: int, beside: int, enough: Callable[[int], bool]) -> int | None:
    """The least number from `first` to `last` that is enough; None if none is.

    Of two numbers with the same greatest common divisor with `beside`, the greater is enough if the smaller is, unless the
    smaller is the divisor itself.
    """
    divisors = [divisor for divisor in _divisors(beside) if divisor <= last]
    found = next((divisor for divisor in divisors if divisor >= first and enough(divisor)), None)
    for divisor in reversed(divisors):
        top = _before(found or last + 1, divisor, beside)
        if top >= first and enough(top):
            found = _least_in_class(first, top, divisor, beside, enough)
    return found


def _least_in_class(first: int, top: int, divisor: int, beside: int, enough: Callable[[int], bool]) -> int:
    """The least number of one class, in which `top` is enough: a doubling search, then a binary one."""
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
    """The greatest member of a divisor's class below a number; 0 if there is none."""
    times = (number - 1) // divisor
    while times > 0 and gcd(times, beside // divisor) != 1:
        times -= 1
    return max(0, times) * divisor


def _after(number: int, divisor: int, beside: int) -> int:
    """The least member of a divisor's class above a number."""
    times = number // divisor + 1
    while gcd(times, beside // divisor) != 1:
        times += 1
    return times * divisor


def _divisors(number: int) -> list[int]:
    small = [n for n in range(1, isqrt(number) + 1) if number % n == 0]
    return sorted({*small, *(number // n for n in small)})
