"""Helpers that plan pushdown over three sites, for the tests in this folder."""

from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.planner.pushdown import plan_pushdown
from basestation.planner.rewriter import rewrite

CATALOG = read_schema("""
f: sensed (site:integer, time:integer, v:integer, u:integer, x:float {scale 2}, y:float {scale 1}, z:float, s:string)
   every 10 sec at sites 3, 4, 9 wait 5 sec late revise by 1 hour
g: sensed (site:integer, n:integer) every 10 sec at sites 3, 4, 9
like: sensed (site:integer, n:integer) every 10 sec at sites 3, 4, 9 wait 5 sec late revise by 1 hour
far: sensed (site:integer, n:integer) every 10 sec at sites 3, 5
app: sensed (site:integer, n:integer) every 10 sec at sites 3 late append
drop: sensed (site:integer, n:integer) every 10 sec at sites 3 late drop
short: sensed (site:integer, n:integer) every 10 sec at sites 3 late revise by 30 sec
p: pushed (a:integer)
""")
SITES = (3, 4, 9)


def pushdown_of(text, raw=None, corrected=frozenset()):
    (plan,) = bind_text(text, CATALOG)
    better, _ = rewrite(plan)
    return plan_pushdown(plan, better.root, raw, corrected), better.root
