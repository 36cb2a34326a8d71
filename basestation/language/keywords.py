"""The keywords of the language: reserved words, first words of clauses and statements, and words of SQL alone."""

from difflib import get_close_matches
from functools import lru_cache

from acquisition.schema import Type
from gateway.source import did_you_mean

RESERVED = frozenset("SELECT FROM WHERE GROUP BY HAVING AS AND OR NOT RSTREAM ISTREAM DSTREAM".split())
"""Never names (semantics 2.1). Any other word is a keyword or a name by what follows it."""

CONVERTERS = frozenset(("RSTREAM", "ISTREAM", "DSTREAM"))
JOINS = frozenset("JOIN INNER LEFT RIGHT FULL CROSS".split())
NEVER_ALIASES = JOINS | frozenset("FOR SINCE ACQUIRE DELIVER LIFETIME UNION ON ORDER LIMIT EXPLAIN".split())
"""Names, but as an alias only after AS (semantics 10.1)."""

QUERY_CLAUSES = (
    "WHERE",
    "GROUP",
    "HAVING",
    "UNION",
    "ORDER",
    "LIMIT",
    "FOR",
    "SINCE",
    "ACQUIRE",
    "DELIVER",
    "LIFETIME",
)
"""First words of the clauses that can follow FROM, in the order of the grammar."""

STATEMENT_CLAUSES = ("FOR", "SINCE", "ACQUIRE", "DELIVER", "LIFETIME")
"""First words of the clauses of a whole statement; they never stand in a subquery."""

CLAUSE_STARTS = frozenset(QUERY_CLAUSES)
STATEMENTS = ("SELECT", "RSTREAM", "ISTREAM", "DSTREAM", "EXPLAIN", "REVISE", "DELETE", "INSERT")

SQL_STATEMENTS = {
    "WITH": "put the query where it is used: FROM (SELECT …) AS name",
    "UPDATE": "correct readings with REVISE name SET a = e WHERE p",
    "MERGE": "correct readings with REVISE name SET a = e WHERE p",
    "TRUNCATE": "delete tuples with DELETE FROM name WHERE p",
    "CREATE": "extents are declared in the schema of the deployment, not in a query",
    "ALTER": "extents are declared in the schema of the deployment, not in a query",
    "DROP": "extents are declared in the schema of the deployment, not in a query",
    "VALUES": "add rows with INSERT INTO name (columns) VALUES …",
    "TABLE": "write SELECT * FROM name",
    "BEGIN": "there are no transactions; each statement takes effect alone",
    "COMMIT": "there are no transactions; each statement takes effect alone",
    "ROLLBACK": "there are no transactions; each statement takes effect alone",
}
"""First words of SQL statements that SNEEql does not have, each with what to write instead."""

SQL_WORDS = {
    "OVER": "write the window in FROM: name [FROM NOW-10 TO NOW SLIDE 1 MIN]",
    "FILTER": "use an aggregate of CASE WHEN … THEN … END",
    "WITHIN": "use MEDIAN(e) or QUANTILE(e, q)",
    "INTERSECT": "use a join, or EXISTS in a one-off query",
    "EXCEPT": "use NOT EXISTS in a one-off query",
    "MINUS": "use NOT EXISTS in a one-off query",
    "OFFSET": "there is only LIMIT n; select by an attribute or by tick",
    "FETCH": "write LIMIT n",
    "TOP": "write LIMIT n after the query",
    "WINDOW": "write the window in FROM: name [FROM NOW-10 TO NOW SLIDE 1 MIN]",
    "QUALIFY": "put the query into FROM as a subquery and select with WHERE",
    "NATURAL": "write JOIN … ON with the columns to compare",
    "USING": "write ON with the columns to compare",
    "TABLESAMPLE": "request a coarser interval with ACQUIRE EVERY n unit",
    "COLLATE": "strings are compared by code point",
    "RLIKE": "use LIKE with % and _",
    "REGEXP": "use LIKE with % and _",
    "ILIKE": "use LOWER(e) LIKE 'pattern'",
    "SIMILAR": "use LIKE with % and _",
    "DIV": "/ of two integers truncates",
    "MOD": "write a % b",
    "XOR": "write a <> b, or (a OR b) AND NOT (a AND b)",
    "INTO": "the clients of the station read the results of a query",
    "ROLLUP": "GROUP BY takes columns; combine several queries with UNION ALL",
}
"""Words of SQL that SNEEql would read as an alias, each with what to write instead."""


_OTHER_TYPES = {
    **dict.fromkeys(("INT", "BIGINT", "SMALLINT", "TINYINT", "LONG", "SHORT", "BYTE"), "integer"),
    **dict.fromkeys(("REAL", "DOUBLE", "DECIMAL", "NUMERIC", "NUMBER"), "float"),
    **dict.fromkeys(("TEXT", "VARCHAR", "CHAR", "CLOB"), "string"),
    **dict.fromkeys(("TIMESTAMP", "DATETIME", "DATE", "INSTANT"), "time"),
}
"""Names of types in other languages."""


def suggest_type(name: str) -> str | None:
    """The help for a name that is not a type."""
    word = name.upper()
    if word in ("BOOL", "BOOLEAN"):
        return "there are no booleans; use an integer that is 0 or 1"
    known = _OTHER_TYPES.get(word)
    return f"did you mean `{known}`?" if known else did_you_mean(name, [type.value for type in Type])


@lru_cache(maxsize=4096)
def find_nearest(word: str, candidates: tuple[str, ...]) -> str | None:
    """The one of `candidates` (in capitals) of which `word` is most likely a typo; None if none is near."""
    if len(word) < 3:
        return None
    near = get_close_matches(word.upper(), candidates, n=1, cutoff=0.7)
    return near[0] if near else None
