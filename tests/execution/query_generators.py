"""Queries that the general generator seldom makes: loops of every shape, and one-off queries with all that they may have."""

from tests.oracles.generate import Case, CaseMaker

_PLAIN = (
    "road",
    "hits",
    "(SELECT n, s, x FROM road WHERE n > 0)",
    "(SELECT n, s, x FROM hits UNION ALL SELECT n, s, x FROM road)",
)
_MADE = (
    "RSTREAM(SELECT n, s, x FROM hits [FROM NOW-2 TO NOW SLIDE 2 SEC])",
    "ISTREAM(SELECT n, s, x FROM road [FROM NOW-1 TO NOW SLIDE 2 ROWS])",
)


class LoopMaker(CaseMaker):
    """Loops over one to three streams, alone and together, beside a table or not."""

    def number_of_t(self, rows, depth):
        if depth == 0 or self.chance(0.4):
            return self.pick("t", "t", "t", "ST", "1", "2", "3", "0", "-1", "10", "2" if rows else "2 SEC")
        left, right = self.number_of_t(rows, depth - 1), self.number_of_t(rows, depth - 1)
        return self.pick(*(f"({left} {op} {right})" for op in "++--*/"), f"(-{left})")

    def condition(self, rows, depth=1):
        if depth and self.chance(0.3):
            left, right = self.condition(rows, 0), self.condition(rows, 0)
            return self.pick(f"({left} AND {right})", f"({left} OR {right})", f"NOT ({left})")
        any_ = f"{self.number_of_t(rows, 1)} {self.pick('<', '>=', '<>', '=')} {self.number_of_t(rows, 1)}"
        return self.pick("t < 12", "t <= 9", "t < 15 AND t > -6", "t >= -3", "t <> 5", "t == 0", "t <= ST + 9", any_)

    def header(self, rows):
        some = self.number_of_t(rows, 2)
        first = self.pick("", "t = ST", "t = 8", "t = 5", "t = -4", "t = 3", f"t = {self.number_of_t(rows, 1)}")
        change = self.pick(
            "t++", "t++", "t += 4", "t += 2", "t--", "t -= 3", "t = -1", f"t = {some}", "t = -t", "t = 20 / t"
        )
        return f"({first}; {self.condition(rows)}; {change})"

    def ends(self, rows):
        some = f"{self.number_of_t(rows, 2)}, {self.number_of_t(rows, 2)}"
        return self.pick(
            "t - 3, t", "t - 6, t", "-1, t + 1", "1, 5", "0, t", "t - 4, t - 2", "t, t", "2 * t, 2 * t + 1", some
        )

    def loop(self, names):
        rows = self.chance(0.35)
        windows = [f"WindowIs({name}{' ROWS' if rows else ''}, {self.ends(rows)});" for name in names]
        return f" FOR {self.header(rows)} {{ {' '.join(windows)} }}"

    def loop_query(self):
        names = ["a", "b", "c"][: self.pick(1, 1, 1, 2, 2, 3)]
        entries = [f"{self.pick(*_PLAIN, *_MADE)} AS {name}" for name in names]
        if self.chance(0.3):
            entries.insert(self.rng.randint(0, len(entries)), "kinds AS d")
        groups = []
        for name in names:
            if groups and self.chance(0.5):
                self.rng.choice(groups).append(name)
            else:
                groups.append([name])
        self.rng.shuffle(groups)
        where = (
            self.pick(" WHERE a.n = b.n", " WHERE a.n <= b.n", "")
            if len(names) > 1
            else self.pick("", " WHERE a.n > 1")
        )
        text = self.pick(
            f"SELECT a.n, a.s, {names[-1]}.x FROM {{}}{where}",
            f"SELECT COUNT(*), SUM(a.n) FROM {{}}{where}",
            f"SELECT COUNT(*), MAX(a.s), MIN({names[-1]}.x) FROM {{}}{where} GROUP BY a.s",
        ).format(", ".join(entries))
        if self.chance(0.2):
            text = f"{self.pick('RSTREAM', 'ISTREAM', 'DSTREAM')}({text})"
        text += "".join(map(self.loop, groups))
        return text + (f" FOR {self.rng.randint(2, 9)} SEC" if self.chance(0.15) else "")


class TableMaker(CaseMaker):
    """One-off queries: trees of joins, subqueries in subqueries, grouping, DISTINCT, ORDER BY, LIMIT, unions, converters."""

    _tables = 0

    def table(self):
        self._tables += 1
        return f"t{self._tables}"

    def sources(self, count):
        """(text, names) of FROM: `count` tables, joined or listed."""
        names, begun = [self.table()], 0
        text = f"kinds AS {names[0]}"
        for _ in range(count - 1):
            kind = self.pick(
                "INNER JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT JOIN", "FULL JOIN", "CROSS JOIN", ","
            )
            names.append(self.table())
            text += f"{kind if kind == ',' else f' {kind}'} kinds AS {names[-1]}"
            if kind == ",":
                begun = len(names) - 1
            elif kind != "CROSS JOIN":
                text += f" ON {self.on(names[begun:])}"
        return text, names

    def on(self, names):
        left, right = self.rng.choice(names[:-1]), names[-1]
        some = self.predicate([ref for name in names for ref in self.refs("kinds", name)])
        return self.pick(
            f"{left}.n = {right}.n", f"{left}.s = {right}.s", f"{right}.n = {left}.x", f"{left}.n < {right}.n",
            f"{left}.n = {right}.n AND {some}", some, f"{left}.c = {right}.x AND {left}.n = {right}.n",
            f"{left}.big = {right}.far", f"{left}.n + 1 = {right}.n OR {left}.n IS NULL",
        )  # fmt: skip

    def subquery(self, depth):
        """(column, the rest) of a subquery outside FROM."""
        name = self.table()
        where = f" WHERE {self.asking(self.refs('kinds', name), depth)}" if self.chance(0.6) else ""
        column = self.pick("n", "x", "c", "big", "far", "n + 0.5")
        return f"{name}.{column}", f"FROM kinds AS {name}{where}"

    def asking(self, refs, depth):
        """A predicate, often with a subquery."""
        if depth == 0 or self.chance(0.4):
            return self.predicate(refs)
        column, rest = self.subquery(depth - 1)
        number = self.rng.choice([r.text for r in refs if r.type != "string"])
        return self.pick(
            f"{number} {self.pick('', 'NOT ')}IN (SELECT {column} {rest})",
            f"{self.pick('', 'NOT ')}EXISTS (SELECT 1 {rest})",
            f"{number} {self.pick('<', '=', '>=')} (SELECT {self.pick('MAX', 'MIN', 'AVG')}({column}) {rest})",
            f"{number} <= (SELECT {column} {rest} ORDER BY {column} DESC LIMIT 1)",
        )

    def select(self, alike=False):
        """(text, what may be sorted by); `alike`: with the columns that all parts of a union have."""
        text, names = self.sources(self.pick(1, 1, 2, 2, 3))
        refs = [ref for name in names for ref in self.refs("kinds", name)]
        where = f" WHERE {self.asking(refs, 2)}" if self.chance(0.5) else ""
        distinct = "DISTINCT " if self.chance(0.3) else ""
        if self.chance(0.3) and not alike:
            groups = [r.text for r in self.rng.sample(refs, self.pick(0, 1, 2))]
            items = [f"{g} AS g{i}" for i, g in enumerate(groups)]
            items += [f"{self.aggregate(refs, False)[0]} AS k{i}" for i in range(2)]
            orders = [f"g{i}" for i in range(len(groups))] + ["k0", "k1"] + ([] if distinct else ["COUNT(*)"])
            tail = (f" GROUP BY {', '.join(groups)}" if groups else "") + self.pick("", " HAVING COUNT(*) >= 1")
            return f"SELECT {distinct}{', '.join(items)} FROM {text}{where}{tail}", orders
        if alike:
            chosen = [f"{names[0]}.n", f"{names[-1]}.{self.pick('x', 'c')}", f"{names[0]}.s"]
        else:
            chosen = [self.item(ref) for ref in self.rng.sample(refs, 3)]
        items = [f"{each} AS k{i}" for i, each in enumerate(chosen)]
        if self.chance(0.15) and not alike:
            column, rest = self.subquery(1)
            items.append(f"(SELECT MAX({column}) {rest}) AS m")
        orders = ["k0", "k1", "k2"] + ([] if distinct else [self.rng.choice(refs).text])
        return f"SELECT {distinct}{', '.join(items)} FROM {text}{where}", orders

    def item(self, ref):
        return (
            f"{self.number([ref])} + {ref.text}"
            if ref.type != "string" and ref.small and self.chance(0.3)
            else ref.text
        )

    def tail(self, orders):
        text = ""
        if self.chance(0.6):
            keys = self.rng.sample(orders, self.pick(1, 2))
            how = [self.pick("", " DESC") + self.pick("", " NULLS FIRST", " NULLS LAST") for _ in keys]
            text = f" ORDER BY {', '.join(key + by for key, by in zip(keys, how, strict=True))}"
        return text + (f" LIMIT {self.rng.randint(1, 5)}" if self.chance(0.3) else "")

    def one_off(self):
        if self.chance(0.7):
            text, orders = self.select()
        else:
            text = " UNION ALL ".join(self.select(alike=True)[0] for _ in range(self.pick(2, 3)))
            orders = ["k0", "k1", "k2"]
        text += self.tail(orders)
        if self.chance(0.2):
            text = f"{self.pick('RSTREAM', 'ISTREAM', 'DSTREAM')}({text})"
            if self.chance(0.4):
                text = f"SELECT COUNT(*), MAX(z.k0) FROM {text} AS z [FROM NOW-2 TO NOW SLIDE 2 SEC]"
        return text


def looping(seed):
    """A case whose query has a loop."""
    make = LoopMaker(seed)
    schema, inputs = make.schema(), make.inputs()
    return Case(seed, schema, inputs, make.loop_query(), make.statements(), make.traits)


def once(seed):
    """A case whose query is a one-off query, or has one inside."""
    make = TableMaker(seed)
    schema, inputs = make.schema(), make.inputs()
    make.taken = set()
    return Case(seed, schema, inputs, make.one_off(), [], make.traits)
