"""Cases from seeds: a schema, data with everything that happens to data, and a query over it.

`case(seed)` is one case, `shares(cases)` measures what a batch of them contains, `cases()` is the Hypothesis strategy.
"""

import re
from dataclasses import dataclass, field
from itertools import pairwise

from tests.oracles.errors import NotCoveredError, RejectedError
from tests.oracles.generate_data import DataMaker
from tests.oracles.recompute import run


@dataclass
class Ref:
    """A column that an expression may use: how it is written, its type, and whether it may be calculated with."""

    text: str
    type: str
    small: bool = True


@dataclass
class Case:
    seed: object
    schema: str
    inputs: dict
    query: str
    statements: list  # (text, clock tick)
    traits: set = field(default_factory=set)  # join nested late revised union loop oneoff history clause

    @property
    def queries(self):
        return [self.query, *self.statements]


class CaseMaker(DataMaker):
    """Makes a schema, its data and a query of typed parts."""

    # --- expressions -------------------------------------------------------------------------------------------------

    def number(self, refs, depth=1):
        small = [r.text for r in refs if r.type in ("integer", "float") and r.small]
        leaf = self.pick(*small, "2", "3") if small else self.pick("1", "2", "0.5")
        if depth == 0 or self.chance(0.5):
            return leaf
        other = self.number(refs, depth - 1)
        return self.pick(
            f"({leaf} + {other})", f"({leaf} - {other})", f"({leaf} * {other})", f"({leaf} / {other})", f"(-{leaf})",
            f"({leaf} % {other})", f"COALESCE({leaf}, {other})", f"ABS({leaf})", f"CASE WHEN {leaf} > 1 THEN {other} ELSE {leaf} END",
            f"LEAST({leaf}, {other})", f"NULLIF({leaf}, {other})", f"ROUND({leaf})", f"CAST({leaf} AS integer)",
        )  # fmt: skip

    def predicate(self, refs, depth=1):
        texts = [r.text for r in refs if r.type == "string"]
        numbers = [r.text for r in refs if r.type != "string"] or ["1"]
        options = [
            f"{self.pick(*numbers)} {self.pick('<', '<=', '>', '>=', '<>', '=')} {self.rng.randint(0, 3)}",
            f"{self.pick(*numbers)} {self.pick('<=', '<>')} {self.pick(*numbers)}",
            f"{self.number(refs)} < {self.number(refs)}",
            f"{self.pick(*numbers)} {self.pick('', 'NOT ')}BETWEEN 0 AND 2",
            f"{self.pick(*numbers)} IN (0, 1, 2, 3)",
            f"{self.pick(*numbers)} IS {self.pick('', 'NOT ')}NULL",
        ]
        if texts:
            options += [
                f"{self.pick(*texts)} LIKE '%{self.pick('a', '_', '', chr(0x6728))}%'",
                f"{self.pick(*texts)} >= 'A'",
            ]
        sites = [r.text for r in refs if r.text.split(".")[-1] == "site"]
        if sites:
            options += [f"{self.pick(*sites)} <> {self.sites[0]}"]
        if depth and self.chance(0.4):
            return f"({self.predicate(refs, 0)} {self.pick('AND', 'OR')} {self.pick('', 'NOT ')}({self.predicate(refs, 0)}))"
        return self.pick(*options)

    def aggregate(self, refs, keyed):
        """(text, type): 'number' where it is one of the two."""
        ref, number = self.pick(*refs), self.number(refs)
        small = [r.text for r in refs if r.type in ("integer", "float") and r.small] or ["1"]
        same = [f"{name}({ref.text})" for name in ("MIN", "MAX", *(["FIRST", "LAST"] if keyed else []))]
        if self.chance(0.3):
            return self.pick(*same), ref.type
        one = self.pick(*small)
        return self.pick(
            "COUNT(*)", f"COUNT({ref.text})", f"SUM({one})", f"AVG({number})", f"SUM({number})",
            f"MAX({number}) - MIN({number})", f"COUNT(DISTINCT {ref.text})", f"STDEV({one})", f"VARIANCE({one})",
            f"MEDIAN({one})", f"QUANTILE({one}, 0.75)", "12 / COUNT(*)",
        ), "number"  # fmt: skip

    # --- queries -----------------------------------------------------------------------------------------------------

    def alias(self):
        self.aliases += 1
        return f"q{self.aliases}"

    def refs(self, extent, name):
        types = {"n": "integer", "big": "integer", "x": "float", "far": "float", "c": "float", "s": "string"}
        if extent == "road":
            types = {"site": "integer", "time": "integer", **types}
        return [Ref(f"{name}.{a}", t, a not in ("big", "far")) for a, t in types.items()]

    def stream(self, depth):
        """(text, references): a stream in FROM, with its alias."""
        if depth == 0 or self.chance(0.55):
            extent = self.pick("road", "road", "hits")
            name = self.pick(extent, self.alias())
            name = self.alias() if extent in self.taken else name
            self.taken.add(name)
            return (extent if name == extent else f"{extent} AS {name}"), self.refs(extent, name)
        self.traits.add("nested")
        outer, self.taken = self.taken, set()
        text, columns = self.stream_query(depth - 1)
        self.taken = outer
        alias = self.alias()
        return f"({text}) AS {alias}", [Ref(f"{alias}.{c.text}", c.type, c.small) for c in columns]

    def items(self, refs, count=2):
        """SELECT items that all have names, and the columns they make."""
        chosen = [r for r in refs if r.text.split(".")[-1] in ("n", "site") and self.chance(0.7)]
        chosen += self.rng.sample(refs, min(count, len(refs)))
        texts, columns = [], []
        for number, ref in enumerate(chosen):
            name = f"k{number}"
            if ref.type == "string" or not ref.small or self.chance(0.7):
                texts.append(f"{ref.text} AS {name}")
                columns.append(Ref(name, ref.type, ref.small))
            else:
                texts.append(f"{self.number([ref])} AS {name}")
                columns.append(Ref(name, "float", True))
        return ", ".join(texts), columns

    def stream_query(self, depth):
        """(text, columns) of a query of type stream."""
        kind = self.rng.random()
        if kind < 0.4:
            source, refs = self.stream(depth)
            items, columns = self.items(refs)
            if self.chance(0.15):
                items += f", {self.pick('tick', 'index')} AS tag"
                columns.append(Ref("tag", "integer"))
            where = f" WHERE {self.predicate(refs)}" if self.chance(0.6) else ""
            return f"SELECT {items} FROM {source}{where}", columns
        if kind < 0.9:
            text, columns = self.window_query(depth)
            return f"{self.pick('RSTREAM', 'ISTREAM', 'DSTREAM', 'ISTREAM')}({text})", columns
        self.traits.add("union")
        one, two = (f"SELECT n AS k0, x AS k1 FROM {self.pick('road', 'hits')} WHERE {p}" for p in ("n < 3", "n > 0"))
        return f"{one} UNION ALL {two}", [Ref("k0", "integer"), Ref("k1", "float")]

    def window(self):
        if self.chance(0.3):
            back, to = self.rng.randint(1, 4), self.pick("NOW", "NOW", "NOW-1")
            return f"[FROM NOW-{back} TO {to} SLIDE {self.rng.randint(1, 3)} {self.pick('ROW', 'ROWS')}]"
        begin = self.pick("NOW", "NOW-1", "NOW-3", "NOW-5 SEC", "NOW-10")
        return f"[FROM {begin} TO {self.pick('NOW', 'NOW', 'NOW-2')} SLIDE {self.rng.randint(1, 4)} SEC]"

    def entry(self, depth, aggregating):
        """An entry of FROM of a window query: (text, references, whether it is a stream)."""
        if self.chance(0.15):
            extent = self.pick("kinds", "kinds", "road.history", "hits.history")
            if extent != "kinds":
                self.traits.add("history")
            alias = self.alias()
            return (
                f"{extent} AS {alias} [SCAN {self.rng.randint(1, 4)} SEC]",
                self.refs(extent.split(".")[0], alias),
                False,
            )
        text, refs = self.stream(depth)
        if aggregating and self.chance(0.1):
            return f"{text} [UNBOUNDED SLIDE 2 {self.pick('SEC', 'ROWS')}]", refs, True
        if text.split(" ")[0] == "road" and self.chance(0.3):
            return f"{text} [NOW]", refs, True
        return f"{text} {self.window()}", refs, True

    def window_query(self, depth, loops=False):
        """(text, columns) of a window query."""
        aggregating = self.chance(0.45)
        width = self.pick(1, 1, 1, 2, 2, 2, 3) if depth else self.pick(1, 1, 2)
        outer, self.taken = getattr(self, "taken", set()), set()
        entries = [self.entry(depth, aggregating and width == 1) for _ in range(width)]
        self.taken = outer
        refs = [r for _, rs, _ in entries for r in rs]
        conditions = []
        if width > 1:
            self.traits.add("join")
            for (_, left, _), (_, right, _) in pairwise(entries):
                # Both sides have a small integer as their first column that joins well.
                pairs = [(a, b) for a in left for b in right if a.type == b.type == "integer" and a.small and b.small]
                if pairs and self.chance(0.8):
                    a, b = self.rng.choice(pairs)
                    conditions.append(f"{a.text} {self.pick('=', '=', '<=')} {b.text}")
        if self.chance(0.4):
            conditions.append(self.predicate(refs))
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        source = ", ".join(text for text, _, _ in entries)
        if not aggregating:
            items, columns = self.items(refs)
            return f"SELECT {items} FROM {source}{where}", columns
        keyed = width == 1 and entries[0][2]
        landmark = "UNBOUNDED" in source
        wanted = [self.aggregate(refs, keyed) for _ in range(2)]
        if landmark:
            wanted = [("COUNT(*)", "number"), (f"SUM({self.number(refs)})", "number")]
        group = [r.text for r in self.rng.sample(refs, 1)] if self.chance(0.5) else []
        items = [f"{g} AS g{i}" for i, g in enumerate(group)] + [f"{a} AS k{i}" for i, (a, _) in enumerate(wanted)]
        text = f"SELECT {', '.join(items)} FROM {source}{where}"
        text += f" GROUP BY {', '.join(group)}" if group else ""
        text += f" HAVING {self.pick('COUNT(*) > 1', 'COUNT(*) >= 1', 'COUNT(*) < 9')}" if self.chance(0.25) else ""
        return text, [Ref(f"k{i}", type_, False) for i, (_, type_) in enumerate(wanted)]

    def loop_query(self):
        self.traits.add("loop")
        stream = self.pick("road", "hits")
        items = self.pick("n, s", "COUNT(*), SUM(n)", "n, x")
        header = self.pick(
            "t = ST; t <= 9; t += 2",
            "; t == 0; t = -1",
            "t = 3; t < 12; t++",
            "t = 8; t >= 2; t -= 3",
            "t = 6; t > -5; t--",
        )
        windows = self.pick("t - 3, t", "1, 5", "0, t", "t - 4, t - 2")
        if self.chance(0.25):
            return f"SELECT {items} FROM {stream} FOR (t = 1; t < 9; t++) {{ WindowIs({stream} ROWS, t - 2, t); }}"
        if self.chance(0.3):
            self.traits.add("join")
            return (f"SELECT a.n, b.s FROM road AS a, hits AS b WHERE a.n = b.n FOR ({header}) "
                    f"{{ WindowIs(a, {windows}); WindowIs(b, {windows}); }}")  # fmt: skip
        return f"SELECT {items} FROM {stream} FOR ({header}) {{ WindowIs({stream}, {windows}); }}"

    def one_off(self):
        self.traits |= {"oneoff", "join"}
        kind = self.pick("INNER JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
        refs = self.refs("kinds", "a") + self.refs("kinds", "b")
        items = ", ".join(f"{r.text} AS k{i}" for i, r in enumerate(self.rng.sample(refs, 3)))
        tail = self.pick("", " ORDER BY k1 DESC", " ORDER BY k0, k2", f" WHERE {self.predicate(refs)}")
        return f"SELECT {self.pick('', 'DISTINCT ')}{items} FROM kinds AS a {kind} kinds AS b ON a.n = b.n{tail}"

    def query(self):
        self.taken = set()
        kind = self.rng.random()
        if kind < 0.06:
            return self.loop_query()
        if kind < 0.1:
            return self.one_off()
        text, _ = self.window_query(1) if kind < 0.6 else self.stream_query(2)
        if self.chance(0.15):
            self.traits.add("clause")
            clauses = [f" FOR {self.rng.randint(2, 9)} SEC"]
            if re.search(r"\broad\b(?!\.)", text):  # the others are about sampling
                clauses += [f" ACQUIRE EVERY {2 * self.every} SEC", " DELIVER WITHIN 3 SEC"]
            text += self.pick(*clauses)
        return text


def case(seed):
    """The case of a seed. Every seed gives a case; a few of its queries may be refused, which is an answer too."""
    make = CaseMaker(seed)
    schema, inputs = make.schema(), make.inputs()
    return Case(seed, schema, inputs, make.query(), make.statements(), make.traits)


def shares(cases, answers):
    """The share of the cases that has each trait; `answers` are the Results (or exceptions) of the first of them."""
    result = {}
    for trait in ("join", "nested", "late", "revised", "union", "loop", "oneoff", "history", "clause"):
        result[trait] = sum(trait in c.traits for c in cases) / len(cases)
    result["late or revised"] = sum(bool({"late", "revised"} & c.traits) for c in cases) / len(cases)
    result["refused"] = sum(isinstance(a, Exception) for a in answers) / len(answers)
    result["non-empty"] = sum(not isinstance(a, Exception) and says_something(a.answers[0]) for a in answers) / len(
        answers
    )
    return result


def measure(seeds, answered):
    """The shares of the cases of these seeds; the oracle answers so many of them."""
    made = [case(seed) for seed in seeds]
    answers = []
    for c in made[:answered]:
        try:
            answers.append(run(c.schema, c.inputs, c.queries))
        except (RejectedError, NotCoveredError) as e:
            answers.append(e)
    return shares(made, answers)


def says_something(answer):
    return bool(answer.tuples) or any(w.added for w in answer.windows)


def cases():
    """A Hypothesis strategy of cases; they shrink toward small seeds only."""
    from hypothesis import strategies

    return strategies.integers(0, 2**32).map(case)
