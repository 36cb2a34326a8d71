"""Find where rows of a CSV file end, without parsing it: quotes may hide ends of lines."""

import re

import numpy as np

_LINE_END = re.compile(rb"\r\n|\n|\r")
_QUOTE, _NEWLINE = 34, 10


def find_row_end(data: bytes, separator: str = ",") -> int:
    """Return where the last whole row ends; 0 if that is not certain. `data` begins with a row.

    Quotes come in pairs if each one that opens a field follows a separator, the end of a line or a quote. Then a line ends a row
    if the quotes before it are even.
    """
    if b'"' not in data:
        return data.rfind(b"\n") + 1
    content = np.frombuffer(data, np.uint8)
    quotes = np.flatnonzero(content == _QUOTE)
    opening = quotes[::2]
    if not np.isin(content[opening[opening > 0] - 1], [ord(separator), _NEWLINE, 13, _QUOTE]).all():
        return 0
    lines = np.flatnonzero(content == _NEWLINE)
    outside = lines[np.searchsorted(quotes, lines) % 2 == 0]
    return int(outside[-1]) + 1 if len(outside) else 0


def find_header_end(data: bytes, separator: str = ",") -> int | None:
    """Return where the first row ends that is not empty; None if that is not certain."""
    start = len(data) - len(data.lstrip(b"\r\n"))
    for end in _LINE_END.finditer(data, start):
        line = data[start : end.start()]
        if line.count(b'"') % 2 == 0:
            regular = b'"' not in line or find_row_end(line + b"\n", separator) == len(line) + 1
            return end.end() if regular else None
    return None if b'"' in data[start:] else len(data)
