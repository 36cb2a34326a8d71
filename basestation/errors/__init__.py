"""The catalogue of errors that people can cause: one entry each, with an example that the tests run.

Codes are grouped by kind: SN1 syntax, SN2 name, SN3 type, SN4 static, SN5 input, SN6 later, SN7
deployment. A code, once published, keeps its meaning. `docs/errors.md` is made from this table.
"""

from basestation.errors.deployment import DEPLOYMENT
from basestation.errors.runtime import INPUT, LATER
from basestation.errors.static_checks import STATIC
from basestation.errors.syntax_names_types import NAME, SYNTAX, TYPE

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

TABLES = (SYNTAX, NAME, TYPE, STATIC, INPUT, LATER, DEPLOYMENT)
CATALOGUE = {code: entry for table in TABLES for code, entry in table.items()}
