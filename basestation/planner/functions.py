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
