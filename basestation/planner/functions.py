"""The functions and aggregates of the language and their signatures (semantics 10.4, 10.5)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from acquisition.schema import Type
from basestation.algebra.expressions import common_type

INTEGER, FLOAT, STRING = Type.INTEGER, Type.FLOAT, Type.STRING


@dataclass(frozen=True, slots=True)
class Signature:
    """`takes` is `number`, `string`, `alike` (any type, all comparable) or `any`; `gives` maps argument types to one."""

    usage: str
    accepts: str
    min_arguments: int
    max_arguments: int | None
    result_type: Callable[[Sequence[Type | None]], Type]


def _same(types: Sequence[Type | None]) -> Type:
    return types[0] or INTEGER


def _common(types: Sequence[Type | None]) -> Type:
    return common_type(*types) or INTEGER


def _always(result: Type) -> Callable[[Sequence[Type | None]], Type]:
    return lambda types: result


def _sum(types: Sequence[Type | None]) -> Type:
    return FLOAT if types[0] is FLOAT else INTEGER


FUNCTIONS = {
    "ABS": Signature("ABS(x)", "number", 1, 1, _same),
    "ROUND": Signature("ROUND(x)", "number", 1, 1, _same),
    "FLOOR": Signature("FLOOR(x)", "number", 1, 1, _same),
    "CEIL": Signature("CEIL(x)", "number", 1, 1, _same),
    "SQRT": Signature("SQRT(x)", "number", 1, 1, _always(FLOAT)),
    "LN": Signature("LN(x)", "number", 1, 1, _always(FLOAT)),
    "EXP": Signature("EXP(x)", "number", 1, 1, _always(FLOAT)),
    "POWER": Signature("POWER(x, y)", "number", 2, 2, _always(FLOAT)),
    "DIST": Signature("DIST(x1, y1, x2, y2)", "number", 4, 4, _always(FLOAT)),
    "LEAST": Signature("LEAST(a, b, …)", "alike", 1, None, _common),
    "GREATEST": Signature("GREATEST(a, b, …)", "alike", 1, None, _common),
    "COALESCE": Signature("COALESCE(a, b, …)", "alike", 1, None, _common),
    "NULLIF": Signature("NULLIF(a, b)", "alike", 2, 2, _same),
    "LOWER": Signature("LOWER(s)", "string", 1, 1, _always(STRING)),
    "UPPER": Signature("UPPER(s)", "string", 1, 1, _always(STRING)),
    "LENGTH": Signature("LENGTH(s)", "string", 1, 1, _always(INTEGER)),
}

AGGREGATES = {
    "COUNT": Signature("COUNT(*) or COUNT(e)", "any", 1, 1, _always(INTEGER)),
    "SUM": Signature("SUM(x)", "number", 1, 1, _sum),
    "AVG": Signature("AVG(x)", "number", 1, 1, _always(FLOAT)),
    "MIN": Signature("MIN(e)", "any", 1, 1, _same),
    "MAX": Signature("MAX(e)", "any", 1, 1, _same),
    "STDEV": Signature("STDEV(x)", "number", 1, 1, _always(FLOAT)),
    "VARIANCE": Signature("VARIANCE(x)", "number", 1, 1, _always(FLOAT)),
    "FIRST": Signature("FIRST(e)", "any", 1, 1, _same),
    "LAST": Signature("LAST(e)", "any", 1, 1, _same),
    "MEDIAN": Signature("MEDIAN(x)", "number", 1, 1, _always(FLOAT)),
    "QUANTILE": Signature("QUANTILE(x, q) with q from 0 to 1", "number", 2, 2, _always(FLOAT)),
}

TYPES = {t.value: t for t in Type}

OTHER_NAMES = {
    "MEAN": "AVG", "AVERAGE": "AVG", "STDDEV": "STDEV", "STD": "STDEV", "STDDEV_SAMP": "STDEV", "VAR": "VARIANCE",
    "PERCENTILE": "QUANTILE", "PERCENTILE_CONT": "QUANTILE", "QUANTILE_CONT": "QUANTILE", "TOTAL": "SUM", "CEILING": "CEIL",
    "POW": "POWER", "LOG": "LN", "IFNULL": "COALESCE", "ISNULL": "COALESCE", "NVL": "COALESCE", "LEN": "LENGTH", "LCASE": "LOWER",
    "UCASE": "UPPER", "MINIMUM": "MIN", "MAXIMUM": "MAX",
}  # fmt: skip
"""The names of functions in other languages."""
_PARTS = {
    "HOUR": "`tick / 3600 % 24` is the hour",
    "MINUTE": "`tick / 60 % 60` is the minute",
    "SECOND": "`tick % 60` is the second",
    "DAY": "`tick / 86400` is the number of days since 1970",
}
_CLOCK = ("NOW", "CURRENT_TIMESTAMP", "GETDATE", "SYSDATE", "CURRENT_TIME", "CURRENT_DATE", "LOCALTIME")
_DATES = (
    "EXTRACT",
    "DATE_PART",
    "DATE_TRUNC",
    "TIME_BUCKET",
    "DATE",
    "YEAR",
    "MONTH",
    "WEEKDAY",
    "DAYOFWEEK",
    "STRFTIME",
)


def find_elsewhere(name: str) -> str | None:
    """Return the help for a function that other languages have; None for other names."""
    if name in OTHER_NAMES:
        signature = FUNCTIONS.get(OTHER_NAMES[name]) or AGGREGATES[OTHER_NAMES[name]]
        return f"it is called {OTHER_NAMES[name]} here: {signature.usage}"
    if name in _CLOCK:
        return "`tick` is the time of a tuple; a window says how far it looks back: [FROM NOW-5 MIN TO NOW SLIDE 1 MIN]"
    if name in _PARTS:
        return f"times are ticks: with ticks of 1 s, {_PARTS[name]} in UTC"
    if name in _DATES:
        return "times are ticks: with ticks of 1 s, `tick / 3600 % 24` is the hour in UTC, and SLIDE 1 DAY makes windows of days"
    return None
