"""Errors of data and of execution: SN5 input, SN6 later."""

from basestation.errors.entry import ErrorEntry

INPUT = {
    # An example is a recording of `road` and the error for it; the tests read the recording.
    "SN501": ErrorEntry(
        "input",
        "a file that cannot be read",
        "The file does not exist, or cannot be opened.",
        "gone.csv: cannot be read: No such file or directory",
    ),
    "SN502": ErrorEntry(
        "input",
        "not a table",
        "Every row of a CSV file has as many fields as the header, quotes are closed, and the text is UTF-8; a Parquet file "
        "is whole.",
        "_tick,_site,temp,vibration\n0,1,20\n\nroad.csv, row 1: expected 4 fields, as in the header; found 3",
    ),
    "SN503": ErrorEntry(
        "input",
        "a duplicate column",
        "Each column needs a name of its own.",
        "_tick,_site,temp,temp\n0,1,20,5\n\nroad.csv: the column `temp` occurs twice in the header",
    ),
    "SN504": ErrorEntry(
        "input",
        "unknown column",
        "Columns are the attributes of the extent, and the system columns `_tick _site _arrival _weight _replaces`.",
        "_tick,_site,tmep,vibration\n0,1,20,5\n\nroad.csv: unknown column `tmep`",
    ),
    "SN505": ErrorEntry(
        "input",
        "a column is missing",
        "Every attribute needs a column, even if all its values are null; only site and time of a sensed extent need none.",
        "_tick,_site,temp\n0,1,20\n\nroad.csv: the column `vibration` is missing: it is an attribute of `road`",
    ),
    "SN506": ErrorEntry(
        "input",
        "a value of another type",
        "Integers are whole, floats are finite numbers, ticks are whole or RFC 3339 times. An empty field is null.",
        "_tick,_site,temp,vibration\n0,1,warm,5\n\nroad.csv, row 1, column temp: expected an integer, found `warm`",
    ),
    "SN507": ErrorEntry(
        "input",
        "a value out of range",
        "Integers and multiples of a scale have 64 bits, floats are IEEE doubles.",
        "_tick,_site,temp,vibration\n0,1,9223372036854775808,5\n\n"
        "road.csv, row 1, column temp: `9223372036854775808` is out of range",
    ),
    "SN508": ErrorEntry(
        "input",
        "a tuple without a time",
        "A reading has tick and site, a pushed tuple its delivery or its timestamp; the clock of a replay starts at 0.",
        "_tick,_site,temp,vibration\n,1,20,5\n\nroad.csv, row 1, column _tick: a reading needs its tick",
    ),
    "SN509": ErrorEntry(
        "input",
        "an invalid correction",
        "`_weight` is 1 or -1, `_replaces` the index of a tuple, or 0 for the reading with the tick and site of the row.",
        "_tick,_site,temp,vibration,_weight\n0,1,20,5,2\n\n"
        "road.csv, row 1, column _weight: a weight is 1 (the tuple exists) or -1 (it is retracted)",
    ),
    "SN510": ErrorEntry(
        "input",
        "an input that belongs to no extent",
        "Each stream has one recording; a stored extent has one for each of its versions.",
        "there is no extent `raod`",
    ),
    "SN511": ErrorEntry(
        "input",
        "a subquery with more than one row",
        "A subquery in place of a value gives one row, or none, which is null. The query ends.",
        "SELECT category FROM tempClass WHERE temp > (SELECT temp FROM tempClass)\n\n"
        "a subquery gives 2 rows where one value is needed",
    ),
    "SN512": ErrorEntry(
        "input",
        "a loop that cannot go on",
        "Every change must change t, no division by zero is allowed, numbers have 64 bits, and one tick of a replay has fewer "
        "than 10,000 evaluations. The query ends; its earlier answers hold.",
        "SELECT temp FROM road FOR (t = 8; t > 0; t = t / 2 + 1) { WindowIs(road, t - 4, t); }\n\n"
        "the loop cannot go on: the change leaves t as it was, 2",
    ),
    "SN513": ErrorEntry(
        "input",
        "LIFETIME cannot be reached",
        "The predicted lifetime, with all running queries together and duty-cycled motes, is shorter. Use fewer days, later "
        "answers (DELIVER WITHIN), or stop other queries.",
        "SELECT temp FROM road LIFETIME 90000 DAYS\n\nmotes last 62,013.2 days at most, and are to last 90,000.0",
    ),
    "SN514": ErrorEntry(
        "input",
        "nothing to simulate or draw",
        "Motes have no part in the query, or cannot run it; `--analyze` and `--map` show the part of the motes.",
        "SELECT category FROM tempClass [SCAN 1 DAY]\n\nthere is nothing to draw: motes do nothing for this",
    ),
    "SN515": ErrorEntry(
        "input",
        "a scenario that cannot be swept",
        "A sweep computes many rounds at once: all queries start at the beginning, clocks are right, and faults occur only on "
        "the air and in sensors. Without `--swept` any scenario runs, mote by mote.",
        "calm.scenario.toml: cannot be swept: a query is submitted later, or stopped",
    ),
    "SN530": ErrorEntry(
        "input",
        "no way to a gateway",
        "Frames go from neighbour to neighbour, and back for the acknowledgements. A simulation needs a chain of links in both "
        "directions from some mote to a gateway.",
        "SN530: no mote reaches a gateway: links deliver nothing",
    ),
    "SN516": ErrorEntry(
        "input",
        "a query that needs more memory than there is",
        "A window without a condition combines each tuple of one input with each of the others. The query ends; its earlier answers "
        "hold, and other queries go on. Add a condition that joins the inputs, or use shorter windows. If new tuples find no "
        "memory before any query reads them, the query with the most state ends, with the bytes that it held.",
        "SELECT a.v FROM hits [FROM NOW-9 TO NOW SLIDE 1 SEC] AS a, hits [FROM NOW-9 TO NOW SLIDE 1 SEC] AS b\n\n"
        "emit windows: Unable to allocate 1.42 PiB for an array with shape (200000000000000,) and data type int64",
    ),
    "SN517": ErrorEntry(
        "input",
        "a recording that does not fit its extent",
        "More than a tenth of the readings are off the schedule, of sites that the extent does not have, stamped too far ahead, or moved by `--snap` to the tick of another one. "
        "The answers would be about the rest. `--snap` moves readings to the schedule; `--allow-rejected` runs anyway.",
        "_tick,_site,temp,vibration\n61,1,20,5\n\nroad: 1 of 1 readings are off the schedule of `road`, every 1 min: up to 1 sec "
        "from a multiple of it",
    ),
}

LATER = {
    "SN601": ErrorEntry(
        "later",
        "not executable yet",
        "The query is valid and can be explained; this version cannot run it.",
        "SELECT temp FROM road LIFETIME 100 DAY",
    ),
    "SN602": ErrorEntry(
        "later",
        "a value that motes cannot compute with",
        "Motes compute in integers: they sample a float as multiples of its scale, and no strings. A replay of a recording "
        "can answer the query.",
        "SELECT v FROM probe [NOW]",
    ),
    "SN603": ErrorEntry(
        "later",
        "more sensors than a mote samples at once",
        "A mote samples eight sensors of an extent at most, however many queries read them.",
        "wall: sensed (a:integer, b:integer, c:integer, d:integer, e:integer, f:integer, g:integer, h:integer, i:integer) "
        "every 1 min at sites 1",
        schema=True,
    ),
    "SN604": ErrorEntry(
        "later",
        "two sensors with one code",
        "Frames identify a sensor by a code of its name; two attributes of a query need different codes.",
        "wall: sensed (a:integer {sensor 'light'}, b:integer {sensor 'light'}) every 1 min at sites 1",
        schema=True,
    ),
    "SN605": ErrorEntry(
        "later",
        "unlisted sites",
        "A running base station needs the list of sites; `at sites all` is for recordings.",
        "wall: sensed (a:integer) every 1 min at sites all",
        schema=True,
    ),
    "SN606": ErrorEntry(
        "later",
        "a schedule that is too large for a mote",
        "The schedule of a mote, for all queries together, has 144 bytes of its memory.",
        "\n".join(
            f"wall{n}: sensed (a:integer, b:integer, c:integer, d:integer, e:integer, f:integer, g:integer, h:integer) "
            "every 1 min at sites 1"
            for n in range(1, 5)
        ),
        schema=True,
    ),
    "SN607": ErrorEntry(
        "later",
        "an interval that is too long for a mote",
        "Motes count ticks between two samples with 32 bits: 136 years of seconds, or 49 days of milliseconds.",
        "SELECT temp FROM road ACQUIRE EVERY 99999 DAYS",
    ),
}
