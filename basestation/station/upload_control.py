"""UploadControl: the part of LiveControl that takes tuples, tables and corrections, and gives receipts for them."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from acquisition.errors import InputError
from acquisition.extent import Extent, ExtentKind
from acquisition.sources.pushed_tuples import PushedTuples, RejectedRow, read_tuples
from acquisition.ticks import rfc3339_of
from basestation.controller.active_hours import ActiveHoursError
from basestation.controller.admission import bind_corrections
from basestation.controller.query_lifecycle import QueryStateError
from basestation.rest.control import JsonObject
from basestation.rest.wire import HttpProblemError
from basestation.station.declared_extents import ExtentError, read_declaration
from basestation.station.journal import Command, Upload
from basestation.station.journal_file import KeyReusedError
from basestation.station.query_limits import QueryLimitError
from basestation.station.runner import Runner
from basestation.station.uploads import KIND_OF, describe_tables, encode_tuples

Found = TypeVar("Found")
SHOWN_ROWS = 100
"""Wrong rows that a receipt lists; it counts them all."""
_MEND = "`errors` says what each row should have: correct the rows and send them again"
_HINTS = {
    ExtentKind.SENSED: "motes deliver the readings of a sensed extent; REVISE and INSERT correct them",
    ExtentKind.PUSHED: "POST its tuples to /v1/extents/{}/tuples",
    ExtentKind.STORED: "PUT its rows to /v1/extents/{}/rows",
}


class UploadControl:
    """Methods of `basestation.rest.control.StationControl`."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    def _call(self, action: Callable[[int], Found]) -> Found:
        """Carry out a command on the station's thread. HttpProblemError where its key or the state of a query forbids it."""
        try:
            return self._runner.call(action)
        except KeyReusedError as error:
            raise HttpProblemError(422, "key-reused", str(error), error.help) from None
        except QueryStateError as error:
            raise wrong_state(error) from None
        except QueryLimitError as error:
            raise HttpProblemError(409, error.code, str(error), error.help) from None
        except ActiveHoursError as error:
            raise HttpProblemError(422, "bad-active-hours", str(error), error.help) from None

    def push(self, extent: str, body: bytes, form: str, key: str | None) -> JsonObject:
        tuples, receipt = self._read(extent, ExtentKind.PUSHED, body, form)
        if not len(tuples) and tuples.rejected:
            raise _refuse(receipt, "no row is a tuple of this extent", _MEND)
        return receipt | self._upload(extent, ExtentKind.PUSHED, tuples, body, key)

    def load(self, extent: str, body: bytes, form: str, key: str | None) -> JsonObject:
        tuples, receipt = self._read(extent, ExtentKind.STORED, body, form)
        if tuples.rejected:
            raise _refuse(receipt, "a table is taken as a whole, and some rows are wrong", _MEND)
        if tuples.has_tick.any():
            raise _refuse(
                receipt,
                "a version of a table is valid from now on, so its rows have no time",
                "leave `_tick` and `_time` out",
            )
        return receipt | self._upload(extent, ExtentKind.STORED, tuples, body, key)

    def declare(self, name: str, text: str, key: str | None) -> JsonObject:
        durable = self._runner.durable
        catalog = durable.station.world.catalog
        others = replace(catalog, extents={other: of for other, of in catalog.extents.items() if other != name})
        try:
            extent = read_declaration(text, others)  # on the thread of the request
            if extent.name != name:
                raise ExtentError(
                    "other-name", f"the text declares `{extent.name}`, the address says `{name[:80]}`", "use one name"
                )

            def take(now_ms: int) -> bool:
                durable.commit_or_refuse()  # first: a declaration that waits for room is not kept yet
                catalog = durable.station.world.catalog
                if catalog.extents.get(name) == extent:
                    return False
                read_declaration(text, catalog)
                return durable.take_data(Command("declare", now_ms, text), text, key)

            is_new = self._call(take)
        except ExtentError as error:
            status = 409 if error.code in ("already-declared", "too-many-extents", "not-declarable") else 422
            raise HttpProblemError(status, error.code, str(error), error.help) from None
        return describe_extent(extent) | {"repeated": not is_new}

    def tables(self) -> list[JsonObject]:
        durable = self._runner.durable
        tick_ms = durable.station.world.catalog.tick_ms
        found = self._runner.call(lambda now_ms: describe_tables(durable.station))
        return [
            {"extent": name, "versions": [{"tick": tick, "time": rfc3339_of(tick, tick_ms), "rows": rows} for tick, rows in versions]}
            for name, versions in found.items()
        ]  # fmt: skip

    def correct(self, text: str, key: str | None) -> JsonObject:
        durable = self._runner.durable
        found = bind_corrections(text, durable.station.world)
        is_new, now_ms = self._call(
            lambda now_ms: (durable.take_data(Command("correct", now_ms, text), text, key), now_ms)
        )
        statements = [{"how": each.how, "extent": each.extent.name} for each in found]
        return {"statements": statements, "repeated": not is_new, "time": rfc3339_of(now_ms, 1)}

    def _read(self, name: str, kind: ExtentKind, body: bytes, form: str) -> tuple[PushedTuples, dict[str, object]]:
        """The tuples of a body, and the part of the receipt that they decide."""
        catalog = self._runner.durable.station.world.catalog
        extent: Extent = catalog.extents[name]
        if extent.kind is not kind:
            hint = _HINTS[extent.kind].format(name)
            raise HttpProblemError(409, f"not-{kind}", f"`{name}` is {extent.kind}, not {kind}", hint)
        try:
            tuples = read_tuples(body, form, extent, catalog.tick_ms, self._runner.looked_ms)
        except InputError as wrong:
            row = RejectedRow(wrong.row or 0, wrong.column, wrong.code, wrong.message)
            errors = [_as_json(row)] if wrong.row else []
            raise HttpProblemError(422, wrong.code, str(wrong), wrong.help, {"errors": errors}) from None
        errors = [_as_json(each) for each in tuples.rejected[:SHOWN_ROWS]]
        return tuples, {
            "extent": name, "accepted": len(tuples), "rejected": len(tuples.rejected), "errors": errors,
        }  # fmt: skip

    def _upload(
        self, name: str, kind: ExtentKind, tuples: PushedTuples, body: bytes, key: str | None
    ) -> dict[str, object]:
        encoded, digest = encode_tuples(tuples), hashlib.sha256(body).hexdigest()
        durable = self._runner.durable

        def take(now_ms: int) -> tuple[bool, int]:
            return durable.take_data(Upload(KIND_OF[kind], now_ms, name, encoded), f"{name} {digest}", key), now_ms

        is_new, now_ms = self._call(take)
        return {"repeated": not is_new, "time": rfc3339_of(now_ms, 1)}


def wrong_state(error: QueryStateError) -> HttpProblemError:
    """The problem of a command that the state of its query does not allow."""
    return HttpProblemError(409, "not-in-this-state", str(error), error.help)


def _as_json(wrong: RejectedRow) -> dict[str, object]:
    return {"row": wrong.row, "column": wrong.column, "code": wrong.code, "message": wrong.message}


def _refuse(receipt: dict[str, object], title: str, remedy: str) -> HttpProblemError:
    return HttpProblemError(
        422, "rejected", title, remedy, {"errors": receipt["errors"], "rejected": receipt["rejected"]}
    )


def describe_extent(extent: Extent) -> dict[str, object]:
    """An extent as clients see it."""
    found: dict[str, object] = {"name": extent.name, "kind": str(extent.kind)}
    found["attributes"] = [
        {"name": each.name, "type": str(each.type)} | ({"unit": each.unit} if each.unit else {})
        for each in extent.schema
    ]
    if extent.kind is ExtentKind.SENSED:
        found["every_ticks"] = extent.interval
    return found
