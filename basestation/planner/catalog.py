"""Reads the text of a schema as a Catalog: binds and checks the clauses of extents and attributes (semantics 13)."""

from acquisition.extent import Catalog, Extent, ExtentKind, LatePolicy
from acquisition.schema import Attribute, Schema, Type
from acquisition.units import UCUM, ticks_of
from basestation.language import syntax
from basestation.language.schema_parser import parse_schema
from basestation.language.schema_syntax import AttributeDecl, ExtentDecl, SitesClause
from basestation.planner.diagnostic_report import Report
from basestation.planner.functions import TYPES
from gateway.source import Source, did_you_mean

_FITS = {
    "every": ("sensed",), "sites": ("sensed",), "wait": ("sensed", "pushed"), "late": ("sensed", "pushed"),
    "ahead": ("sensed", "pushed"), "source": ("stored",),
}  # fmt: skip
_WORDS = {"sites": "at sites", "source": "from"}
_MOST_SITES = 1_000_000
_DAY_MS = 86_400_000
MAX_TICKS = 2**62  # so that the sum of a tick and a span fits into 64 bits


def read_schema(text: str, name: str | None = None, tick_ms: int = 1_000) -> Catalog:
    """The Catalog that a schema declares; ticks of `tick_ms` milliseconds. Raises DiagnosticError with all errors."""
    source = Source(text, name)
    parsed = parse_schema(source)
    report = Report(source, parsed.diagnostics)
    extents = {}
    for declaration in parsed.extents:
        if declaration.name.text in extents:
            report.error("SN208", f"extent `{declaration.name.text}` is declared twice", declaration.name)
        extents[declaration.name.text] = _extent(declaration, report, tick_ms)
    report.raise_errors()
    return Catalog(extents, tick_ms)


def _extent(declaration: ExtentDecl, report: Report, tick_ms: int) -> Extent:
    kind = ExtentKind(declaration.kind)
    for clause, kinds in _FITS.items():
        written = getattr(declaration, clause)
        if written is not None and declaration.kind not in kinds:
            word = _WORDS.get(clause, clause)
            report.error(
                "SN424",
                f"`{word}` does not belong to a {kind} extent",
                written,
                help=f"`{word}` is for {' and '.join(kinds)} extents",
            )
    if kind is ExtentKind.SENSED:
        for clause, example in (("every", "every 1 min"), ("sites", "at sites 1, 2")):
            if getattr(declaration, clause) is None:
                report.error(
                    "SN425",
                    f"sensed extent `{declaration.name.text}` does not say `{example.rsplit(' ', 2)[0]}`",
                    declaration.name,
                    help=f"add, for example, `{example}`",
                )
    attributes = [_attribute(a, report) for a in declaration.attributes]
    names = set()
    for written in declaration.attributes:
        if written.name.text in names:
            report.error("SN208", f"attribute `{written.name.text}` is declared twice", written.name)
        names.add(written.name.text)

    def ticks(duration: syntax.Duration | None, otherwise: int | None) -> int | None:
        return otherwise if duration is None else whole_ticks(duration, report, tick_ms)

    sensed = kind is ExtentKind.SENSED
    interval = ticks(declaration.every, 1) if sensed else None
    late, horizon = LatePolicy.REVISE, None
    if declaration.late is not None:
        late = LatePolicy(declaration.late.policy)
        horizon = ticks(declaration.late.horizon, None)
    if late is LatePolicy.REVISE and horizon is None and kind is not ExtentKind.STORED:
        horizon = max(1, _DAY_MS // tick_ms)
    return Extent(
        name=declaration.name.text,
        kind=kind,
        schema=Schema(tuple(attributes)),
        interval=interval,
        sites=_sites(declaration.sites, report) if sensed else (),
        wait=ticks(declaration.wait, interval if sensed else 0) or 0,
        late=late,
        horizon=horizon,
        ahead=ticks(declaration.ahead, interval if sensed else None),
        source=declaration.source.value if declaration.source else None,
    )


def whole_ticks(duration: syntax.Duration, report: Report, tick_ms: int, why: str = "") -> int:
    """A duration in ticks. Reports a fraction of a tick or a number of rows as an error, and returns 1.

    `why` is appended to the help: how the duration got its unit.
    """
    if report.has_error_in(duration.span):  # the parser has replaced an unknown unit
        return 1
    if duration.unit == "ROW":
        report.error("SN411", "rows are no span of time", duration, expected=("MS", "SEC", "MIN", "HOUR", "DAY"))
        return 1
    ticks = ticks_of(duration.count, duration.unit, tick_ms)
    if ticks is None:
        report.error(
            "SN412",
            f"{duration.count} {duration.unit} is no whole number of ticks",
            duration,
            help=f"one tick is {tick_ms} ms{why}",
        )
        return 1
    if ticks > MAX_TICKS:
        report.error("SN308", "a span of time has at most 2^62 ticks", duration)
        return 1
    return ticks


def _attribute(written: AttributeDecl, report: Report) -> Attribute:
    name = written.name.text
    if name in ("tick", "index"):
        report.error("SN210", f"`{name}` cannot be declared: every tuple of a stream has its own", written.name)
    elif name.startswith("_"):
        report.error("SN210", "names that begin with an underscore are the system's", written.name)
    type_ = TYPES[written.type.text]
    if written.unit is not None and written.unit.value not in UCUM:
        report.error(
            "SN207",
            f"`{written.unit.value}` is no UCUM code known here",
            written.unit,
            help=did_you_mean(written.unit.value, UCUM),
        )
    scale = None
    if written.scale is not None:
        value = written.scale.value
        if type_ is not Type.FLOAT:
            report.error("SN426", f"only a float has a scale, `{name}` is {_with_article(type_)}", written.scale)
        elif not isinstance(value, int) or not 0 <= value <= 18:
            report.error("SN426", "a scale is a whole number from 0 to 18", written.scale)
        else:
            scale = value
    range_ = None
    if written.range is not None:
        range_ = _signed(written.range[0]), _signed(written.range[1])
        if not type_.numeric:
            report.error("SN426", f"only a number has a range, `{name}` is a string", written.range[0])
        elif range_[0] > range_[1]:
            report.error(
                "SN426", "the range ends before it begins", written.range[1], help="write the smaller end first"
            )
    sensor = written.sensor.value if written.sensor else None
    return Attribute(name, type_, written.unit.value if written.unit else None, sensor, scale, range_)


def _with_article(type_: Type) -> str:
    return f"an {type_}" if type_ is Type.INTEGER else f"a {type_}"


def _signed(end: syntax.Expr) -> int | float:
    if isinstance(end, syntax.Unary):
        return -_signed(end.operand)
    if not isinstance(end, syntax.Number):
        raise TypeError(f"no number: {end!r}")
    return end.value


def _sites(written: SitesClause | None, report: Report) -> tuple[int, ...] | None:
    if written is None:
        return ()
    if written.all:
        return None
    count = sum(last - first + 1 for first, last in written.ranges)
    if any(last < first for first, last in written.ranges):  # the parser reports it
        return ()
    if count > _MOST_SITES:
        report.error("SN427", f"{count:,} sites are more than {_MOST_SITES:,}", written)
        return ()
    sites = tuple(site for first, last in written.ranges for site in range(first, last + 1))
    if len(set(sites)) < len(sites):
        twice = next(site for place, site in enumerate(sites) if site in sites[:place])
        report.error("SN427", f"site {twice} stands twice", written)
    return sites
