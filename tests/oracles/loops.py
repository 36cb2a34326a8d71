"""For-loop windows (10.8)."""

from itertools import product

from basestation.language import syntax
from tests.oracles.errors import RejectedError
from tests.oracles.expressions import Member
from tests.oracles.schema import ticks
from tests.oracles.values import and_, compare, cut_division, in_64_bits, not_, or_
from tests.oracles.windows import Window, most_recent, row_covers, row_members, time_members

TOO_MANY = 10_000


class LoopError(RejectedError):
    """An error at run time, of kind input, at the tick of the evaluation before it."""

    def __init__(self, tick, message):
        super().__init__("input", message)
        self.tick = tick


def evaluate(expr, t, start, tick_ms):
    """An expression of a loop: an integer of 64 bits, or True or False."""
    found = _evaluate(expr, t, start, tick_ms)
    if not isinstance(found, bool) and in_64_bits(found) is None:
        raise OverflowError
    return found


def _evaluate(expr, t, start, tick_ms):
    def value(e):
        return evaluate(e, t, start, tick_ms)

    match expr:
        case syntax.Number(value=number):
            if not isinstance(number, int):
                raise RejectedError("type", "a loop counts in integers")
            return number
        case syntax.Duration():
            return ticks(expr, tick_ms)
        case syntax.LoopName(text=name):
            return start if name.upper() == "ST" else t
        case syntax.Unary(op="-"):
            return -value(expr.operand)
        case syntax.Unary(op="NOT"):
            return not_(value(expr.operand))
        case syntax.Binary(op="AND"):
            return and_(value(expr.left), value(expr.right))
        case syntax.Binary(op="OR"):
            return or_(value(expr.left), value(expr.right))
        case syntax.Binary(op="+"):
            return value(expr.left) + value(expr.right)
        case syntax.Binary(op="-"):
            return value(expr.left) - value(expr.right)
        case syntax.Binary(op="*"):
            return value(expr.left) * value(expr.right)
        case syntax.Binary(op="/"):
            divisor = value(expr.right)
            if divisor == 0:
                raise ZeroDivisionError
            return cut_division(value(expr.left), divisor)
        case syntax.Binary():
            return compare(expr.op, value(expr.left), value(expr.right))
    raise RejectedError("syntax", f"not in a loop: {type(expr).__name__}")


def ends(loop):
    return [end for window in loop.windows for end in (window.left, window.right)]


def _has_duration(expr):
    if isinstance(expr, syntax.Duration):
        return True
    return isinstance(expr, syntax.Expr) and any(map(_has_duration, children_of(expr)))


def children_of(expr):
    return [getattr(expr, name) for name in ("left", "right", "operand") if hasattr(expr, name)]


class LoopWindows:
    """One loop: each value of t gives one window of each stream that it names.

    `streams` are (place in FROM, stream, excludes, left, right), left and right as syntax.
    """

    def __init__(self, loop, streams, context):
        self.loop, self.streams, self.context = loop, streams, context
        self.rows = any(w.rows for w in loop.windows)
        if any(w.rows != self.rows for w in loop.windows):
            raise RejectedError("static", "a loop is all ticks or all ROWS")
        if self.rows and any(map(_has_duration, [loop.first, loop.condition, loop.change, *ends(loop)])):
            raise RejectedError("static", "rows are counted, not timed")
        self.st = 0 if self.rows else context.start  # ST is the tick of the query's start, with ROWS 0

    def watermark(self, clock):
        return min(stream.watermark(clock) for _, stream, _, _, _ in self.streams)

    def value(self, expr, t):
        return evaluate(expr, t, self.st, self.context.tick_ms)

    def evaluations(self, clock, upto):
        """(t, tick, [(left, right) of each stream]) of all windows made at or before a tick; LoopError where one ends.

        An error belongs to the moment at which the loop goes on, so it is raised only by a LoopError at the end.
        """
        found, error = [], None
        views = [stream.view(clock) for _, stream, _, _, _ in self.streams]
        t, before, at_one_tick, decreased = 0, self.context.start, 0, False
        try:
            if self.loop.first is not None:
                t = self.value(self.loop.first, 0)
            while self.value(self.loop.condition, t) is True:
                ends = [(self.value(left, t), self.value(right, t)) for _, _, _, left, right in self.streams]
                if decreased and all(
                    right < self.first_on_record(v) for v, (_, right) in zip(views, ends, strict=True)
                ):
                    break  # it follows a decrease of t and lies before everything on record
                tick = self.made_at(views, ends, before)
                if tick is None or tick > upto:
                    return found, None
                at_one_tick = at_one_tick + 1 if found and tick == before else 1
                if at_one_tick == TOO_MANY:
                    raise LoopError(tick, "10,000 evaluations at one tick")  # 14: the 10,000th is the error
                found.append((t, tick, ends))
                before = tick
                changed = self.value(self.loop.change, t)
                if changed == t:
                    raise LoopError(tick, "the change leaves t as it was")  # 14: also if the condition would be false
                decreased, t = changed < t, changed
        except ZeroDivisionError:
            error = LoopError(before, "division by zero")
        except OverflowError:
            error = LoopError(before, "an integer outside 64 bits")
        except LoopError as e:
            error = e
        return found, error if error and error.tick <= upto else None

    def first_on_record(self, view):
        """In a replay tick 0; rows: row 1, or the oldest there is."""
        return min([1, *view.arrivals]) if self.rows else 0

    def made_at(self, views, ends, before):
        """The tick of a window: max(ST, its largest right end or that row's arrival, the tick before). None: not yet."""
        if not self.rows:
            return max(self.context.start, before, *(right for _, right in ends))
        arrivals = []
        for view, (_, right) in zip(views, ends, strict=True):
            if right < 1:
                arrivals.append(self.context.start)  # 14: the arrival of a row below 1 counts as ST
            elif right in view.arrivals:
                arrivals.append(view.arrivals[right])
            else:
                return None
        return max(self.context.start, before, *arrivals)

    def windows(self, clock, upto):
        """[Window], members being {place in FROM: tuples}; and the error that ends the loop, or None."""
        evaluations, error = self.evaluations(clock, upto)
        found = []
        for t, tick, ends in evaluations:
            members, covers = {}, []
            for (place, stream, excludes, _, _), (left, right) in zip(self.streams, ends, strict=True):
                tuples = stream.view(clock).tuples
                if self.rows:
                    rows = row_members(tuples, left, right)
                    members[place] = [Member(x.values, x.key) for x in rows]
                    covers += row_covers(stream, rows, clock, tick, excludes)
                else:
                    members[place] = time_members(tuples, left, right, tick)  # both ends inside
                    covers += stream.covers(left, right, clock, tick, excludes)
            found.append(Window(tick, 0, t, members, tuple(covers)))  # they are counted when they are combined
        return found, error


class LoopProduct:
    """All loops of a query, combined as in section 4, and the stored extents beside them, read at that tick."""

    def __init__(self, loops, tables, width, context):
        self.loops, self.tables, self.width, self.context = loops, tables, width, context  # tables: {place: table}

    def watermark(self, clock):
        return min(x.watermark(clock) for x in [*self.loops, *self.tables.values()])

    def windows(self, clock, upto):
        answers = [loop.windows(clock, upto) for loop in self.loops]
        errors = [error for _, error in answers if error]
        if errors:  # the query ends with it: nothing after its tick
            self.context.error = min(errors, key=lambda e: e.tick)
            upto = min(upto, self.context.error.tick)
        lists = [[w for w in windows if w.tick <= upto] for windows, _ in answers]
        found = []
        for tick in sorted({w.tick for windows in lists for w in windows}):
            for combination in product(*(most_recent(windows, tick) for windows in lists)):
                parts = {place: tuples for w in combination for place, tuples in w.members.items()}
                for place, table in self.tables.items():
                    parts[place] = [Member(row) for row in table.scan(tick, clock)]
                members = self._join([parts[place] for place in range(self.width)])
                ts = [w.t for w in combination]
                n = 1 + sum(w.tick == tick for w in found)
                covers = tuple(c for w in combination for c in w.covers)
                # 14: with several loops t is the list
                found.append(Window(tick, n, ts[0] if len(ts) == 1 else ts, members, covers))
        return found

    @staticmethod
    def _join(parts):
        if len(parts) == 1:
            return tuple(parts[0])
        return tuple(Member(sum((m.row for m in pair), ())) for pair in product(*parts))

    def nothing(self, clock):
        return [c for loop in self.loops for _, stream, excludes, _, _ in loop.streams
                for c in stream.covers(1, 0, clock, None, excludes)]  # fmt: skip
