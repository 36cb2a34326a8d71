"""Spark starts with its classes from a file where that fits, and as usual where there is none, or another."""

import os
import subprocess
import sys

import pytest

from basestation.archive.spark import class_archive
from basestation.archive.spark.class_archive import class_options, find_class_archive
from basestation.archive.spark.java import find_java
from tests.conftest import FULL


@pytest.fixture
def java(tmp_path, monkeypatch):
    """A Java home, and a Python environment of its own."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "environment"))
    (tmp_path / "java").mkdir()
    (tmp_path / "java" / "release").write_text('JAVA_VERSION="17.0.15"\n')
    return tmp_path / "java"


def test_options_name_the_class_archive_where_there_is_one(java):
    assert class_options(java) == ""
    path = find_class_archive(java)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"classes")
    assert f'"-XX:SharedArchiveFile={path}" -Xshare:auto' in class_options(java)


def test_class_archive_belongs_to_one_java_and_one_pyspark(java, monkeypatch):
    found = {find_class_archive(java)}
    (java / "release").write_text('JAVA_VERSION="17.0.16"\n')
    found.add(find_class_archive(java))
    monkeypatch.setattr(class_archive, "version", lambda package: "9.9.9")
    found.add(find_class_archive(java))
    assert len(found) == 3


START = """
import sys
from pathlib import Path
sys.prefix = sys.argv[1]
from basestation.archive.spark.class_archive import find_class_archive
from basestation.archive.spark.class_archive_maker import make_class_archive
from basestation.archive.spark.java import find_java
from basestation.archive.spark.session import start_session
path = find_class_archive(find_java())
if sys.argv[2] == "make":
    assert make_class_archive(find_java()) == path
    sys.exit()
if sys.argv[2] == "foreign":
    path.parent.mkdir(parents=True)
    path.write_bytes(bytes(100_000))
session = start_session(Path(sys.argv[3]))
process = session._jvm.java.lang.ProcessHandle.current().pid()
print(session.range(7).count(), str(path) in Path(f"/proc/{process}/maps").read_text())
"""


def start(folder, how):
    command = [sys.executable, "-c", START, str(folder / "environment"), how, str(folder / "state")]
    environment = {**os.environ, "JAVA_HOME": str(find_java())}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=400)
    assert done.returncode == 0, done.stderr
    return done.stdout


if FULL:  # each starts a Spark

    @pytest.mark.timeout(900)
    def test_spark_maps_the_class_archive(tmp_path, need):
        need("java")
        start(tmp_path, "make")
        assert start(tmp_path, "use") == "7 True\n"

    @pytest.mark.timeout(900)
    def test_spark_starts_beside_a_foreign_class_archive(tmp_path, need):
        need("java")
        assert start(tmp_path, "foreign") == "7 False\n"
