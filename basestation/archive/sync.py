"""Sync: makes a file, or the entries of a folder, survive a power failure."""

import os
from pathlib import Path


def sync_path(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
