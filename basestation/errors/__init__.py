"""The catalogue of errors that users can cause: one entry each, with an example that the tests run.

Codes are grouped by kind: SN1 syntax, SN2 name, SN3 type, SN4 static, SN5 input, SN6 later, SN7 deployment. A published
code keeps its meaning. `docs/errors.md` is generated from this table.
"""

from basestation.errors.deployment import DEPLOYMENT
from basestation.errors.runtime import INPUT, LATER
from basestation.errors.static_checks import STATIC
from basestation.errors.syntax_names_types import NAME, SYNTAX, TYPE

KINDS = {
    "syntax": "the text does not follow the grammar",
    "name": "a name that does not exist or is not unique",
    "type": "values of types that do not fit, or a predicate in place of a value",
    "static": "well-formed and well-typed, but not a valid query",
    "input": "data that cannot be read, or on which the query cannot be evaluated",
    "later": "a valid query that this version cannot execute yet",
    "deployment": "an invalid description of a network",
}

ROAD = (
    "road: sensed (site:integer, time:integer, temp:integer, vibration:integer) every 1 min at sites 1, 2, 3, 4\n"
    "traffic: pushed (site:integer, time:integer, weight:integer, vehicle:integer) wait 5 sec late revise by 1 hour\n"
    "tempClass: stored (temp:integer, category:string) from 'temp_class.csv'\n"
    "probe: sensed (site:integer, v:float) every 10 sec at sites 1, 2 wait 30 sec late drop\n"
)
"""The schema of the examples: that of the paper with clauses, and one more extent."""

TABLES = (SYNTAX, NAME, TYPE, STATIC, INPUT, LATER, DEPLOYMENT)
CATALOGUE = {code: entry for table in TABLES for code, entry in table.items()}
