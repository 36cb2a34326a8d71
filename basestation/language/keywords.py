"""The words of the language: which are reserved, which begin something, and which only SQL knows."""

from difflib import get_close_matches
from functools import lru_cache

from acquisition.schema import Type
from gateway.source import did_you_mean

RESERVED = frozenset("SELECT FROM WHERE GROUP BY HAVING AS AND OR NOT RSTREAM ISTREAM DSTREAM".split())
"""Never names (SEMANTICS 2.1). No other word is reserved: what follows decides whether it is a keyword."""

CONVERTERS = frozenset(("RSTREAM", "ISTREAM", "DSTREAM"))
JOINS = frozenset("JOIN INNER LEFT RIGHT FULL CROSS".split())
NEVER_ALIASES = JOINS | frozenset("FOR SINCE ACQUIRE DELIVER LIFETIME UNION ON ORDER LIMIT EXPLAIN".split())
"""Names, but as an alias only behind AS (SEMANTICS 10.1)."""

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
"""What can follow FROM, in the order of the grammar."""

STATEMENT_CLAUSES = ("FOR", "SINCE", "ACQUIRE", "DELIVER", "LIFETIME")
"""What concerns a whole statement, and never stands in a subquery."""

CLAUSE_STARTS = frozenset(QUERY_CLAUSES)
STATEMENTS = ("SELECT", "RSTREAM", "ISTREAM", "DSTREAM", "EXPLAIN", "REVISE", "DELETE", "INSERT")

SQL_STATEMENTS = {
    "WITH": "put the query where it is used: FROM (SELECT …) AS name",
    "UPDATE": "what was measured is corrected with REVISE name SET a = e WHERE p",
    "MERGE": "what was measured is corrected with REVISE name SET a = e WHERE p",
    "TRUNCATE": "tuples are taken back with DELETE FROM name WHERE p",
    "CREATE": "extents are declared in the schema of the deployment, not in a query",
    "ALTER": "extents are declared in the schema of the deployment, not in a query",
    "DROP": "extents are declared in the schema of the deployment, not in a query",
    "VALUES": "rows are added with INSERT INTO name (columns) VALUES …",
    "TABLE": "write SELECT * FROM name",
    "BEGIN": "there are no transactions; each statement stands for itself",
    "COMMIT": "there are no transactions; each statement stands for itself",
    "ROLLBACK": "there are no transactions; each statement stands for itself",
}
"""First words of SQL's statements that SNEEql does not have, and what it has for them."""

SQL_WORDS = {
    "OVER": "windows stand in FROM: name [FROM NOW-10 TO NOW SLIDE 1 MIN]",
    "FILTER": "use an aggregate of CASE WHEN … THEN … END",
    "WITHIN": "use MEDIAN(e) or QUANTILE(e, q)",
    "INTERSECT": "use a join, or EXISTS in a one-off query",
    "EXCEPT": "use NOT EXISTS in a one-off query",
    "MINUS": "use NOT EXISTS in a one-off query",
    "OFFSET": "LIMIT n is all there is; select by an attribute or by tick",
    "FETCH": "write LIMIT n",
    "TOP": "write LIMIT n after the query",
    "WINDOW": "windows stand in FROM: name [FROM NOW-10 TO NOW SLIDE 1 MIN]",
    "QUALIFY": "put the query into FROM as a subquery and select with WHERE",
    "NATURAL": "write JOIN … ON with the columns that shall be equal",
    "USING": "write ON with the columns that shall be equal",
    "TABLESAMPLE": "a coarser interval is asked for with ACQUIRE EVERY n unit",
    "COLLATE": "strings are compared by code point",
    "RLIKE": "use LIKE with % and _",
    "REGEXP": "use LIKE with % and _",
    "ILIKE": "use LOWER(e) LIKE 'pattern'",
    "SIMILAR": "use LIKE with % and _",
    "DIV": "/ of two integers cuts the fraction off",
    "MOD": "write a % b",
    "XOR": "write a <> b, or (a OR b) AND NOT (a AND b)",
    "INTO": "the results of a query go to whoever asks for them",
    "ROLLUP": "GROUP BY takes columns; ask several queries with UNION ALL",
}
"""Words that SQL has at a place where SNEEql takes them for an alias, and what to write instead."""


_OTHER_TYPES = {
    **dict.fromkeys(("INT", "BIGINT", "SMALLINT", "TINYINT", "LONG", "SHORT", "BYTE"), "integer"),
    **dict.fromkeys(("REAL", "DOUBLE", "DECIMAL", "NUMERIC", "NUMBER"), "float"),
    **dict.fromkeys(("TEXT", "VARCHAR", "CHAR", "CLOB"), "string"),
    **dict.fromkeys(("TIMESTAMP", "DATETIME", "DATE", "INSTANT"), "time"),
}
"""What other languages call the types."""


def suggest_type(name):
    """A help for a name that is no type."""
    word = name.upper()
    if word in ("BOOL", "BOOLEAN"):
        return "there are no booleans; an integer that is 0 or 1 says the same"
    known = _OTHER_TYPES.get(word)
    return f"did you mean `{known}`?" if known else did_you_mean(name, [type.value for type in Type])


@lru_cache(maxsize=4096)
def find_nearest(word, candidates):
    """The one of `candidates` (a tuple, in capitals) that `word` is most likely a slip of; None where none is near."""
    if len(word) < 3:
        return None
    near = get_close_matches(word.upper(), candidates, n=1, cutoff=0.7)
    return near[0] if near else None
