"""Records are not frozen, for speed; still, only their own class writes to their fields."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted(path for room in ("basestation", "bench") for path in (ROOT / room).rglob("*.py"))


@pytest.mark.promise("bounded-memory")
def test_records_are_never_written_to():
    """An attribute with the name of a field of a record is written only through `self`."""
    trees = {path: ast.parse(path.read_text()) for path in MODULES}
    often = [found for tree in trees.values() for found in ast.walk(tree) if is_record(found)]
    fields = {each.target.id for found in often for each in found.body if isinstance(each, ast.AnnAssign)}
    assert {"values", "added", "ident"} <= fields
    written = [
        f"{path.relative_to(ROOT)}:{found.lineno}" for path, tree in trees.items() for found in ast.walk(tree)
        if isinstance(found, ast.Attribute) and isinstance(found.ctx, ast.Store | ast.Del) and found.attr in fields
        and not (isinstance(found.value, ast.Name) and found.value.id == "self")
        and not (isinstance(found.value, ast.Attribute) and found.value.attr == "counts")  # OperatorCounters add up
    ]  # fmt: skip
    assert not written
    own = [each for found in often for each in ast.walk(found)]
    assert not [each for each in own if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store)]


def is_record(found):
    decorators = found.decorator_list if isinstance(found, ast.ClassDef) else ()
    return any(isinstance(each, ast.Name) and each.id == "record" for each in decorators)
