"""Errors of a text: SN1 syntax, SN2 names, SN3 types."""

from basestation.errors.entry import ErrorEntry

SYNTAX = {
    "SN101": ErrorEntry(
        "syntax", "unknown character", "No token begins with this character.", "SELECT temp ? FROM road"
    ),
    "SN102": ErrorEntry(
        "syntax",
        "string without an end",
        "A string begins with a quote and ends with one; a quote inside is doubled.",
        "SELECT temp FROM road WHERE 'a = temp",
    ),
    "SN103": ErrorEntry(
        "syntax", "comment without an end", "`/*` needs its `*/`.", "SELECT temp FROM road /* all of it"
    ),
    "SN104": ErrorEntry(
        "syntax", "malformed number", "A number is `12`, `1.5`, `2e-3` or `1.5E6`.", "SELECT 12abc FROM road"
    ),
    "SN105": ErrorEntry(
        "syntax",
        "unexpected word or sign",
        "The grammar does not allow this word or sign here.",
        "SELECT FROM road",
    ),
    "SN106": ErrorEntry(
        "syntax",
        "unknown unit",
        "Units are MS, SEC, MIN, HOUR, DAY and ROW, in any case, also plural and long.",
        "SELECT temp FROM road [FROM NOW-5 TO NOW SLIDE 5 FORTNIGHT]",
    ),
    "SN107": ErrorEntry(
        "syntax",
        "a positive whole number is required",
        "SLIDE, offsets, SCAN and durations count whole units, at least 1.",
        "SELECT temp FROM road [FROM NOW-0 TO NOW SLIDE 5 MIN]",
    ),
    "SN108": ErrorEntry(
        "syntax",
        "comparisons do not chain",
        "`1 < x < 3` has no meaning here; write `1 < x AND x < 3`.",
        "SELECT temp FROM road WHERE 1 < temp < 3",
    ),
    "SN109": ErrorEntry(
        "syntax",
        "nested too deeply",
        "Parentheses, subqueries and operators nest at most 100 deep; at most 300 JOINs stand in a row.",
        "SELECT " + "(" * 101 + "temp" + ")" * 101 + " FROM road",
    ),
    "SN110": ErrorEntry(
        "syntax",
        "appears twice",
        "A clause may appear once.",
        "SELECT temp FROM road ACQUIRE EVERY 2 MIN ACQUIRE EVERY 3 MIN",
    ),
    "SN111": ErrorEntry(
        "syntax",
        "a reserved word as a name",
        "SELECT FROM WHERE GROUP BY HAVING AS AND OR NOT RSTREAM ISTREAM DSTREAM are never names.",
        "SELECT temp AS group FROM road",
    ),
    "SN112": ErrorEntry(
        "syntax",
        "not a part of the language",
        "SQL has it, SNEEql does not (semantics 2.1, 10).",
        "SELECT temp FROM road UNION SELECT temp FROM road",
    ),
}

NAME = {
    "SN201": ErrorEntry(
        "name",
        "unknown extent or entry of FROM",
        "Neither the schema nor FROM has an entry of this name.",
        "SELECT temp FROM raod",
    ),
    "SN202": ErrorEntry(
        "name", "unknown column", "No entry of FROM has a column of this name.", "SELECT tmep FROM road"
    ),
    "SN203": ErrorEntry(
        "name",
        "ambiguous column",
        "More than one column has this name; add a qualifier.",
        "SELECT site FROM road [NOW], traffic [FROM NOW TO NOW SLIDE 1 MIN]",
    ),
    "SN204": ErrorEntry(
        "name",
        "two entries with one name",
        "Each entry of FROM needs a name of its own.",
        "SELECT 1 AS one FROM road [NOW], road [NOW]",
    ),
    "SN205": ErrorEntry(
        "name",
        "unknown function",
        "There is no function or aggregate of this name (semantics 10.4, 10.5).",
        "SELECT SQUARE(temp) FROM road",
    ),
    "SN206": ErrorEntry(
        "name", "unknown type", "The types are integer, float, string and time.", "SELECT CAST(temp AS real) FROM road"
    ),
    "SN207": ErrorEntry(
        "name",
        "unknown unit of measurement",
        "Units of attributes are UCUM codes, for example Cel, %, m/s2.",
        "r: sensed (t:float {unit 'Celsius'}) every 1 min at sites 1",
        schema=True,
    ),
    "SN208": ErrorEntry(
        "name",
        "declared twice",
        "Each extent, and each attribute within an extent, needs a name of its own.",
        "t: stored (a:integer, a:float)",
        schema=True,
    ),
    "SN209": ErrorEntry(
        "name",
        "tick or index of the tuples of a window",
        "Tuples lose their tags when they enter a window (semantics 1.7).",
        "SELECT tick FROM road [NOW]",
    ),
    "SN210": ErrorEntry(
        "name",
        "a name that cannot be declared",
        "Every tuple of a stream has tick and index already; names that begin with an underscore belong to the system.",
        "t: pushed (tick:integer)",
        schema=True,
    ),
}

TYPE = {
    "SN301": ErrorEntry(
        "type",
        "numbers are required",
        "Arithmetic and aggregates such as SUM and AVG take numbers.",
        "SELECT category + 1 FROM tempClass",
    ),
    "SN302": ErrorEntry(
        "type",
        "a string compared with a number",
        "Values of these types are never equal, less or greater.",
        "SELECT temp FROM tempClass WHERE category = 3",
    ),
    "SN303": ErrorEntry(
        "type",
        "a value is required",
        "A predicate has no value: there are no booleans (semantics 1.8).",
        "SELECT temp > 3 FROM road",
    ),
    "SN304": ErrorEntry(
        "type",
        "a predicate is required",
        "WHERE, HAVING, ON, WHEN, AND, OR and NOT take predicates.",
        "SELECT temp FROM road WHERE temp",
    ),
    "SN305": ErrorEntry(
        "type",
        "an argument of another type",
        "The function takes values of another type, or all of one type.",
        "SELECT UPPER(temp) FROM road",
    ),
    "SN306": ErrorEntry(
        "type",
        "parts of UNION ALL that differ",
        "All parts have the same number of columns, of the same types.",
        "SELECT temp FROM road UNION ALL SELECT site, weight FROM traffic",
    ),
    "SN307": ErrorEntry(
        "type",
        "a call that does not fit the function",
        "The number of arguments, `*` or DISTINCT does not fit.",
        "SELECT ABS(temp, 1) FROM road",
    ),
    "SN308": ErrorEntry(
        "type",
        "a number out of range",
        "Integers have 64 bits, floats are IEEE doubles.",
        "SELECT temp FROM road WHERE temp < 9223372036854775808",
    ),
    "SN309": ErrorEntry(
        "type",
        "a subquery with more than one column",
        "A subquery in place of a value has one column.",
        "SELECT category FROM tempClass WHERE temp = (SELECT temp, category FROM tempClass)",
    ),
    "SN310": ErrorEntry(
        "type",
        "a value of another type than its attribute",
        "An integer is converted to a float; there is no other implicit conversion.",
        "REVISE road SET temp = 'warm' WHERE site = 2",
    ),
}
