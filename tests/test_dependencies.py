"""Each declared dependency is imported, and each imported library is declared."""

import ast
import re
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
OWN = set(PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"])
MODULES = {
    "paho_mqtt": "paho",
    "pyserial": "serial",
    "grpcio": "grpc",
    "ipython": "IPython",
}
"""The module of a distribution, where it has another name."""
NOT_IMPORTED = {
    "tzdata": "data of time zones, which zoneinfo reads where the system has none",
    "pandas": "moteloom.client and moteloom.replay make data frames through Arrow, and Spark takes Arrow tables with it",
    "grpcio_status": "PySpark imports it for Spark Connect",
    "googleapis_common_protos": "PySpark imports it for Spark Connect",
    "zstandard": "PySpark imports it for Spark Connect",
    "pytest_xdist": "pytest loads it",
    "pytest_timeout": "pytest loads it",
    "pytest_cov": "pytest loads it",
    "import_linter": "a program: lint-imports",
    "ruff": "a program",
    "mypy": "a program",
    "pandas_stubs": "types for mypy",
}
"""Distributions that no code has to import, and why they are declared."""


@cache
def imported_tops(file):
    """The modules that the code of a file imports: the first part of their names."""
    names = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += [node.module] if node.module and not node.level else []
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.importorskip":
            names.append(node.args[0].value)
    return [name.partition(".")[0] for name in names]


def imports(*folders):
    """The modules outside of the standard library and of Moteloom that the code of folders imports, by file."""
    found = {}
    for folder in folders:
        for file in (ROOT / folder).rglob("*.py"):
            for top in imported_tops(file):
                if top not in OWN and top not in sys.stdlib_module_names:
                    found.setdefault(top, str(file.relative_to(ROOT)))
    return found


def distributions(requirements):
    return {re.match(r"[A-Za-z0-9_.-]+", each)[0].lower().replace("-", "_") for each in requirements}


BASE = distributions(PROJECT["project"]["dependencies"])
EXTRAS = {name: distributions(each) for name, each in PROJECT["project"]["optional-dependencies"].items()}
USERS = {
    "connect": sorted(OWN),
    "history": sorted(OWN),
    "frames": sorted(OWN),
    "png": sorted(OWN),
    "notebook": sorted(OWN),
    "test": ["tests"],
    "bench": ["bench"],
}
"""The folders whose code an extra is for."""


def test_every_extra_has_folders():
    assert set(USERS) == set(EXTRAS)


@pytest.mark.parametrize("extra", [None, *EXTRAS])
def test_each_declared_library_is_imported(extra):
    declared, folders = (BASE, sorted(OWN)) if extra is None else (EXTRAS[extra], USERS[extra])
    needed = {MODULES.get(each, each) for each in declared - set(NOT_IMPORTED)}
    assert needed <= set(imports(*folders)), "declared in pyproject.toml, and not imported"


def test_each_library_that_the_product_imports_is_declared():
    declared = BASE | EXTRAS["history"] | EXTRAS["frames"] | EXTRAS["png"] | EXTRAS["connect"] | EXTRAS["notebook"]
    found = imports(*OWN)
    missing = {name: file for name, file in found.items() if name not in {MODULES.get(each, each) for each in declared}}
    assert missing == {}, "imported, and not declared in pyproject.toml"


def test_the_base_installation_needs_no_library_of_an_extra():
    """Libraries that only an extra brings are imported inside of functions, or for types."""
    optional = {
        MODULES.get(each, each)
        for name in ("history", "connect", "frames", "png", "notebook")
        for each in EXTRAS[name] - BASE
    }
    for folder in sorted(OWN):
        for file in (ROOT / folder).rglob("*.py"):
            for node in ast.parse(file.read_text(encoding="utf-8")).body:
                names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
                names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                assert not {name.partition(".")[0] for name in names} & optional, file


def test_the_list_of_what_is_not_imported_has_no_others():
    assert set(NOT_IMPORTED) <= BASE.union(*EXTRAS.values())
