"""The catalogue of errors that people can cause: one entry each, with an example that the tests run.

Codes are grouped by kind: SN1 syntax, SN2 name, SN3 type, SN4 static, SN5 input, SN6 later. A code, once published,
keeps its meaning. `docs/errors.md` is made from this table.
"""

from dataclasses import dataclass

KINDS = {
    "syntax": "the text does not follow the grammar",
    "name": "a name that does not exist, or that is not unique",
    "type": "values of types that do not go together, or a predicate where a value is needed",
    "static": "well-formed and well-typed, but not a query that can be asked",
    "input": "data that cannot be taken, or that the query cannot be evaluated on",
    "later": "a valid query that this version cannot execute yet",
}

ROAD = (
    "road: sensed (site:integer, time:integer, temp:integer, vibration:integer) every 1 min at sites 1, 2, 3, 4\n"
    "traffic: pushed (site:integer, time:integer, weight:integer, vehicle:integer) wait 5 sec late revise by 1 hour\n"
    "tempClass: stored (temp:integer, category:string) from 'temp_class.csv'\n"
)
"""The schema that the examples are asked against: the paper's, with clauses."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One error: what it means, what to do, and the smallest text that causes it."""

    kind: str
    title: str
    explanation: str
    example: str
    schema: bool = False  # the example is a schema, not a query over ROAD


CATALOGUE = {
    # --- syntax ---
    "SN101": Entry("syntax", "unknown character", "A character that no token begins with.", "SELECT temp ? FROM road"),
    "SN102": Entry("syntax", "string without an end", "A string begins with a quote and ends with one; a quote inside is doubled.", "SELECT temp FROM road WHERE 'a = temp"),
    "SN103": Entry("syntax", "comment without an end", "`/*` needs its `*/`.", "SELECT temp FROM road /* all of it"),
    "SN104": Entry("syntax", "malformed number", "A number is `12`, `1.5`, `2e-3` or `1.5E6`.", "SELECT 12abc FROM road"),
    "SN105": Entry("syntax", "something else was expected here", "The grammar has no place for this word or sign here.", "SELECT FROM road"),
    "SN106": Entry("syntax", "unknown unit", "Units are MS, SEC, MIN, HOUR, DAY and ROW, in any case, also plural and long.", "SELECT temp FROM road [FROM NOW-5 TO NOW SLIDE 5 FORTNIGHT]"),
    "SN107": Entry("syntax", "a positive whole number is needed", "SLIDE, offsets, SCAN and durations count whole units, at least 1.", "SELECT temp FROM road [FROM NOW-0 TO NOW SLIDE 5 MIN]"),
    "SN108": Entry("syntax", "comparisons do not chain", "`1 < x < 3` has no meaning here; write `1 < x AND x < 3`.", "SELECT temp FROM road WHERE 1 < temp < 3"),
    "SN109": Entry("syntax", "nested too deeply", "Parentheses, subqueries and operators nest at most 100 deep.", "SELECT " + "(" * 101 + "temp" + ")" * 101 + " FROM road"),
    "SN110": Entry("syntax", "said twice", "A clause may stand once.", "SELECT temp FROM road ACQUIRE EVERY 2 MIN ACQUIRE EVERY 3 MIN"),
    "SN111": Entry("syntax", "a reserved word as a name", "SELECT FROM WHERE GROUP BY HAVING AS AND OR NOT RSTREAM ISTREAM DSTREAM are never names.", "SELECT temp AS group FROM road"),
    "SN112": Entry("syntax", "not a part of the language", "SQL has it, SNEEql does not (SEMANTICS 2.1, 10).", "SELECT temp FROM road UNION SELECT temp FROM road"),
}
