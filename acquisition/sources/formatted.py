"""Recordings in a form of their own: columns get the names of the system, and times become ticks."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from acquisition.errors import InputError
from acquisition.extent import Extent, ExtentKind
from acquisition.schema import Attribute
from acquisition.sources.blocks import Block, BlockSource
from acquisition.sources.input_format import InputFormat
from acquisition.sources.recorded_table import RecordedTable, list_columns
from acquisition.sources.times import TimeConversion
from gateway.source import did_you_mean

ConvertedT = TypeVar("ConvertedT")


class FormattedSource:
    """A source whose columns of times and sites have the names that a format says."""

    def __init__(self, source: BlockSource, form: InputFormat, extent: Extent, tick_ms: int) -> None:
        self._source, self._form, self._extent = source, form, extent
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
        if wanted is not None:
            wanted = {*wanted, *(name for name in (form.time_column, form.site_column) if name is not None)}
        for block in self._source.blocks(own, wanted):
            yield _FormattedBlock(block, self._rename)

    def whole(self) -> RecordedTable:
        return self._rename(self._source.whole())

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
        return replace(recorded, columns=columns)

    def _expect_free(self, recorded: RecordedTable, name: str, column: str) -> None:
        if name in recorded.columns and name != column:
            raise InputError("SN503", f"both `{column}` and `{name}` would be the column `{name}`", recorded.name)


@dataclass(frozen=True, slots=True)
class _FormattedBlock:
    block: Block
    rename: Callable[[RecordedTable], RecordedTable]

    def convert(self, conversion: Callable[[RecordedTable], ConvertedT]) -> ConvertedT:
        return self.block.convert(lambda recorded: conversion(self.rename(recorded)))


def _no_column(recorded: RecordedTable, name: str) -> InputError:
    names: Any = list(recorded.columns)
    help = did_you_mean(name, names) or list_columns(names)
    return InputError("SN505", f"the column `{name}` is missing", recorded.name, help=help)
