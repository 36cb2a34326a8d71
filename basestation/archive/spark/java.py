"""Finds a Java that can run Spark."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from gateway.errors import MoteloomError

OLDEST = 17
REMEDY = "sudo apt install openjdk-17-jre-headless"


class SparkUnavailableError(MoteloomError):
    """Historical queries cannot run here; the message names the missing part and the remedy."""

    code = "spark-unavailable"
    ends_process = True
    """A process that is kept for more queries begins anew."""


def find_java(environment: Mapping[str, str] = os.environ, private: Path | None = None) -> Path:
    """The JAVA_HOME to use: that of the environment, of `java` on PATH, or the private one of `make setup`."""
    private = private or Path(sys.prefix) / "java"
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    homes = [
        Path(environment["JAVA_HOME"]) if environment.get("JAVA_HOME") else None,
        Path(on_path).resolve().parents[1] if on_path else None,
        private,
    ]
    seen = []
    for home in homes:
        if home is None or not (home / "bin" / "java").is_file():
            continue
        version = java_version(home)
        if version >= OLDEST:
            return home
        seen.append(f"{home} is Java {version}" if version else f"{home} does not start")
    found = f" ({'; '.join(seen)})" if seen else ""
    raise SparkUnavailableError(f"history needs Java {OLDEST} or later, and there is none{found}; on Debian: {REMEDY}")


def java_version(home: Path) -> int:
    """The major version of a Java; 0 if it does not start."""
    try:
        printed = subprocess.run([home / "bin" / "java", "-version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = re.search(r'version "(?:1\.)?(\d+)', printed.stderr)
    return int(found.group(1)) if found else 0
