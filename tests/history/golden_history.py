"""The golden queries as queries over history."""

from dataclasses import dataclass

from basestation.planner.catalog import read_schema
from basestation.replay.inputs import read_recording
from basestation.replay.statements import read_statements
from tests.golden.case_run import case_statements
from tests.golden.expectations import QUERIES
from tests.golden.golden_file import golden_files, read_golden
from tests.golden.recordings import for_engine


@dataclass
class GoldenQuery:
    golden: object
    case: object
    recording: object

    @property
    def name(self):
        return f"{self.golden.path.stem}:{self.case.name}"

    def statements(self):
        """All statements of the case, each query with the clock tick at which it is asked."""
        texts = case_statements(self.golden, self.case).statements
        return read_statements([(text, clock or 0) for text, clock in texts], self.recording.catalog)

    def until(self):
        return max([self.recording.end(), *(given.clock or 0 for given in self.statements())])


def golden_queries():
    """Those that the engine answers."""
    for path in golden_files(QUERIES):
        golden = read_golden(path)
        recording = read_recording(read_schema(golden.schema), for_engine(golden))
        for case in golden.cases:
            if case.word == "query" and not case.expected["answer"].startswith(("later: ", "refused: ")):
                yield GoldenQuery(golden, case, recording)
