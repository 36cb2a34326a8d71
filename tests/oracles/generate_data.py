"""Schemas and data from seeds, with everything that happens to data: late, twice, wrong, missing, corrected."""

import random

STRINGS = ["", "a", "A", "it's", "50%", "a_b", "Grüße", "木", "\U0001f600", "zz"]
FLOATS = [0.0, -0.0, 0.1, 0.25, -1.5, 3.0, 1e16, -1e16, 1.0, 1e-30, 1e-7]
FAR = [1.7976931348623157e308, -1.7976931348623157e308, 5e-324, -5e-324, 0.1, 0.0, -0.0, None]
BIG = [2**53, 2**53 + 1, 2**63 - 1, -(2**63), 0, 1, None]


class DataMaker:
    """Makes a schema, its data and what is corrected later, and notes what it did in `traits`."""

    ATTRIBUTES = ("n:integer", "big:integer", "x:float", "far:float", "c:float {scale 2}", "s:string")

    def __init__(self, seed):
        self.rng = random.Random(f"oracle {seed}")
        self.traits = set()
        self.aliases = 0
        self.tame = self.chance(0.4)

    def chance(self, p):
        return self.rng.random() < p

    def pick(self, *options):
        return self.rng.choice(options)

    # --- schema and data ---------------------------------------------------------------------------------------------

    def schema(self):
        self.every = self.rng.randint(1, 3)
        self.sites = self.rng.sample(range(1, 9), self.rng.randint(1, 3))
        self.wait = self.rng.randint(0, 3)
        late = lambda: self.pick("", "late revise by 4 sec", "late append", "late drop", "late revise by 1 min")  # noqa: E731
        columns = ", ".join(self.ATTRIBUTES)
        wait = f"wait {self.wait} sec" if self.wait or self.chance(0.5) else ""
        ahead = self.pick("", "", "ahead 3 sec")
        lines = [
            f"road: sensed (site:integer, time:integer, {columns}) every {self.every} sec "
            f"at sites {', '.join(map(str, self.sites))} {wait} {late()}",
            f"hits: pushed ({columns}) {self.pick('', 'wait 2 sec')} {late()} {ahead}",
            f"kinds: stored ({columns})",
        ]
        return "\n".join(" ".join(line.split()) for line in lines) + "\n"

    def values(self):
        row = {
            "n": self.rng.randint(0, 3), "big": self.pick(*BIG), "x": self.pick(*FLOATS), "far": self.pick(*FAR),
            "c": self.pick(0.25, 1.005, -0.13, 21.5, 3), "s": self.pick(*STRINGS),
        }  # fmt: skip
        return {name: None if self.chance(0.08) else value for name, value in row.items()}

    def inputs(self):
        self.end = self.rng.randint(4, 14)
        return {"road": self.sensed(), "hits": self.pushed(), "kinds": self.stored()}

    def sensed(self):
        rows = []
        if self.chance(0.04):
            return rows
        for tick in range(0, self.end + 1, self.every):
            for site in self.sites:
                if self.chance(0.08):
                    continue
                rows.append(self.reading(tick, site))
                if not self.tame:
                    rows += self.troubles(rows[-1])
        return rows

    def reading(self, tick, site):
        row = {"_tick": tick, "_site": site, **self.values()}
        if self.tame or self.chance(0.6):
            return row
        delay = self.rng.randint(0, self.wait) if self.chance(0.5) else self.rng.randint(1, 8)
        if delay > self.wait:
            self.traits.add("late")
        return {**row, "_arrival": tick + delay}

    def troubles(self, row):
        """Faults of a reading: copies, other values, wrong times, corrections."""
        later = {**row, "_arrival": row.get("_arrival", row["_tick"]) + self.rng.randint(0, 5)}
        if self.chance(0.05):
            return [later]  # a duplicate
        if self.chance(0.04):
            return [{**later, "n": 77}]  # a conflict
        if self.chance(0.03):
            return [{**later, "_tick": row["_tick"] + 1000}]  # a wild clock
        if self.chance(0.03):
            return [{**later, "_site": 99}]
        if self.chance(0.05):
            self.traits.add("revised")
            return [{"_tick": row["_tick"], "_site": row["_site"], "_arrival": later["_arrival"], "_weight": -1}]
        if self.chance(0.06):
            self.traits.add("revised")
            other = {} if self.chance(0.25) else self.values()  # a replacement by key, which may change nothing
            return [{**later, **other, "_replaces": 0, "_tick": row["_tick"] + self.pick(0, 0, 0, self.every)}]
        return []

    def pushed(self):
        rows, clock = [], 0
        for number in range(self.rng.randint(0, 14)):
            clock += self.pick(0, 0, 1, 1, 2)
            row = {"_arrival": clock, **self.values()}
            if self.chance(0.4 if self.tame else 0.6):
                row["_tick"] = clock if self.tame else max(0, clock + self.pick(-6, -3, -1, 0, 0, 1, 4))
                if row["_tick"] < clock:
                    self.traits.add("late")
            if number and not self.tame and self.chance(0.08):
                row.pop("_tick", None)
                row["_replaces"] = self.rng.randint(1, number)
                if self.chance(0.3):
                    row["_tick"] = max(0, clock - self.rng.randint(0, 4))  # mostly not that of the tuple
                self.traits.add("revised")
            rows.append(row)
        return rows

    def stored(self):
        ticks = sorted({0, *(self.rng.randint(0, self.end) for _ in range(self.rng.randint(0, 2)))})
        return [(tick, [self.values() for _ in range(self.rng.randint(0, 4))]) for tick in ticks]

    def statements(self):
        if self.tame or self.chance(0.75):
            return []
        self.traits.add("revised")
        clock = self.rng.randint(1, self.end)
        return [(self.pick(
            "REVISE road SET n = n + 1 WHERE n = 2", "REVISE hits SET n = 3 WHERE index <= 3", "DELETE FROM road WHERE n = 1",
            "REVISE hits SET n = 2 WHERE n >= 2", "DELETE FROM hits WHERE tick < 5", f"INSERT INTO hits (tick, n, s) VALUES ({clock}, 1, 'new')",
            f"INSERT INTO road (tick, site, n) VALUES ({clock // self.every * self.every}, {self.sites[0]}, 2)",
        ), clock)]  # fmt: skip
