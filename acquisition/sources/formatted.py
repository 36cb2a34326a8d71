"""Recordings in a form of their own: columns get the names of the system, and times become ticks."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from acquisition.errors import InputError
from acquisition.extent import Extent, ExtentKind
from acquisition.schema import Attribute
from acquisition.sources.arrow_arrays import nulls_to_numpy, numbers_to_arrow
from acquisition.sources.bad_rows import BadRows
from acquisition.sources.blocks import Block, BlockSource
from acquisition.sources.column_conversion import to_arrow
from acquisition.sources.input_format import InputFormat
from acquisition.sources.recorded_table import RecordedTable, list_columns
from acquisition.sources.times import TimeConversion
from gateway.source import did_you_mean

ConvertedT = TypeVar("ConvertedT")


class FormattedSource:
    """A source in a form of its own. Wrong rows are left out with `bad`."""

    def __init__(
        self, source: BlockSource, form: InputFormat, extent: Extent, tick_ms: int, bad: BadRows | None = None
    ) -> None:
        self._source, self._form, self._extent, self._bad = source, form, extent, bad
        self._times = TimeConversion(form.time, tick_ms)

    @property
    def name(self) -> str:
        return self._source.name

    @property
    def size(self) -> int:
        return self._source.size

    def blocks(self, attributes: Mapping[str, Attribute], wanted: Collection[str] | None = None) -> Iterator[Block]:
        """Yield blocks with the columns of the system. Raises InputError."""
        form = self._form
        own = {name: attribute for name, attribute in attributes.items() if name != form.time_column}
        if form.site_column is not None:
            own[form.site_column] = attributes["_site"]
        if form.site_prefix is not None:
            wanted = None  # a field that is null is no reading
        if wanted is not None:
            wanted = {*wanted, *(name for name in (form.time_column, form.site_column) if name is not None)}
        for block in self._source.blocks(own, wanted):
            yield _FormattedBlock(block, self._convert)

    def whole(self) -> RecordedTable:
        return self._rename(self._source.whole())

    def _convert(self, recorded: RecordedTable, conversion: Callable[[RecordedTable], ConvertedT]) -> ConvertedT:
        """Return what a conversion makes of the rows, without those that are wrong if these are left out."""
        if recorded.parsed:
            return conversion(self._rename(recorded))
        if self._bad is not None:
            recorded = replace(recorded, every_error=True)
        while True:
            try:
                return conversion(self._rename(recorded))
            except InputError as wrong:
                error = self._in_its_names(wrong)
                if self._bad is None or not error.rows:
                    raise error from None
                self._bad.add(error, error.rows)
                recorded = recorded.without(error.rows)

    def _in_its_names(self, error: InputError) -> InputError:
        """Return an error that names a column as the recording does."""
        own = {"_tick": self._form.time_column, "_site": self._form.site_column}.get(error.column or "")
        if own is None:
            return error
        return InputError(error.code, error.message, error.file, error.row, own, error.help, error.rows)

    def _rename(self, recorded: RecordedTable) -> RecordedTable:
        """Return the table with `_tick` and `_site`."""
        form, schema = self._form, self._extent.schema
        columns = dict(recorded.columns)
        if form.time_column is not None and form.time_column in columns:
            self._expect_free(recorded, "_tick", form.time_column)
            columns["_tick"] = self._times.ticks(recorded, form.time_column)
            if schema.find(form.time_column) is None:
                del columns[form.time_column]
        elif form.time_column is not None and not {"_tick", "_arrival"} & columns.keys():
            raise _no_column(recorded, form.time_column)
        if form.site_column is not None and self._extent.kind is ExtentKind.SENSED:
            if form.site_column not in columns:
                raise _no_column(recorded, form.site_column)
            self._expect_free(recorded, "_site", form.site_column)
            columns["_site"] = columns[form.site_column]
            if schema.find(form.site_column) is None:
                del columns[form.site_column]
        recorded = replace(recorded, columns=columns)
        return recorded if form.site_prefix is None else self._stack_sites(recorded, form.site_prefix)

    def _stack_sites(self, recorded: RecordedTable, prefix: str) -> RecordedTable:
        """Return a row for each field of a column that has the number of a site."""
        pattern = re.compile(re.escape(prefix) + r"(\d{1,9})")
        found = {name: int(match[1]) for name in recorded.columns if (match := pattern.fullmatch(name))}
        named = {a for a in (self._extent.site_attribute, self._extent.time_attribute) if a is not None}
        free = [a.name for a in self._extent.schema if a not in named and a.name not in recorded.columns]
        if not found or len(free) != 1:
            message = f"expected columns `{prefix}1`, `{prefix}2`, … with one attribute of `{self._extent.name}`"
            raise InputError(
                "SN505", f"{message}; found {len(found)} columns and {len(free)} attributes", recorded.name
            )
        fields = pa.chunked_array([_in_one(to_arrow(recorded.columns[name])) for name in found])
        # Row by row, as a file of single readings would have them.
        order = np.arange(len(fields)).reshape(len(found), len(recorded)).T.ravel()
        valid = nulls_to_numpy(_in_one(fields))
        order = order if valid is None else order[valid[order]]
        row = order % max(1, len(recorded))
        stacked = replace(recorded, columns={n: c for n, c in recorded.columns.items() if n not in found}).take(row)
        sites = np.array(list(found.values()), np.int64)[order // max(1, len(recorded))]
        return replace(
            stacked, columns={**stacked.columns, "_site": sites, free[0]: _in_one(fields).take(numbers_to_arrow(order))}
        )

    def _expect_free(self, recorded: RecordedTable, name: str, column: str) -> None:
        if name in recorded.columns and name != column:
            raise InputError("SN503", f"both `{column}` and `{name}` would be the column `{name}`", recorded.name)


@dataclass(frozen=True, slots=True)
class _FormattedBlock:
    block: Block
    convert_rows: Callable[[RecordedTable, Callable[[RecordedTable], Any]], Any]

    def convert(self, conversion: Callable[[RecordedTable], ConvertedT]) -> ConvertedT:
        converted: ConvertedT = self.block.convert(lambda recorded: self.convert_rows(recorded, conversion))
        return converted


def _in_one(column: Any) -> Any:
    """Return a column of Arrow as one array."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _no_column(recorded: RecordedTable, name: str) -> InputError:
    names: Any = list(recorded.columns)
    help = did_you_mean(name, names) or list_columns(names)
    return InputError("SN505", f"the column `{name}` is missing", recorded.name, help=help)
