"""Units: the UCUM codes that an attribute may have, and the words for spans of time.

A unit says what a value means; the scale of an attribute (`acquisition.schema`) says how it is stored.
"""

import re

# UCUM code -> (quantity, factor to the first code of that quantity, offset). Only linear units can be converted;
# a logarithmic one (dB) is a quantity of its own.
UCUM = {
    "1": ("ratio", 1.0, 0.0),
    "%": ("ratio", 0.01, 0.0),
    "[ppm]": ("ratio", 1e-6, 0.0),
    "[ppb]": ("ratio", 1e-9, 0.0),
    "K": ("temperature", 1.0, 0.0),
    "Cel": ("temperature", 1.0, 273.15),
    "[degF]": ("temperature", 5 / 9, 459.67 * 5 / 9),
    "m": ("length", 1.0, 0.0),
    "km": ("length", 1e3, 0.0),
    "cm": ("length", 1e-2, 0.0),
    "mm": ("length", 1e-3, 0.0),
    "um": ("length", 1e-6, 0.0),
    "[in_i]": ("length", 0.0254, 0.0),
    "[ft_i]": ("length", 0.3048, 0.0),
    "m2": ("area", 1.0, 0.0),
    "m3": ("volume", 1.0, 0.0),
    "L": ("volume", 1e-3, 0.0),
    "mL": ("volume", 1e-6, 0.0),
    "g": ("mass", 1e-3, 0.0),
    "kg": ("mass", 1.0, 0.0),
    "t": ("mass", 1e3, 0.0),
    "mg": ("mass", 1e-6, 0.0),
    "s": ("time", 1.0, 0.0),
    "ms": ("time", 1e-3, 0.0),
    "min": ("time", 60.0, 0.0),
    "h": ("time", 3600.0, 0.0),
    "d": ("time", 86400.0, 0.0),
    "Hz": ("frequency", 1.0, 0.0),
    "kHz": ("frequency", 1e3, 0.0),
    "/min": ("frequency", 1 / 60, 0.0),
    "m/s": ("speed", 1.0, 0.0),
    "km/h": ("speed", 1 / 3.6, 0.0),
    "mm/s": ("speed", 1e-3, 0.0),
    "m/s2": ("acceleration", 1.0, 0.0),
    "[g]": ("acceleration", 9.80665, 0.0),
    "mm/h": ("rainfall", 1.0, 0.0),
    "Pa": ("pressure", 1.0, 0.0),
    "hPa": ("pressure", 1e2, 0.0),
    "kPa": ("pressure", 1e3, 0.0),
    "bar": ("pressure", 1e5, 0.0),
    "mbar": ("pressure", 1e2, 0.0),
    "N": ("force", 1.0, 0.0),
    "kN": ("force", 1e3, 0.0),
    "V": ("voltage", 1.0, 0.0),
    "mV": ("voltage", 1e-3, 0.0),
    "A": ("current", 1.0, 0.0),
    "mA": ("current", 1e-3, 0.0),
    "uA": ("current", 1e-6, 0.0),
    "Ohm": ("resistance", 1.0, 0.0),
    "W": ("power", 1.0, 0.0),
    "kW": ("power", 1e3, 0.0),
    "mW": ("power", 1e-3, 0.0),
    "J": ("energy", 1.0, 0.0),
    "kW.h": ("energy", 3.6e6, 0.0),
    "W/m2": ("irradiance", 1.0, 0.0),
    "lx": ("illuminance", 1.0, 0.0),
    "lm": ("luminous flux", 1.0, 0.0),
    "cd": ("luminous intensity", 1.0, 0.0),
    "deg": ("angle", 1.0, 0.0),
    "rad": ("angle", 57.29577951308232, 0.0),
    "mol/L": ("concentration", 1.0, 0.0),
    "ug/m3": ("mass concentration", 1.0, 0.0),
    "mg/m3": ("mass concentration", 1e3, 0.0),
    "[pH]": ("acidity", 1.0, 0.0),
    "S/m": ("conductivity", 1.0, 0.0),
    "uS/cm": ("conductivity", 1e-4, 0.0),
    "dB": ("level", 1.0, 0.0),
    "dB[10.nV]": ("level", 1.0, 0.0),
    "dBm": ("level", 1.0, 0.0),
    "[NTU]": ("turbidity", 1.0, 0.0),
    "Bq/m3": ("activity", 1.0, 0.0),
    "uSv/h": ("dose rate", 1.0, 0.0),
}

# The word in lower case -> (its short name, its milliseconds).
_TIME = {
    "ms": ("MS", 1),
    "millisecond": ("MS", 1),
    "milliseconds": ("MS", 1),
    "sec": ("SEC", 1_000),
    "secs": ("SEC", 1_000),
    "second": ("SEC", 1_000),
    "seconds": ("SEC", 1_000),
    "min": ("MIN", 60_000),
    "mins": ("MIN", 60_000),
    "minute": ("MIN", 60_000),
    "minutes": ("MIN", 60_000),
    "hour": ("HOUR", 3_600_000),
    "hours": ("HOUR", 3_600_000),
    "day": ("DAY", 86_400_000),
    "days": ("DAY", 86_400_000),
}
_ROWS = {"row": "ROW", "rows": "ROW"}

TIME_UNITS = ("MS", "SEC", "MIN", "HOUR", "DAY")
UNIT_WORDS = (*_TIME, *_ROWS)
"""Every spelling of a unit of time or rows, for did-you-mean."""

_SHORT = {"s": "SEC", "m": "MIN", "h": "HOUR", "d": "DAY"}
_SPAN = re.compile(r"(\d{1,9}) ?([a-z]+)", re.IGNORECASE)
_MILLISECONDS = {short: ms for short, ms in _TIME.values()}


def unit_of(word: str) -> str | None:
    """Return the short name of a unit of time or rows (`seconds` -> `SEC`, `ROWS` -> `ROW`); None if unknown."""
    word = word.lower()
    return _TIME[word][0] if word in _TIME else _ROWS.get(word)


def ticks_of(count: int, unit: str, tick_ms: int) -> int | None:
    """Return `count` units of time in ticks of `tick_ms` milliseconds; None if that is not a whole number."""
    ticks, rest = divmod(count * _MILLISECONDS[unit], tick_ms)
    return None if rest else ticks


def milliseconds_of(span: str) -> int | None:
    """Return the length of a span of time outside of queries, such as `90 sec`, `90s` or `2 hours`; None if invalid."""
    found = _SPAN.fullmatch(span)
    if found is None:
        return None
    unit = _SHORT.get(found[2].lower()) or unit_of(found[2])
    return int(found[1]) * _MILLISECONDS[unit] if unit in _MILLISECONDS else None


def span_text(ticks: int, tick_ms: int) -> str:
    """Return a span of ticks in the largest unit of which it is a whole number: `90 sec`, `2 hour`."""
    ms = ticks * tick_ms
    unit = next(short for short in reversed(TIME_UNITS) if ms % _MILLISECONDS[short] == 0) if ms else "SEC"
    return f"{ms // _MILLISECONDS[unit]} {unit.lower()}"
