"""Random syntax trees: every shape that the parser can give, made from a random.Random so that many are made fast."""

from basestation.language import syntax as s
from basestation.language.schema_syntax import AttributeDecl, ExtentDecl, LateClause, SitesClause

NAMES = (
    *("a b temp site road traffic x y z _site category r1 Temp TEMP".split()),
    # Words that are keywords somewhere, and names wherever nothing forbids it.
    *(
        "now slide count distinct min t ST history left join on order limit for since union explain analyze end when".split()
    ),
    *(
        "then else is in like between row rows sec scan from_ cast exists any over natural top values set asc nulls".split()
    ),
)
QUALIFIED_ONLY = ("case", "NULL", "Case")
TIME = ("MS", "SEC", "MIN", "HOUR", "DAY")
UNITS = (*TIME, "ROW")
FUNCTIONS = ("MIN", "max", "COUNT", "Abs", "COALESCE", "f", "left", "round", "now")
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
ARITHMETIC = ("+", "-", "*", "/", "%")
FLOATS = (0.0, 1.5, 2e-3, 1.5e6, 1e22, 5e-324, 1.7976931348623157e308, 0.1, 100.0, 123456.789)
TEXTS = ("", "a", "it's", "''", "x\ny", "é∑", "-- no", "/* no */", "a%\\_", "2026-11-18T06:00:00Z")


class Trees:
    """Makes trees. `room` is how many more levels may open."""

    def __init__(self, rng):
        self.rng = rng
        self.choice = rng.choice
        self.chance = lambda p: rng.random() < p

    def some(self, make, least=1, most=3):
        return tuple([make() for _ in range(self.rng.randint(least, most))])

    def maybe(self, make, p=0.3):
        return make() if self.rng.random() < p else None

    def name(self):
        return s.Name(self.choice(NAMES))

    # --- expressions ---

    def number(self):
        if self.chance(0.2):
            return s.Number(self.choice(FLOATS))
        return s.Number(self.choice((0, 1, 2, 7, 60, 2**53 + 1, 2**63)))

    def column(self):
        if self.chance(0.7):
            return s.ColumnRef(None, self.name())
        return s.ColumnRef(self.name(), s.Name(self.choice(QUALIFIED_ONLY + NAMES)))

    def leaf(self):
        which = self.rng.random()
        if which < 0.5:
            return self.column()
        if which < 0.8:
            return self.number()
        return s.String(self.choice(TEXTS)) if which < 0.95 else s.Null()

    def expression(self, room=2):
        if room <= 0 or self.chance(0.25):
            return self.leaf()
        return self.choice(_EXPRESSIONS)(self, room - 1)

    def arithmetic(self, room):
        return s.Binary(self.choice(ARITHMETIC), self.expression(room), self.expression(room))

    def comparison(self, room):
        return s.Binary(self.choice(COMPARISONS), self.expression(room), self.expression(room))

    def logic(self, room):
        return s.Binary(self.choice(("AND", "OR")), self.expression(room), self.expression(room))

    def chain(self, room):
        made = self.expression(room)
        op = self.choice(("AND", "OR", *ARITHMETIC))
        for _ in range(self.rng.randint(2, 6)):
            made = s.Binary(op, made, self.leaf())
        return made

    def unary(self, room):
        return s.Unary(self.choice(("-", "NOT")), self.expression(room))

    def is_null(self, room):
        return s.IsNull(self.expression(room), self.chance(0.5))

    def between(self, room):
        return s.Between(self.expression(room), self.expression(room), self.expression(room), self.chance(0.5))

    def in_list(self, room):
        return s.InList(self.expression(room), self.some(lambda: self.expression(room)), self.chance(0.5))

    def like(self, room):
        return s.Like(self.expression(room), self.expression(room), self.chance(0.5))

    def case(self, room):
        branches = self.some(lambda: (self.expression(room), self.expression(room)), 1, 2)
        return s.Case(branches, self.maybe(lambda: self.expression(room), 0.6))

    def cast(self, room):
        return s.Cast(self.expression(room), s.Name(self.choice(("integer", "Float", "string", "time"))))

    def call(self, room):
        if self.chance(0.2):
            return s.Call(s.Name(self.choice(("COUNT", "count"))), (), star=True)
        arguments = self.some(lambda: self.expression(room), 0, 3)
        return s.Call(s.Name(self.choice(FUNCTIONS)), arguments, distinct=bool(arguments) and self.chance(0.2))

    def subquery(self, room):
        which = self.rng.random()
        query = self.query(room)
        if which < 0.4:
            return s.ScalarSubquery(query)
        return s.Exists(query) if which < 0.7 else s.InQuery(self.expression(room), query, self.chance(0.5))

    # --- windows and FROM ---

    def duration(self, units=UNITS):
        return s.Duration(self.choice((1, 2, 10, 90)), self.choice(units))

    def point(self):
        if self.chance(0.4):
            return s.WindowBound(0)
        return s.WindowBound(self.choice((1, 5, 10)), self.maybe(lambda: self.choice(UNITS)))

    def window(self):
        which = self.rng.random()
        if which < 0.5:
            return s.RangeWindow(self.point(), self.point(), self.maybe(self.duration, 0.8))
        if which < 0.65:
            return s.NowWindow()
        if which < 0.8:
            return s.UnboundedWindow(self.maybe(self.duration, 0.8))
        return s.ScanWindow(self.duration(TIME))

    def entry(self, room):
        if room > 0 and self.chance(0.3):
            source = s.QuerySource(self.query(room - 1))
        else:
            source = s.ExtentSource(self.name(), self.chance(0.15))
        return s.FromEntry(source, self.maybe(self.name), self.maybe(self.window, 0.5))

    def entries(self, room):
        made = self.entry(room)
        while self.chance(0.15):
            kind = self.choice(("INNER", "LEFT", "RIGHT", "FULL", "CROSS"))
            made = s.Join(kind, made, self.entry(0), None if kind == "CROSS" else self.expression(1))
        return made

    # --- queries ---

    def item(self, room):
        if self.chance(0.1):
            return s.Star(self.maybe(lambda: s.Name("road")))
        return s.SelectItem(self.expression(room), self.maybe(self.name))

    def select(self, room, ordered=True):
        last = self.order_and_limit(room) if ordered and self.chance(0.2) else ((), None)
        return s.Select(
            self.some(lambda: self.item(room), 1, 2), self.some(lambda: self.entries(room), 1, 2),
            self.maybe(lambda: self.expression(room), 0.5), self.some(self.column, 1, 2) if self.chance(0.2) else (),
            self.maybe(lambda: self.expression(room), 0.15), self.chance(0.1), *last,
        )  # fmt: skip

    def order_and_limit(self, room):
        return self.some(lambda: self.order(room), 0, 2), self.maybe(lambda: s.Number(self.choice((0, 5))))

    def order(self, room):
        return s.OrderItem(self.expression(room), self.chance(0.4), self.choice((None, True, False)))

    def convert(self, room):
        return s.ConverterQuery(self.choice(("RSTREAM", "ISTREAM", "DSTREAM")), self.query(room - 1))

    def query(self, room=1):
        if self.chance(0.1):
            parts = self.some(lambda: self.select(room, False) if self.chance(0.8) else self.convert(room), 2, 3)
            return s.Union(parts, *(self.order_and_limit(room) if self.chance(0.3) else ()))
        return self.convert(room) if room > 0 and self.chance(0.15) else self.select(room)

    # --- loops and statements ---

    def loop_value(self, room=2):
        which = self.rng.random()
        if room and which < 0.4:
            return s.Binary(self.choice("+-*/"), self.loop_value(room - 1), self.loop_value(room - 1))
        if room and which < 0.5:
            return s.Unary("-", self.loop_value(room - 1))
        if which < 0.7:
            return s.LoopName(self.choice(("t", "ST")))
        return s.Number(self.choice((0, 1, 50))) if which < 0.9 else self.duration()

    def loop_condition(self, room=2):
        which = self.rng.random()
        if room and which < 0.3:
            return s.Binary(self.choice(("AND", "OR")), self.loop_condition(room - 1), self.loop_condition(room - 1))
        if room and which < 0.4:
            return s.Unary("NOT", self.loop_condition(room - 1))
        return s.Binary(self.choice(COMPARISONS), self.loop_value(1), self.loop_value(1))

    def loop(self):
        windows = self.some(
            lambda: s.WindowIs(self.name(), self.chance(0.2), self.loop_value(), self.loop_value()), 1, 2
        )
        return s.Loop(self.maybe(self.loop_value, 0.7), self.loop_condition(), self.loop_value(), windows)

    def since(self):
        return s.SinceClause(self.choice((0, 86400, "2026-11-18T06:00:00Z", self.duration(TIME))))

    def clauses(self):
        days = self.maybe(lambda: self.duration(("DAY",)))
        return s.StatementClauses(*(self.maybe(lambda: self.duration(TIME)) for _ in range(3)), days)

    def ask(self):
        loops = self.some(self.loop, 1, 2) if self.chance(0.15) else ()
        clauses = self.clauses() if self.chance(0.2) else s.StatementClauses()
        return s.QueryStatement(self.query(), loops, self.maybe(self.since, 0.1), clauses)

    def statement(self):
        which = self.rng.random()
        if which < 0.8:
            return self.ask()
        if which < 0.85:
            return s.Explain(self.ask(), self.chance(0.5))
        if which < 0.9:
            changes = self.some(lambda: (self.name(), self.expression()))
            return s.Revise(self.name(), changes, self.expression())
        if which < 0.95:
            return s.Delete(self.name(), self.expression())
        rows = self.some(lambda: self.some(lambda: self.expression(1)), 1, 2)
        return s.Insert(self.name(), self.some(self.name), rows)

    # --- schemas ---

    def attribute(self):
        text = lambda: s.String(self.choice(TEXTS[1:]))  # noqa: E731
        low = s.Unary("-", self.number()) if self.chance(0.5) else self.number()
        return AttributeDecl(
            self.name(), s.Name(self.choice(("integer", "float", "string", "time"))), self.maybe(text), self.maybe(text),
            self.maybe(lambda: s.Number(self.choice((0, 2)))), self.maybe(lambda: (low, self.number())),
        )  # fmt: skip

    def sites(self):
        if self.chance(0.2):
            return SitesClause((), True)
        return SitesClause(self.some(lambda: self.choice(((1, 1), (2, 9), (0, 0), (10, 12)))))

    def late(self):
        policy = self.choice(("revise", "append", "drop"))
        return LateClause(policy, self.maybe(lambda: self.duration(TIME)) if policy == "revise" else None)

    def extent(self):
        none = lambda: s.Duration(0, self.choice(TIME))  # noqa: E731
        time = lambda: self.maybe(lambda: none() if self.chance(0.2) else self.duration(TIME))  # noqa: E731
        return ExtentDecl(
            self.name(), self.choice(("sensed", "pushed", "stored")), self.some(self.attribute),
            self.maybe(lambda: self.duration(TIME)), self.maybe(self.sites), time(), self.maybe(self.late), time(),
            self.maybe(lambda: s.String(self.choice(TEXTS[1:]))),
        )  # fmt: skip


_EXPRESSIONS = (
    *(Trees.arithmetic, Trees.arithmetic, Trees.comparison, Trees.comparison, Trees.logic, Trees.logic, Trees.chain),
    *(Trees.unary, Trees.is_null, Trees.between, Trees.in_list, Trees.like, Trees.case, Trees.cast, Trees.call),
    *(Trees.call, Trees.subquery),
)
