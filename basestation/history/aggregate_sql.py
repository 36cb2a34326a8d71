"""Aggregate SQL: the aggregates of the language in Spark's own, exact for integers and scaled attributes (semantics 5.5, 10.5).

A sum of integers is two sums, of the upper and the lower 32 bits, so it is exact before it is rounded or divided; one sum where the footers of
the files show that it fits. A sum of floats is
Spark's: it may differ in the last digits, so it is marked as inexact.
"""

from acquisition.schema import Type
from basestation.algebra import expressions as ex
from basestation.algebra.expressions import Aggregate
from basestation.history.refusal import SparkRefusedError
from basestation.history.scalar_sql import EXACT, Scalar, ScalarCompiler, unscale

_ROUNDED = ("QUANTILE", "STDEV")


def compile_aggregate(
    scalars: ScalarCompiler, aggregate: Aggregate, order: str | None, most_rows: int | None = None
) -> Scalar:
    """An aggregate over the rows of a group, which has no more than `most_rows`.

    `order` is the key by which FIRST and LAST go, None where there is none.
    """
    name, argument = aggregate.name, aggregate.argument
    if argument is None:
        return Scalar("count(1)")
    scale = argument.column.scale if isinstance(argument, ex.Attr) else None
    is_exact = scalars.scalar(argument).is_exact
    text = scalars.plain(argument.column) if isinstance(argument, ex.Attr) else scalars.value(argument)
    type_ = argument.type or Type.INTEGER
    whole = scale is not None or type_.whole
    if aggregate.distinct:
        if not is_exact:
            raise SparkRefusedError(
                "COUNT(DISTINCT …) compares values that Spark rounds otherwise than the live engine"
            )
        return Scalar(f"count(DISTINCT {text})")
    largest = scalars.largest.get(argument.column) if isinstance(argument, ex.Attr) else None
    most = None if largest is None or most_rows is None else largest * most_rows
    match name:
        case "COUNT":
            return Scalar(f"count({text})")
        case "MIN" | "MAX":
            return Scalar(_scaled(f"{name.lower()}({text})", scale), is_exact=is_exact)
        case "FIRST" | "LAST":
            if order is None:
                raise SparkRefusedError(f"{name} over more than one stream")
            pick = "min_by" if name == "FIRST" else "max_by"
            return Scalar(
                _scaled(f"{pick}({text}, {order}) FILTER (WHERE {text} IS NOT NULL)", scale), is_exact=is_exact
            )
        case "SUM" if whole and scale is None:
            return Scalar(_whole_sum(text) if most is None or most >= 2**63 else f"sum({text})")
        case "SUM" if scale is not None:
            return Scalar(_quotient(text, "1L", scale, most))
        case "SUM":
            return Scalar(f"sum({text})", True, False)
        case "AVG" if whole:
            return Scalar(_quotient(text, f"count({text})", scale or 0, most))
        case "AVG":
            return Scalar(f"avg({text})", True, False)
        case "VARIANCE" | "STDEV":
            return _spread(name, text, whole, scale or 0)
        case "MEDIAN" | "QUANTILE":
            share = 0.5 if aggregate.share is None else aggregate.share
            found = f"percentile({text}, {share!r}D)"
            return Scalar(found if not scale else f"({found} / 1E{scale}D)", is_exact=False)
    raise SparkRefusedError(f"{name} has no form in Spark")


def _scaled(text: str, scale: int | None) -> str:
    return text if scale is None else unscale(text, scale)


def _whole_sum(text: str) -> str:
    """The exact sum of integers; null outside 64 bits."""
    high, low, total = _sum_parts(text)
    return (
        f"(CASE WHEN abs({high}) < 1048576L THEN {high} * 4294967296L + {low} "
        f"WHEN {total} BETWEEN -9223372036854775808 AND 9223372036854775807 THEN CAST({total} AS BIGINT) END)"
    )


def _sum_parts(text: str) -> tuple[str, str, str]:
    """(the sum of the high halves of integers, that of the low halves, the exact sum of the integers as a decimal)."""
    high, low = f"sum(shiftright({text}, 32))", f"sum({text} & 4294967295L)"
    total = f"(CAST({high} AS DECIMAL(19,0)) * CAST(4294967296L AS DECIMAL(10,0)) + CAST({low} AS DECIMAL(19,0)))"
    return high, low, total


def _quotient(text: str, divisor: str, scale: int, most: int | None = None) -> str:
    """The exact sum of integers, not above `most`, divided by `divisor` and 10^scale, rounded once; null without values."""
    power = 10**scale
    if most is not None and most < EXACT and power < 10**9:
        return f"(CAST(sum({text}) AS DOUBLE) / CAST({divisor} * {power}L AS DOUBLE))"
    high, low, total = _sum_parts(text)
    small = f"({high} * 4294967296L + {low})"
    near = f"CAST({small} AS DOUBLE) / CAST({divisor} * {power}L AS DOUBLE)" if power < 10**9 else None
    far = f"CAST(CAST({total} AS DECIMAL(38,9)) / CAST({divisor} AS DECIMAL(10,0)) / CAST('1E{scale}' AS DECIMAL(19,0)) AS DOUBLE)"
    if scale == 0 and divisor == "1L":
        far = f"CAST({total} AS DOUBLE)"
    if near is None:
        return far
    return f"(CASE WHEN abs({high}) < 1048576L AND {low} < {EXACT // 2}L THEN {near} ELSE {far} END)"


def _spread(name: str, text: str, whole: bool, scale: int) -> Scalar:
    if not whole:
        return Scalar(f"{'var_pop' if name == 'VARIANCE' else 'stddev_pop'}({text})", True, False)
    value = f"CAST({text} AS DECIMAL(19,0))"
    count = f"CAST(count({text}) AS DECIMAL(10,0))"
    spread = f"({count} * CAST(sum({value} * {value}) AS DECIMAL(38,0)) - CAST(sum({value}) AS DECIMAL(28,0)) * CAST(sum({value}) AS DECIMAL(28,0)))"
    squared = f"(CAST(count({text}) AS DOUBLE) * CAST(count({text}) AS DOUBLE) * 1E{2 * scale}D)"
    found = f"(CAST({spread} AS DOUBLE) / {squared})"
    guarded = (
        f"(CASE WHEN count({text}) = 0 THEN NULL WHEN {spread} IS NULL THEN "
        f"CAST(raise_error('{name}: the squares do not fit into 38 digits') AS DOUBLE) ELSE {found} END)"
    )
    return Scalar(guarded) if name == "VARIANCE" else Scalar(f"sqrt({guarded})", is_exact=False)
