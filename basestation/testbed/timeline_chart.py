"""Draws coverage, energy and answers of trials over simulated time (SVG), a panel for each."""

from collections.abc import Sequence

from basestation.results.line_chart import Line, Panel, draw_panels, thin
from basestation.testbed.timeline import Timeline


def draw_timelines(title: str, timelines: Sequence[Timeline]) -> str:
    """The SVG of the timelines of one scenario, one for each seed; each query has one colour."""
    coverage: list[Line] = []
    energy: list[Line] = []
    answers: list[Line] = []
    names = list(dict.fromkeys(name for each in timelines for name in (*each.coverage, *each.answers)))
    for each in timelines:
        coverage += [(name, thin(points)) for name, points in each.coverage.items()]
        energy.append(("all motes", [*zip(each.ms, each.joules, strict=True)]))
        answers += [(name, [*zip(each.ms, counts, strict=True)]) for name, counts in each.answers.items()]
    last = max((each.ms[-1] for each in timelines if each.ms), default=1)
    panels = [
        Panel("coverage of each window", coverage, high=1.0),
        Panel("joules used", energy),
        Panel("answers", answers),
    ]
    return draw_panels(title, panels, last, names)
