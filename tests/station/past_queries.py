"""Queries from chance that begin in the past, over the extents of a small network with traffic."""

from datetime import UTC, datetime

TIME, ROWS, LANDMARK = "time", "rows", "landmark"
NUMBERS = {"traffic": ("lane",), "field": ("site", "volt")}


class PastQueryMaker:
    """Makes queries of windows of time, rows and landmarks, joins, converters, one above another, plain streams and loops."""

    def __init__(self, rng):
        self.rng, self.aliases = rng, 0

    def query(self, since, now):
        """A query since a tick; the form of that is drawn too. Rows occur, so the log may lack some before SINCE (semantics 1.1)."""
        make = self.rng.choice([self.block, self.block, self.converted, self.converted, self.stream, self.loop])
        written = datetime.fromtimestamp(since, UTC).isoformat().replace("+00:00", "Z")
        begin = self.rng.choice([str(since), f"'{written}'", f"NOW - {now - since} SEC"])
        end = f" FOR {self.rng.randint(20, 200)} SEC" if self.rng.random() < 0.15 else ""
        return f"{make()} SINCE {begin}{end}"

    def block(self, depth=1):
        """A query over windows."""
        if self.rng.random() < 0.2:
            return self.join()
        source, name, numbers = self.source(depth)
        kind = self.rng.choice([TIME, TIME, TIME, ROWS, LANDMARK])
        text = f"FROM {source} {self.window(kind)}{self.where(name, numbers)}"
        number = f"{name}.{self.rng.choice(numbers)}"
        if kind != LANDMARK and self.rng.random() < 0.3:
            return f"SELECT {number} AS a {text}"
        values = self.rng.sample(
            ["COUNT(*) AS n", f"SUM({number}) AS s", f"MAX({number}) AS m", f"AVG({number}) AS v"], 2
        )
        if self.rng.random() < 0.5:
            return f"SELECT {', '.join(values)} {text}"
        having = " HAVING COUNT(*) > 1" if self.rng.random() < 0.3 else ""
        return f"SELECT {number} AS a, {', '.join(values)} {text} GROUP BY {number}{having}"

    def join(self):
        """A join of two windows, or of a window with one of an earlier range of the same extent."""
        extents = self.rng.choice([("traffic", "field"), ("traffic", "traffic"), ("field", "field")])
        one, other = (f"{extent} {self.window(TIME)} {alias}" for extent, alias in zip(extents, "ab", strict=True))
        keys = " = ".join(f"{alias}.{NUMBERS[extent][0]}" for extent, alias in zip(extents, "ab", strict=True))
        return f"SELECT a.{NUMBERS[extents[0]][0]} AS a, COUNT(*) AS n FROM {one}, {other} WHERE {keys} GROUP BY a.{NUMBERS[extents[0]][0]}"

    def converted(self):
        """The stream of a converter."""
        return f"{self.rng.choice(['ISTREAM', 'DSTREAM', 'RSTREAM'])}({self.block()})"

    def stream(self):
        """A plain stream, of an extent or above a converter."""
        source, name, numbers = self.source(1)
        return f"SELECT {', '.join(f'{name}.{each} AS c{each}' for each in numbers)} FROM {source}{self.where(name, numbers)}"

    def loop(self):
        """A for-loop over an extent, which ends or goes back."""
        extent = self.rng.choice(["traffic", "field"])
        step, back = self.rng.choice([5, 7, 10]), self.rng.choice([0, 4, 12])
        loop = self.rng.choice(
            [
                f"t = ST; t < ST + 150; t += {step}",
                f"t = ST - 9; t < ST + 90; t += {step}",
                "t = ST; t > ST - 30; t -= 6",
            ]
        )
        values = f"COUNT(*) AS n, MAX({NUMBERS[extent][0]}) AS m"
        return f"SELECT {values} FROM {extent} FOR ({loop}) {{ WindowIs({extent}, t - {back}, t); }}"

    def source(self, depth):
        """(text, name, numbers) of a stream in FROM."""
        self.aliases += 1
        name = f"q{self.aliases}"
        if depth and self.rng.random() < 0.25:
            extent = self.rng.choice(["traffic", "field"])
            number, converter = self.rng.choice(NUMBERS[extent]), self.rng.choice(["ISTREAM", "RSTREAM", "DSTREAM"])
            inner = f"SELECT {number} AS a, COUNT(*) AS n FROM {extent} {self.window(TIME)} GROUP BY {number}"
            return f"{converter}({inner}) AS {name}", name, ("a", "n")
        extent = self.rng.choice(["traffic", "field"])
        return f"{extent} AS {name}", name, NUMBERS[extent]

    def window(self, kind):
        """A window; some of time are longer than a log of 20 seconds."""
        if kind == LANDMARK:
            return f"[UNBOUNDED SLIDE {self.rng.choice([3, 5, 10])} SEC]"
        if kind == ROWS:
            return f"[FROM NOW-{self.rng.randint(1, 4)} TO NOW SLIDE {self.rng.randint(1, 3)} ROWS]"
        begin, end = self.rng.choice([0, 1, 4, 9, 20, 45]), self.rng.choice([0, 0, 3])
        return f"[FROM NOW-{max(begin, end)} TO NOW-{end} SLIDE {self.rng.choice([3, 5, 7, 10])} SEC]".replace(
            "NOW-0", "NOW"
        )

    def where(self, name, numbers):
        number = self.rng.choice(numbers)
        return (
            f" WHERE {name}.{number} {self.rng.choice(['>', '<>', '<='])} {self.rng.randint(0, 3)}"
            if self.rng.random() < 0.4
            else ""
        )
