"""Timeline: the energy and the answers of a trial as simulated time passes, and the coverage of its windows."""

from collections.abc import Mapping
from dataclasses import dataclass, field

POINTS = 240
"""The readings of a timeline."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """`ms` since the scenario began, ascending; `joules` of all motes and `answers` by query up to each of them.

    `coverage` has by query (ms, share) of the windows that had readings due, in the order of their ticks.
    """

    ms: tuple[int, ...]
    joules: tuple[float, ...]
    answers: Mapping[str, tuple[int, ...]]
    coverage: Mapping[str, tuple[tuple[int, float], ...]]


@dataclass(slots=True)
class TimelineRecorder:
    """Records POINTS readings in a span of `total_ms`."""

    total_ms: int
    _ms: list[int] = field(default_factory=list)
    _joules: list[float] = field(default_factory=list)
    _answers: list[dict[str, int]] = field(default_factory=list)

    def is_due(self, ms: int) -> bool:
        """Whether a reading is due at this time."""
        return (
            not self._ms or ms >= self.total_ms or ms * POINTS // self.total_ms > self._ms[-1] * POINTS // self.total_ms
        )

    def add(self, ms: int, joules: float, answers: Mapping[str, int]) -> None:
        """Record a reading."""
        self._ms.append(ms)
        self._joules.append(joules)
        self._answers.append(dict(answers))

    def finish(self, coverage: Mapping[str, tuple[tuple[int, float], ...]]) -> Timeline:
        """The timeline so far."""
        names = self._answers[-1] if self._answers else {}
        answers = {name: tuple(each.get(name, 0) for each in self._answers) for name in names}
        return Timeline(tuple(self._ms), tuple(self._joules), answers, coverage)
