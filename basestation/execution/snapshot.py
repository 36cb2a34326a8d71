"""Snapshot: the whole state of an engine as bytes, and an engine from them, between any two batches.

The state is a graph of our own values and numpy arrays, written with pickle. The reader knows no other classes, so bytes from
elsewhere cannot name code to run. The first line has the number of the format, and a checksum follows: another format or damaged
bytes are refused, and nothing is restored by halves.
"""

import hashlib
import io
import pickle
from collections.abc import Callable
from enum import EnumType
from types import FunctionType
from typing import TYPE_CHECKING, Any

from gateway.errors import MoteloomError

if TYPE_CHECKING:
    from basestation.execution.engine import Engine

_KIND = b"moteloom engine "
FORMAT = 37
"""Raise it whenever a class of the state has other attributes or another module: older bytes would be misread, or not found."""
_HEAD = _KIND + b"%d\n" % FORMAT
_OURS = ("acquisition.", "basestation.", "gateway.", "innet.")
_RULES = "basestation.planner.rules."
_OTHERS = {
    ("collections", "Counter"), ("collections", "deque"), ("functools", "partial"), ("builtins", "set"),
    ("builtins", "frozenset"), ("builtins", "range"), ("builtins", "slice"), ("numpy", "ndarray"), ("numpy", "dtype"),
    ("numpy._core.multiarray", "_reconstruct"), ("numpy._core.multiarray", "scalar"),
    ("numpy._core.numeric", "_frombuffer"),
}  # fmt: skip


class SnapshotError(MoteloomError):
    """The bytes are no snapshot of an engine, or one of another format."""


def save_engine(engine: "Engine") -> bytes:
    """Return the state of an engine between two steps, without what was delivered since the last one ended."""
    body = pickle.dumps(engine, protocol=pickle.HIGHEST_PROTOCOL)
    return _HEAD + hashlib.sha256(body).digest() + body


def restore_engine(data: bytes) -> "Engine":
    """Return the engine of a snapshot; it goes on as if nothing had happened. Raises SnapshotError."""
    if not data.startswith(_HEAD):
        raise SnapshotError(_explain_refusal(data))
    begin = len(_HEAD) + hashlib.sha256().digest_size
    digest, body = data[len(_HEAD) : begin], data[begin:]
    if hashlib.sha256(body).digest() != digest:
        raise SnapshotError("the snapshot of an engine is damaged: its checksum differs")
    try:
        engine: Engine = StateReader(io.BytesIO(body)).load()
    except pickle.UnpicklingError as error:
        raise SnapshotError(f"this is not a snapshot of an engine: {error}") from error
    return engine


def _explain_refusal(data: bytes) -> str:
    """Return what is wrong with bytes that do not begin with the current head."""
    line = data[: len(_KIND) + 9].partition(b"\n")[0]
    if line.startswith(_KIND) and line[len(_KIND) :].isdigit():
        found, expected = (head.decode("ascii").strip() for head in (line, _HEAD))
        return f"expected a snapshot with the head `{expected}`, found `{found}` of another version"
    return "this is not a snapshot of an engine"


class StateReader(pickle.Unpickler):
    """Knows the classes that our packages define, the rewrite rules, numpy's arrays, and a few plain containers.

    A module of ours also has the names that it imports, and a dotted name may lead through those. So an object is accepted
    only if it is a class, or a rule, that was defined in the module named.
    """

    def find_class(self, module: str, name: str) -> Any:
        """Return the object that a pickle names. Raises UnpicklingError for any other than those above."""
        if (module, name) == ("builtins", "getattr"):  # how some versions of Python write a member of an Enum
            return _member_or_method
        if (module, name) in _OTHERS:
            return super().find_class(module, name)
        if module.startswith(_OURS) and "." not in name:
            try:
                found = super().find_class(module, name)
            except (ImportError, AttributeError) as error:
                raise pickle.UnpicklingError(f"unknown name {module}.{name}") from error
            if getattr(found, "__module__", None) == module and (isinstance(found, type) or module.startswith(_RULES)):
                return found
        raise pickle.UnpicklingError(f"{module}.{name} has no place in it")


def _member_or_method(owner: object, name: str) -> object:
    """Return a member of an Enum by its name, or a method of an object of ours. Raises UnpicklingError for all else."""
    if isinstance(owner, EnumType) and name in owner.__members__:
        return owner[name]
    if type(owner).__module__.startswith(_OURS) and isinstance(getattr(type(owner), name, None), FunctionType):
        method: Callable[..., object] = getattr(owner, name)
        return method
    raise pickle.UnpicklingError(f"{name} is no member of {owner}")
