"""Class archive: the classes of Spark as Java lays them out in memory, in a file that a start maps instead of loading them one by one.

`class_archive_maker` makes it. It belongs to one Java and one PySpark. Where there is none, or Java finds that it does not fit, Spark starts
as without, more slowly.
"""

import hashlib
import sys
from importlib.metadata import version
from pathlib import Path


def find_class_archive(java: Path) -> Path:
    """Where the class archive for a Java is, if there is one."""
    release = java / "release"
    about = f"{java.resolve()} {release.read_text() if release.is_file() else ''} {version('pyspark')}"
    return Path(sys.prefix) / "spark-classes" / f"{hashlib.sha256(about.encode()).hexdigest()[:16]}.jsa"


def class_options(java: Path) -> str:
    """The options by which Java maps its class archive; none where there is none."""
    path = find_class_archive(java)
    if not path.is_file():
        return ""
    return f'"-XX:SharedArchiveFile={path}" -Xshare:auto -Xlog:disable -Xlog:all=error:stderr'
