"""The file of a picture, SVG or PNG: `--plot` and `--map`. It is whole, or its name ends in `.part`."""

import argparse
import os
from pathlib import Path


def parse_picture(text: str) -> Path:
    """A file for a picture. Raises ArgumentTypeError for other formats than SVG and PNG, or if PNG lacks something here."""
    if not text.endswith((".svg", ".png")):
        raise argparse.ArgumentTypeError(f"expected a file that ends in .svg or .png, found `{text}`")
    if text.endswith(".png"):
        from basestation.results.raster import missing_part

        if missing := missing_part():
            raise argparse.ArgumentTypeError(missing)
    return Path(text)


def open_picture_file(path: Path | None) -> None:
    """Create the unfinished file of a picture. Raises InputError where it cannot be written: better before than after the work."""
    if path is not None:
        _write(path, b"")


def write_picture(path: Path, svg: str) -> None:
    """Write a picture, and give the file its name when it is complete. Raises InputError."""
    from acquisition.errors import InputError
    from basestation.results.raster import rasterize

    _write(path, rasterize(svg) if path.suffix == ".png" else svg.encode())
    try:
        os.replace(_part(path), path)
    except OSError as why:
        raise InputError("SN501", f"cannot be written: {why.strerror}", str(path)) from why


def _write(path: Path, content: bytes) -> None:
    from acquisition.errors import InputError

    try:
        _part(path).write_bytes(content)
    except OSError as why:
        help = "the unfinished file ends in .part" if _part(path).exists() else None
        raise InputError("SN501", f"cannot be written: {why.strerror}", str(path), help=help) from why


def _part(path: Path) -> Path:
    return path.with_name(f"{path.name}.part")
