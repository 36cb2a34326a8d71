"""RecordingSource: a shell on recordings, in its own process. Each statement is a replay."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from acquisition.extent import Catalog
from acquisition.sources.input_format import PLAIN, InputFormat
from acquisition.ticks import rfc3339_of
from basestation.explain import explain_statement, render_statement
from basestation.planner.binder import bind_text
from basestation.replay.driver import SKIP_FROM, Replay
from basestation.replay.inputs import Input, read_recording
from basestation.replay.statements import read_statements
from basestation.results.wire import schema_as_json, update_as_json
from basestation.shell.answer_source import Line, NotHereError

YEAR_2000_MS = 946_684_800_000
"""Ticks before it count from the begin of a recording, and have no time."""


class RecordingSource:
    """Answers from the recorded data of extents; a REVISE, DELETE or INSERT is kept for the statements after it."""

    def __init__(
        self, catalog: Catalog, inputs: Mapping[str, Input], folder: str | Path, form: InputFormat = PLAIN
    ) -> None:
        """`form` says how the recordings of streams are written."""
        self._catalog, self._inputs, self._folder, self._form = catalog, dict(inputs), folder, form
        self._corrections: list[str] = []
        # Wrong names and files are reported before the first statement.
        self._recording = read_recording(catalog, inputs, (), folder, form)
        self.name = f"recordings of {', '.join(self._inputs) or 'nothing'}"

    def check(self) -> None:
        """Raise InputError if more than a tenth of the readings of an extent do not fit its schedule or its sites."""
        self._recording.check()

    def catalog(self) -> Catalog:
        return self._catalog

    def answers(self, text: str) -> Iterator[Line]:
        catalog, texts = self._catalog, [*self._corrections, text]
        statements = read_statements(texts, catalog)
        recording = read_recording(catalog, self._inputs, statements, self._folder, self._form)
        if recording.catalog is not catalog:
            statements = read_statements(texts, recording.catalog)
        last = recording.end()
        run = Replay(recording, statements, last, begin=recording.begin(), ask=last, skip_from=SKIP_FROM)
        if not statements[-1].is_query:
            self._corrections.append(text)
            yield {"type": "note", "message": "kept: it corrects the recordings for the statements after it"}
            return
        [query] = run.queries
        yield schema_as_json(query)
        for updates in run.updates():
            for each in [each for each in run.skipped if each.tuples or query.kind == "window"]:
                what = "tuples of windows" if each.tuples else "windows"
                span = f"{self._when(each.first)} to {self._when(each.last)}"
                yield {"type": "note", "message": f"{each.count:,} {what} from {span} have the same rows"}
            run.skipped.clear()
            for update in updates:
                for line in update_as_json(update, query.scales):
                    yield line | self._time_of(line["tick"])

    def _time_of(self, tick: int) -> dict[str, str]:
        ms = self._catalog.tick_ms
        return {"time": rfc3339_of(tick, ms)} if tick * ms >= YEAR_2000_MS else {}

    def _when(self, tick: int) -> str:
        return self._time_of(tick).get("time") or f"tick {tick}"

    def explain(self, text: str) -> str:
        bound = bind_text(text, self._catalog)
        return "\n".join(
            render_statement(explain_statement(plan, number, None, self._catalog))
            for number, plan in enumerate(bound, 1)
        )

    def manage(self, command: str, argument: str) -> Iterator[str]:
        raise NotHereError(f"`\\{command}` needs a running station: moteloom shell --url URL")

    def watch(self, query: str) -> Iterator[Line]:
        raise NotHereError("`\\watch` needs a running station: moteloom shell --url URL")

    def try_out(self, text: str) -> Iterator[Line]:
        raise NotHereError("`\\try` needs a running station: moteloom shell --url URL. Without one: moteloom sim run")
