"""Raster: a chart as PNG, from its SVG. It needs the library resvg-py, which the extra `png` brings, and a font."""

from functools import cache
from importlib.util import find_spec

SCALE = 2
"""Pixels for a unit of the SVG."""
FONTS = "'DejaVu Sans', 'Liberation Sans', 'Noto Sans', Arial, Helvetica, FreeSans, Ubuntu, Cantarell, Roboto"
"""Families that Linux systems have; the first that is there draws the text."""


def missing_part() -> str | None:
    """Return the sentence that says what PNG needs and this machine lacks, or None."""
    if find_spec("resvg_py") is None:
        return "PNG needs the library resvg-py: pip install 'moteloom[png]'; SVG needs nothing"
    if not _has_font():
        return "PNG needs a font, such as that of `sudo apt install fonts-dejavu-core`; SVG needs nothing"
    return None


def rasterize(svg: str, background: str = "white") -> bytes:
    """Return the PNG of an SVG, SCALE pixels for each of its units. `missing_part()` must be None."""
    import resvg_py

    style = f"svg {{ font-family: {FONTS} }}"
    return bytes(resvg_py.svg_to_bytes(svg_string=svg, style_sheet=style, background=background, zoom=SCALE))


@cache
def _has_font() -> bool:
    """Return whether a letter leaves a trace."""
    empty, letter = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 20 20"><text x="2" y="16">{text}</text></svg>'
        for text in ("", "m")
    )
    return rasterize(empty) != rasterize(letter)
