"""RecordingSource: a shell on recordings, in its own process. Each statement is a replay."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from acquisition.extent import Catalog
from acquisition.ticks import rfc3339_of
from basestation.explain import explain_statement, render_statement
from basestation.planner.binder import bind_text
from basestation.replay.driver import Replay
from basestation.replay.inputs import Input, read_recording
from basestation.replay.statements import read_statements
from basestation.results.wire import schema_as_json, update_as_json
from basestation.shell.answer_source import Line, NotHereError

YEAR_2000_MS = 946_684_800_000
"""Ticks before it count from the begin of a recording, and have no time."""


class RecordingSource:
    """Answers from the recorded data of extents; a REVISE, DELETE or INSERT is kept for the statements after it."""

    def __init__(self, catalog: Catalog, inputs: Mapping[str, Input], folder: str | Path) -> None:
        self._catalog, self._inputs, self._folder = catalog, dict(inputs), folder
        self._corrections: list[str] = []
        read_recording(
            catalog, inputs, (), folder
        )  # so that wrong names and files are reported before the first statement
        self.name = f"recordings of {', '.join(self._inputs) or 'nothing'}"

    def catalog(self) -> Catalog:
        return self._catalog

    def answers(self, text: str) -> Iterator[Line]:
        catalog, texts = self._catalog, [*self._corrections, text]
        statements = read_statements(texts, catalog)
        recording = read_recording(catalog, self._inputs, statements, self._folder)
        if recording.catalog is not catalog:
            statements = read_statements(texts, recording.catalog)
        last = recording.end()
        run = Replay(recording, statements, last, begin=recording.begin(), ask=last)
        if not statements[-1].is_query:
            self._corrections.append(text)
            yield {"type": "note", "message": "kept: it corrects the recordings for the statements after it"}
            return
        [query] = run.queries
        yield schema_as_json(query)
        for updates in run.updates():
            for update in updates:
                for line in update_as_json(update, query.scales):
                    yield line | self._time_of(line["tick"])

    def _time_of(self, tick: int) -> dict[str, str]:
        ms = self._catalog.tick_ms
        return {"time": rfc3339_of(tick, ms)} if tick * ms >= YEAR_2000_MS else {}

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
