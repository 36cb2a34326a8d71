"""Saving: the whole state of an engine as bytes, and an engine from them, between any two batches.

The state is a graph of our own values and numpy arrays; it is written with pickle and read back by a reader that knows
no other classes, so that bytes from elsewhere cannot name code to run. The first line says which version wrote it, a
checksum that nothing was damaged: else it is refused, and nothing is half restored.
"""

import hashlib
import io
import pickle
from enum import EnumType
from types import FunctionType

from gateway.errors import MoteloomError

_KIND = b"moteloom engine "
FORMAT = 14
"""The number is one more wherever a class of the state keeps something else, or is elsewhere: it would be misread, or not found."""
_HEAD = _KIND + b"%d\n" % FORMAT
_OURS = ("acquisition.", "basestation.", "gateway.", "innet.")
_RULES = "basestation.planner.rules."
_OTHERS = {
    ("collections", "Counter"), ("collections", "deque"), ("functools", "partial"), ("builtins", "set"), ("builtins", "frozenset"), ("builtins", "range"),
    ("builtins", "slice"), ("numpy", "ndarray"), ("numpy", "dtype"), ("numpy._core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "scalar"), ("numpy._core.numeric", "_frombuffer"),
}  # fmt: skip


class SnapshotError(MoteloomError):
    """The bytes are not what `saved` gave, or another version wrote them."""


def save_engine(engine):
    """The state of an engine between two steps: what was delivered in the tick that is going on is not part of it."""
    body = pickle.dumps(engine, protocol=pickle.HIGHEST_PROTOCOL)
    return _HEAD + hashlib.sha256(body).digest() + body


def restore_engine(data):
    """The engine whose state it was: it goes on as if nothing had happened."""
    if not data.startswith(_HEAD):
        raise SnapshotError(_other(data))
    begin = len(_HEAD) + hashlib.sha256().digest_size
    digest, body = data[len(_HEAD) : begin], data[begin:]
    if hashlib.sha256(body).digest() != digest:
        raise SnapshotError("the saved state of an engine is damaged")
    try:
        return StateReader(io.BytesIO(body)).load()
    except pickle.UnpicklingError as why:
        raise SnapshotError(f"this is not the saved state of an engine: {why}") from why


def _other(data):
    """What bytes are that do not begin as `saved` has them begin."""
    line = data[: len(_KIND) + 9].partition(b"\n")[0]
    if line.startswith(_KIND) and line[len(_KIND) :].isdigit():
        was, reads = (of.decode("ascii").strip() for of in (line, _HEAD))
        return f"another version saved this state, as `{was}`; only `{reads}` can be read here"
    return "this is not the saved state of an engine"


class StateReader(pickle.Unpickler):
    """Knows the classes that our packages define, the rewrites, numpy's arrays, and a few plain containers.

    A module of ours also has what it imports, and a name may be a path through that: so what is found must be a class,
    or a rewrite, that was made where it is said to be.
    """

    def find_class(self, module, name):
        if (module, name) == ("builtins", "getattr"):  # how some versions of Python write a member of an Enum
            return _member_or_method
        if (module, name) in _OTHERS:
            return super().find_class(module, name)
        if module.startswith(_OURS) and "." not in name:
            try:
                found = super().find_class(module, name)
            except (ImportError, AttributeError) as why:
                raise pickle.UnpicklingError(f"{module}.{name} is not there") from why
            if getattr(found, "__module__", None) == module and (isinstance(found, type) or module.startswith(_RULES)):
                return found
        raise pickle.UnpicklingError(f"{module}.{name} has no place in it")


def _member_or_method(owner, name):
    """A member of an Enum by its name, or a method of an object of ours, and nothing else."""
    if isinstance(owner, EnumType) and name in owner.__members__:
        return owner[name]
    if type(owner).__module__.startswith(_OURS) and isinstance(getattr(type(owner), name, None), FunctionType):
        return getattr(owner, name)
    raise pickle.UnpicklingError(f"{name} is no member of {owner}")
