"""The catalogue of errors that people can cause: one entry each, with an example that the tests run.

Codes are grouped by kind: SN1 syntax, SN2 name, SN3 type, SN4 static, SN5 input, SN6 later, SN7
deployment. A code, once published, keeps its meaning. `docs/errors.md` is made from this table.
"""

from dataclasses import dataclass

KINDS = {
    "syntax": "the text does not follow the grammar",
    "name": "a name that does not exist, or that is not unique",
    "type": "values of types that do not go together, or a predicate where a value is needed",
    "static": "well-formed and well-typed, but not a query that can be asked",
    "input": "data that cannot be taken, or that the query cannot be evaluated on",
    "later": "a valid query that this version cannot execute yet",
    "deployment": "a description of a network that cannot be taken",
}

ROAD = (
    "road: sensed (site:integer, time:integer, temp:integer, vibration:integer) every 1 min at sites 1, 2, 3, 4\n"
    "traffic: pushed (site:integer, time:integer, weight:integer, vehicle:integer) wait 5 sec late revise by 1 hour\n"
    "tempClass: stored (temp:integer, category:string) from 'temp_class.csv'\n"
    "probe: sensed (site:integer, v:float) every 10 sec at sites 1, 2 wait 30 sec late drop\n"
)
"""The schema that the examples are asked against: the paper's, with clauses, and one more."""

TANK = """name = "tank"
[gateways]
0 = { at = [0, 0] }
[boards.probe]
hardware = "telosb"
battery_mah = 2900
sensors.level = { raw = [0, 4095], scale = 2, unit = "m" }
[motes]
1 = { at = [8, 3], board = "probe" }
[links]
table = [[0, 1, 0.98], [1, 0, 0.95]]
[extents]
text = "tank: sensed (level:float {scale 2}) every 1 min at sites 1"
"""
"""A whole deployment, which the examples about deployments spoil."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One error: what it means, what to do, and the smallest text that causes it."""

    kind: str
    title: str
    explanation: str
    example: str
    schema: bool = False  # the example is a schema, not a query over ROAD; that of kind deployment is a deployment


CATALOGUE = {
    # --- syntax ---
    "SN101": Entry("syntax", "unknown character", "A character that no token begins with.", "SELECT temp ? FROM road"),
    "SN102": Entry(
        "syntax",
        "string without an end",
        "A string begins with a quote and ends with one; a quote inside is doubled.",
        "SELECT temp FROM road WHERE 'a = temp",
    ),
    "SN103": Entry("syntax", "comment without an end", "`/*` needs its `*/`.", "SELECT temp FROM road /* all of it"),
    "SN104": Entry(
        "syntax", "malformed number", "A number is `12`, `1.5`, `2e-3` or `1.5E6`.", "SELECT 12abc FROM road"
    ),
    "SN105": Entry(
        "syntax",
        "something else was expected here",
        "The grammar has no place for this word or sign here.",
        "SELECT FROM road",
    ),
    "SN106": Entry(
        "syntax",
        "unknown unit",
        "Units are MS, SEC, MIN, HOUR, DAY and ROW, in any case, also plural and long.",
        "SELECT temp FROM road [FROM NOW-5 TO NOW SLIDE 5 FORTNIGHT]",
    ),
    "SN107": Entry(
        "syntax",
        "a positive whole number is needed",
        "SLIDE, offsets, SCAN and durations count whole units, at least 1.",
        "SELECT temp FROM road [FROM NOW-0 TO NOW SLIDE 5 MIN]",
    ),
    "SN108": Entry(
        "syntax",
        "comparisons do not chain",
        "`1 < x < 3` has no meaning here; write `1 < x AND x < 3`.",
        "SELECT temp FROM road WHERE 1 < temp < 3",
    ),
    "SN109": Entry(
        "syntax",
        "nested too deeply",
        "Parentheses, subqueries and operators nest at most 100 deep; at most 300 JOINs stand in a row.",
        "SELECT " + "(" * 101 + "temp" + ")" * 101 + " FROM road",
    ),
    "SN110": Entry(
        "syntax",
        "said twice",
        "A clause may stand once.",
        "SELECT temp FROM road ACQUIRE EVERY 2 MIN ACQUIRE EVERY 3 MIN",
    ),
    "SN111": Entry(
        "syntax",
        "a reserved word as a name",
        "SELECT FROM WHERE GROUP BY HAVING AS AND OR NOT RSTREAM ISTREAM DSTREAM are never names.",
        "SELECT temp AS group FROM road",
    ),
    "SN112": Entry(
        "syntax",
        "not a part of the language",
        "SQL has it, SNEEql does not (SEMANTICS 2.1, 10).",
        "SELECT temp FROM road UNION SELECT temp FROM road",
    ),
    # --- name ---
    "SN201": Entry(
        "name",
        "unknown extent or entry of FROM",
        "Nothing of this name is declared in the schema, or stands in FROM.",
        "SELECT temp FROM raod",
    ),
    "SN202": Entry(
        "name", "unknown column", "What stands in FROM has no column of this name.", "SELECT tmep FROM road"
    ),
    "SN203": Entry(
        "name",
        "ambiguous column",
        "More than one column has this name; say which with a qualifier.",
        "SELECT site FROM road [NOW], traffic [FROM NOW TO NOW SLIDE 1 MIN]",
    ),
    "SN204": Entry(
        "name",
        "two entries with one name",
        "Entries of FROM are told apart by their names.",
        "SELECT 1 AS one FROM road [NOW], road [NOW]",
    ),
    "SN205": Entry(
        "name",
        "unknown function",
        "There is no function or aggregate of this name (SEMANTICS 10.4, 10.5).",
        "SELECT SQUARE(temp) FROM road",
    ),
    "SN206": Entry(
        "name", "unknown type", "The types are integer, float, string and time.", "SELECT CAST(temp AS real) FROM road"
    ),
    "SN207": Entry(
        "name",
        "unknown unit of measurement",
        "Units of attributes are UCUM codes, for example Cel, %, m/s2.",
        "r: sensed (t:float {unit 'Celsius'}) every 1 min at sites 1",
        schema=True,
    ),
    "SN208": Entry(
        "name",
        "declared twice",
        "Extents, and attributes within one, have names of their own.",
        "t: stored (a:integer, a:float)",
        schema=True,
    ),
    "SN209": Entry(
        "name",
        "tick or index of a window's tuples",
        "Tuples lose their tags when they enter a window (SEMANTICS 1.7).",
        "SELECT tick FROM road [NOW]",
    ),
    "SN210": Entry(
        "name",
        "a name that cannot be declared",
        "tick and index are there for every tuple of a stream; names with an underscore in front are the system's.",
        "t: pushed (tick:integer)",
        schema=True,
    ),
    # --- type ---
    "SN301": Entry(
        "type",
        "numbers are needed",
        "Arithmetic, SUM, AVG and their like work on numbers.",
        "SELECT category + 1 FROM tempClass",
    ),
    "SN302": Entry(
        "type",
        "a string compared with a number",
        "Values of these types are never equal, less or greater.",
        "SELECT temp FROM tempClass WHERE category = 3",
    ),
    "SN303": Entry(
        "type",
        "a value is needed",
        "A predicate has no value: there are no booleans (SEMANTICS 1.8).",
        "SELECT temp > 3 FROM road",
    ),
    "SN304": Entry(
        "type",
        "a predicate is needed",
        "WHERE, HAVING, ON, WHEN, AND, OR and NOT take predicates.",
        "SELECT temp FROM road WHERE temp",
    ),
    "SN305": Entry(
        "type",
        "an argument of another type",
        "The function takes values of another type, or all of one kind.",
        "SELECT UPPER(temp) FROM road",
    ),
    "SN306": Entry(
        "type",
        "parts of UNION ALL that differ",
        "The parts have as many columns, of the same types.",
        "SELECT temp FROM road UNION ALL SELECT site, weight FROM traffic",
    ),
    "SN307": Entry(
        "type",
        "a call that the function does not take",
        "The number of arguments, `*` or DISTINCT does not fit.",
        "SELECT ABS(temp, 1) FROM road",
    ),
    "SN308": Entry(
        "type",
        "a number out of range",
        "Integers have 64 bits, floats are IEEE doubles.",
        "SELECT temp FROM road WHERE temp < 9223372036854775808",
    ),
    "SN309": Entry(
        "type",
        "a subquery with more than one column",
        "Where a value stands, a subquery gives one column.",
        "SELECT category FROM tempClass WHERE temp = (SELECT temp, category FROM tempClass)",
    ),
    "SN310": Entry(
        "type",
        "a value of another type than its attribute",
        "An integer may become a float; nothing else changes by itself.",
        "REVISE road SET temp = 'warm' WHERE site = 2",
    ),
    # --- static ---
    "SN401": Entry(
        "static",
        "a stream without a window",
        "A product of streams has no end; each stream in FROM gets a window unless it stands alone.",
        "SELECT road.temp FROM road, traffic [FROM NOW-5 TO NOW SLIDE 1 MIN]",
    ),
    "SN402": Entry(
        "static",
        "a window on a table",
        "A table has no ticks to cut windows from; it is scanned.",
        "SELECT category FROM tempClass [FROM NOW-5 TO NOW SLIDE 1 MIN]",
    ),
    "SN403": Entry(
        "static",
        "SCAN on a stream",
        "Streams are cut into windows with [FROM … TO … SLIDE …].",
        "SELECT temp FROM road [SCAN 1 MIN]",
    ),
    "SN404": Entry(
        "static",
        "a converter on a stream",
        "RSTREAM, ISTREAM and DSTREAM take windows.",
        "ISTREAM(SELECT temp FROM road)",
    ),
    "SN405": Entry(
        "static",
        "an aggregate where none can stand",
        "Not in WHERE, not inside another aggregate, not in a stream query.",
        "SELECT temp FROM road [NOW] WHERE MAX(temp) > 3",
    ),
    "SN406": Entry(
        "static",
        "neither grouped nor aggregated",
        "In an aggregating query a column outside aggregates is one of GROUP BY.",
        "SELECT site, MAX(temp) FROM road [NOW]",
    ),
    "SN407": Entry(
        "static",
        "a window query in FROM",
        "Subqueries are of type stream; windows pass through a converter (SEMANTICS 2.7).",
        "SELECT temp FROM (SELECT temp FROM road [NOW])",
    ),
    "SN408": Entry(
        "static",
        "a table without SCAN beside something else",
        "Alone, tables are read once; beside streams they say how often (SEMANTICS 2.6).",
        "SELECT category FROM road [NOW], tempClass",
    ),
    "SN409": Entry(
        "static",
        "for one-off queries only",
        "DISTINCT, ORDER BY, LIMIT, JOIN and subqueries outside FROM belong to queries over tables alone.",
        "SELECT temp FROM road [NOW] ORDER BY temp",
    ),
    "SN410": Entry(
        "static",
        "how often does the window slide?",
        "Only a window on a sensed extent slides by the sampling interval when nothing is said.",
        "SELECT weight FROM traffic [NOW]",
    ),
    "SN411": Entry(
        "static",
        "time and rows mixed",
        "A window is one of time or one of rows.",
        "SELECT temp FROM road [FROM NOW-5 ROWS TO NOW SLIDE 1 MIN]",
    ),
    "SN412": Entry(
        "static",
        "no whole number of ticks",
        "There are no fractions of ticks (SEMANTICS 1.1).",
        "SELECT temp FROM road [FROM NOW-5 TO NOW SLIDE 1500 MS]",
    ),
    "SN413": Entry(
        "static",
        "a window that grows for ever",
        "[UNBOUNDED …] needs aggregates that merge, or FOR (SEMANTICS 10.3).",
        "SELECT temp FROM road [UNBOUNDED SLIDE 1 HOUR]",
    ),
    "SN414": Entry(
        "static",
        "UNION ALL of what does not go together",
        "Continuous parts are streams; one-off parts are all one-off.",
        "SELECT temp FROM road [NOW] UNION ALL SELECT temp FROM road [NOW]",
    ),
    "SN415": Entry(
        "static",
        "a stream and its WindowIs",
        "With a loop every stream stands in exactly one WindowIs, and has no other window (SEMANTICS 10.8).",
        "SELECT temp FROM road FOR (t = 0; t < 9; t++) { WindowIs(road, t, t); WindowIs(road, t, t); }",
    ),
    "SN416": Entry(
        "static",
        "WindowIs for a table",
        "Stored extents are read at the tick of each window.",
        "SELECT category FROM road, tempClass FOR (; t < 9; t++) { WindowIs(road, t, t); WindowIs(tempClass, t, t); }",
    ),
    "SN417": Entry(
        "static",
        "ticks and rows mixed in a loop",
        "A loop is all ticks or all ROWS.",
        "SELECT temp FROM road FOR (; t < 9; t++) { WindowIs(road ROWS, t - 1 MIN, t); }",
    ),
    "SN418": Entry(
        "static",
        "a clause that does not apply",
        "ACQUIRE EVERY, DELIVER WITHIN and LIFETIME are about sampling; a one-off query takes no clause.",
        "SELECT weight FROM traffic ACQUIRE EVERY 5 MIN",
    ),
    "SN419": Entry(
        "static",
        "sampling that the extent does not declare",
        "ACQUIRE EVERY is a multiple of the declared interval: coarser, never finer.",
        "SELECT temp FROM road ACQUIRE EVERY 90 SEC",
    ),
    "SN420": Entry(
        "static",
        "delivery before the windows are complete",
        "Where answers are never corrected, they wait as the extent says.",
        "SELECT MAX(v) FROM probe [NOW] DELIVER WITHIN 2 SEC",
    ),
    "SN421": Entry(
        "static", "grouping a stream", "GROUP BY and HAVING need a window.", "SELECT site FROM road GROUP BY site"
    ),
    "SN422": Entry(
        "static",
        "FIRST or LAST of more than one stream",
        "They go by ticks, which only the tuples of one stream have in common.",
        "SELECT LAST(road.temp) FROM road [NOW], traffic [FROM NOW TO NOW SLIDE 1 MIN]",
    ),
    "SN423": Entry(
        "static",
        "a share that is none",
        "The second argument of QUANTILE is a number from 0 to 1.",
        "SELECT QUANTILE(temp, 95) FROM road [NOW]",
    ),
    "SN424": Entry(
        "static",
        "a clause of another kind of extent",
        "every and at sites are for sensed extents, wait, late and ahead for streams, from for stored ones.",
        "t: stored (a:integer) every 1 min",
        schema=True,
    ),
    "SN425": Entry(
        "static",
        "a clause is missing",
        "A sensed extent says how often and where it is sampled.",
        "r: sensed (temp:integer) at sites 1, 2",
        schema=True,
    ),
    "SN426": Entry(
        "static",
        "a property that does not fit",
        "A scale belongs to a float and is from 0 to 18; a range belongs to a number and ends after it begins.",
        "r: pushed (temp:integer {scale 2})",
        schema=True,
    ),
    "SN427": Entry(
        "static",
        "sites that cannot be",
        "Each site stands once; a range goes up.",
        "r: sensed (temp:integer) every 1 min at sites 1 .. 4, 3",
        schema=True,
    ),
    "SN428": Entry(
        "static",
        "the history of a table",
        "Streams have a history, stored extents have versions.",
        "SELECT category FROM tempClass.HISTORY",
    ),
    "SN429": Entry(
        "static",
        "a correction of a table",
        "REVISE, DELETE and INSERT correct what came in over streams.",
        "DELETE FROM tempClass WHERE temp = 3",
    ),
    "SN430": Entry(
        "static",
        "what REVISE cannot set",
        "tick, index, site and time say which tuple it is.",
        "REVISE road SET site = 3 WHERE site = 2",
    ),
    "SN431": Entry(
        "static",
        "INSERT that does not add up",
        "As many values as columns; a reading has a tick and a site.",
        "INSERT INTO road (site, temp) VALUES (1, 20)",
    ),
    "SN432": Entry(
        "static",
        "no time that can be begun at",
        "SINCE takes a tick, an RFC 3339 time in quotes, or NOW - n unit.",
        "SELECT temp FROM road SINCE 'yesterday'",
    ),
    "SN433": Entry(
        "static",
        "nothing to sort by",
        "ORDER BY takes expressions, after DISTINCT those of the SELECT list.",
        "SELECT category FROM tempClass ORDER BY 1",
    ),
    "SN434": Entry(
        "static",
        "a start before what is on record",
        "SINCE begins at a tick of which the readings and versions are still there.",
        "SELECT temp FROM road SINCE '1969-12-31T23:59:00Z'",
    ),
    # --- input ---
    # The examples are what is said of a recording of `road`; the tests read the recording that stands above it.
    "SN501": Entry(
        "input",
        "a file that cannot be read",
        "It is not there, or may not be read.",
        "gone.csv: cannot be read: No such file or directory",
    ),
    "SN502": Entry(
        "input",
        "no table",
        "Every row of a CSV file has as many fields as the header, quotes are closed, and the text is UTF-8; a Parquet file "
        "is whole.",
        "_tick,_site,temp,vibration\n0,1,20\n\nroad.csv, row 1: 3 fields, but the header has 4",
    ),
    "SN503": Entry(
        "input",
        "a column that stands twice",
        "Columns are told apart by their names.",
        "_tick,_site,temp,temp\n0,1,20,5\n\nroad.csv: the column `temp` stands twice in the header",
    ),
    "SN504": Entry(
        "input",
        "unknown column",
        "Columns are the attributes of the extent, and the system's with an underscore: `_tick _site _arrival _weight "
        "_replaces`.",
        "_tick,_site,tmep,vibration\n0,1,20,5\n\nroad.csv: there is no column `tmep` here",
    ),
    "SN505": Entry(
        "input",
        "a column is missing",
        "Attributes may be null, but they have a column; only the site and time of a sensed extent are known without one.",
        "_tick,_site,temp\n0,1,20\n\nroad.csv: the column `vibration` is missing: it is an attribute of `road`",
    ),
    "SN506": Entry(
        "input",
        "a value of another type",
        "Integers are whole, floats are finite numbers, ticks are whole or RFC 3339 times. An empty field is null.",
        "_tick,_site,temp,vibration\n0,1,warm,5\n\nroad.csv, row 1, column temp: `warm` is no integer",
    ),
    "SN507": Entry(
        "input",
        "a value out of range",
        "Integers and multiples of a scale have 64 bits, floats are IEEE doubles.",
        "_tick,_site,temp,vibration\n0,1,9223372036854775808,5\n\n"
        "road.csv, row 1, column temp: `9223372036854775808` is out of range",
    ),
    "SN508": Entry(
        "input",
        "a tuple without its place in time",
        "A reading has tick and site, a pushed tuple its delivery or its timestamp; the clock of a replay starts at 0.",
        "_tick,_site,temp,vibration\n,1,20,5\n\nroad.csv, row 1, column _tick: a reading needs its tick",
    ),
    "SN509": Entry(
        "input",
        "a correction that says nothing",
        "`_weight` is 1 or -1, `_replaces` the index of a tuple.",
        "_tick,_site,temp,vibration,_weight\n0,1,20,5,2\n\n"
        "road.csv, row 1, column _weight: a weight is 1 (there) or -1 (no longer there)",
    ),
    "SN510": Entry(
        "input",
        "an input that belongs to no extent",
        "Each stream has one recording; a stored extent has one for each of its versions.",
        "there is no extent `raod`",
    ),
    "SN511": Entry(
        "input",
        "a subquery with more rows than one",
        "Where one value is needed, a subquery gives one row, or none, which is null. The query has ended.",
        "SELECT category FROM tempClass WHERE temp > (SELECT temp FROM tempClass)\n\n"
        "a subquery gives 2 rows where one value is needed",
    ),
    "SN512": Entry(
        "input",
        "a loop that cannot go on",
        "Every change moves t, nothing is divided by zero, numbers have 64 bits, and one tick has fewer than 10,000 "
        "evaluations. The query has ended; what it said before holds.",
        "SELECT temp FROM road FOR (t = 8; t > 0; t = t / 2 + 1) { WindowIs(road, t - 4, t); }\n\n"
        "the loop cannot go on: the change leaves t as it was, 2",
    ),
    # --- later ---
    "SN601": Entry(
        "later",
        "not executable yet",
        "The query is valid and can be explained; this version cannot run it.",
        "SELECT temp FROM road LIFETIME 100 DAY",
    ),
    "SN602": Entry(
        "later",
        "a value that motes cannot compute with",
        "Motes compute in integers: a float is sampled as multiples of its scale, a string not at all. Recorded, it can be "
        "asked about.",
        "SELECT v FROM probe [NOW]",
    ),
    "SN603": Entry(
        "later",
        "more sensors than a mote samples at once",
        "A mote samples eight sensors of an extent at most, whatever the number of queries that want them.",
        "wall: sensed (a:integer, b:integer, c:integer, d:integer, e:integer, f:integer, g:integer, h:integer, i:integer) "
        "every 1 min at sites 1",
        schema=True,
    ),
    "SN604": Entry(
        "later",
        "two sensors that are one on the air",
        "The code of a sensor on the air is made of its name; two attributes of a query need two codes.",
        "wall: sensed (a:integer {sensor 'light'}, b:integer {sensor 'light'}) every 1 min at sites 1",
        schema=True,
    ),
    "SN605": Entry(
        "later",
        "sites that nobody lists",
        "A base station that is running does not know yet which motes have the sensors; `at sites all` is for recordings.",
        "wall: sensed (a:integer) every 1 min at sites all",
        schema=True,
    ),
    "SN606": Entry(
        "later",
        "a schedule that is too large for a mote",
        "All that one mote is to sample, for all queries, is kept in 144 bytes of its memory.",
        "\n".join(
            f"wall{n}: sensed (a:integer, b:integer, c:integer, d:integer, e:integer, f:integer, g:integer, h:integer) "
            "every 1 min at sites 1"
            for n in range(1, 5)
        ),
        schema=True,
    ),
    # --- deployment ---
    "SN701": Entry("deployment", "not TOML", "A deployment is described in TOML.", TANK.replace('"tank"', "tank")),
    "SN702": Entry(
        "deployment",
        "unknown key",
        "Nothing is read under this key here; docs/deployments.md has all of them.",
        TANK.replace("battery_mah", "batery_mah"),
    ),
    "SN703": Entry(
        "deployment",
        "something is missing",
        "A deployment has a name, gateways, motes, links and extents; a mote has a place and hardware.",
        TANK.replace("at = [8, 3], ", ""),
    ),
    "SN704": Entry(
        "deployment",
        "a value of another kind was expected",
        "What a key takes is said in the message; numbers must lie within their limits.",
        TANK.replace("0.95", "95"),
    ),
    "SN705": Entry(
        "deployment",
        "two things that exclude each other",
        "A battery is said in mAh or in J, links by one of the three ways, extents by a file or here.",
        TANK.replace("battery_mah", "battery_j = 31320\nbattery_mah"),
    ),
    "SN706": Entry(
        "deployment",
        "a name or number that does not exist",
        "Boards are named by motes, hardware has a table, units are UCUM codes, and links join motes and gateways.",
        TANK.replace("telosb", "telsob"),
    ),
    "SN707": Entry(
        "deployment",
        "said twice",
        "A number is a mote or a gateway, and a link from one to another stands once.",
        TANK.replace("[1, 0, 0.95]", "[0, 1, 0.95]"),
    ),
    "SN708": Entry(
        "deployment",
        "a file that cannot be read",
        "Files are found beside the one that names them, and are texts in UTF-8.",
        TANK.replace("table = [[0, 1, 0.98], [1, 0, 0.95]]", 'file = "links.csv"'),
    ),
}
