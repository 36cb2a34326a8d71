"""A missing Java is reported with its remedy before Spark fails."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from basestation.archive.spark.java import SparkUnavailableError, find_java, java_version

ROOT = Path(__file__).resolve().parents[2]


def fake_java(home, says, code=0):
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho '{says}' >&2\nexit {code}\n")
    java.chmod(0o755)
    return home


OPENJDK = 'openjdk version "{}" 2025-04-15'


@pytest.mark.parametrize(
    ("says", "version"),
    [(OPENJDK.format("17.0.15"), 17), (OPENJDK.format("21"), 21), ('java version "1.8.0_402"', 8), ("what?", 0)],
)
def test_versions(tmp_path, says, version):
    assert java_version(fake_java(tmp_path, says)) == version


def test_java_search_order_environment_path_private(tmp_path):
    homes = {name: fake_java(tmp_path / name, OPENJDK.format("17.0.1")) for name in ("home", "path", "private")}
    environment = {"JAVA_HOME": str(homes["home"]), "PATH": str(homes["path"] / "bin")}
    assert find_java(environment, homes["private"]) == homes["home"]
    del environment["JAVA_HOME"]
    assert find_java(environment, homes["private"]) == homes["path"]
    assert find_java({"PATH": ""}, homes["private"]) == homes["private"]


def test_old_java_is_skipped(tmp_path):
    old = fake_java(tmp_path / "old", 'java version "1.8.0_402"')
    new = fake_java(tmp_path / "new", OPENJDK.format("17"))
    assert find_java({"JAVA_HOME": str(old), "PATH": ""}, new) == new


def test_missing_java_error_names_remedy(tmp_path):
    old = fake_java(tmp_path / "old", 'java version "1.8.0_402"')
    with pytest.raises(SparkUnavailableError) as caught:
        find_java({"JAVA_HOME": str(old), "PATH": ""}, tmp_path / "nothing")
    assert "Java 17 or later" in str(caught.value)
    assert f"{old} is Java 8" in str(caught.value)
    assert "sudo apt install openjdk-17-jre-headless" in str(caught.value)


@pytest.mark.promise("end-to-end")
def test_missing_pyspark_error_names_extra(tmp_path, monkeypatch):
    from basestation.archive.spark.session import start_session

    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path, OPENJDK.format("17"))))
    with pytest.raises(SparkUnavailableError, match=r"pip install 'moteloom\[history\]'"):
        start_session(tmp_path)


def test_setup_shim_removes_one_flag(tmp_path):
    """The lines of tools/setup.sh between the marks, with `echo` instead of Java."""
    script = (ROOT / "tools" / "setup.sh").read_text()
    body = script.split("<<SHIM\n")[1].split("\nSHIM\n")[0].replace("\\$", "$").replace("$image", str(tmp_path))
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text('#!/bin/sh\nprintf "<%s>" "$@"\n')
    shim = tmp_path / "shim"
    shim.write_text(body + "\n")
    for file in (java, shim):
        file.chmod(0o755)
    given = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "--add-modules=other", "*", ""]
    printed = subprocess.run(
        [shim, *given], capture_output=True, text=True, env=os.environ, timeout=30, check=True
    ).stdout
    assert printed == "<-cp><a b><--add-modules=other><*><>"
