"""moteloom sim run --plot: coverage, energy and answers over time, as SVG and PNG."""

import json
import re
import struct
import sys
from xml.etree import ElementTree

import pytest

from basestation.results import raster
from basestation.results.line_chart import LEFT, PANEL, RIGHT, WIDE, choose_ticks, thin
from basestation.results.line_chart import POINTS as CHART_POINTS
from basestation.testbed.timeline import POINTS, Timeline, TimelineRecorder
from basestation.testbed.timeline_chart import draw_timelines
from tests.simulation.scenario_judge import FOLDER
from tests.simulation.test_cli import moteloom_sim

SVG = "{http://www.w3.org/2000/svg}"


def lines_of(chart):
    """(name, points) of each line of a chart."""
    return [
        (line.find(f"{SVG}title").text, [tuple(map(float, pair.split(","))) for pair in line.attrib["points"].split()])
        for line in ElementTree.fromstring(chart).iter(f"{SVG}polyline")
    ]


def test_chart_has_a_line_for_each_seed_and_query(tmp_path, capsys):
    chart = tmp_path / "calm.svg"
    assert moteloom_sim(FOLDER / "calm.toml", "--for", "3min", "--seeds", "1..2", "--plot", chart, "-o", "json") == 0
    runs = [line for line in map(json.loads, capsys.readouterr().out.splitlines()) if line["type"] == "run"]
    text = chart.read_text()
    lines = lines_of(text)
    assert [name for name, _ in lines] == ["now", "minute"] * 2 + ["all motes"] * 2 + ["now", "minute"] * 2
    texts = [each.text for each in ElementTree.fromstring(text).iter(f"{SVG}text")]
    assert texts[0] == "calm, seeds 1 to 2" and {"coverage of each window", "joules used", "answers", "minutes"} < {
        *texts
    }
    for _, points in lines:
        assert all(LEFT <= x <= WIDE - RIGHT for x, _ in points) and len(points) > 1
        assert [x for x, _ in points] == sorted(x for x, _ in points)
    energy = [points[-1][1] for name, points in lines if name == "all motes"]
    joules = [run["figures"]["joules"] for run in runs]
    top, bottom = min(y for name, points in lines[4:6] for _, y in points), lines[4][1][0][1]
    assert energy[joules.index(max(joules))] == top and bottom - PANEL <= top < bottom
    assert not list(tmp_path.glob("*.part"))


def test_timeline_ends_with_the_figures_of_the_run():
    recorder = TimelineRecorder(10_000)
    for ms in range(1, 10_001):
        if recorder.is_due(ms):
            recorder.add(ms, ms / 10, {"a": ms})
    made = recorder.finish({})
    assert made.ms[-1] == 10_000 and made.joules[-1] == 1_000.0 and made.answers["a"][-1] == 10_000
    assert POINTS <= len(made.ms) <= POINTS + 2


def test_names_of_queries_are_escaped():
    made = Timeline((1, 2), (0.0, 0.0), {"<b>&": (0, 1)}, {"<b>&": ((1, 0.5), (2, 1.0))})
    assert [name for name, _ in lines_of(draw_timelines("<x>", [made]))] == ["<b>&", "all motes", "<b>&"]


def test_run_without_queries_has_a_chart():
    assert lines_of(draw_timelines("none", [Timeline((1_000,), (3.0,), {}, {})]))[0][0] == "all motes"


@pytest.mark.parametrize(
    ("low", "most", "ticks"),
    [
        (0, 1.0, [0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (0, 37.0, [0, 10, 20, 30]),
        (0, 1e-7, [k * 2e-8 for k in range(6)]),
        (-3.5, 6.4, [-2, 0, 2, 4, 6]),
        (20.1, 20.6, [20.1, 20.2, 20.3, 20.4, 20.5, 20.6]),
    ],
)
def test_ticks_of_an_axis_are_round(low, most, ticks):
    assert choose_ticks(low, most) == pytest.approx(ticks)


def test_long_runs_are_drawn_with_few_points():
    made = thin([(at, at % 2) for at in range(10_000)])
    assert len(made) <= CHART_POINTS and made[0][1] == pytest.approx(0.5, abs=0.05)


@pytest.mark.promise("bad-files")
def test_chart_that_cannot_be_written_is_reported_first(tmp_path, capsys):
    for name, why in (("none/x.svg", "No such file or directory"), ("full.svg", "No space left on device")):
        (tmp_path / "full.svg.part").unlink(missing_ok=True)
        (tmp_path / "full.svg.part").symlink_to("/dev/full")
        assert moteloom_sim(FOLDER / "calm.toml", "--for", "1s", "--plot", tmp_path / name) == 3
        out, err = capsys.readouterr()
        assert out == "" and f"cannot be written: {why}" in err and not (tmp_path / name).exists()


def refusal(capsys, name):
    with pytest.raises(SystemExit) as left:
        moteloom_sim(FOLDER / "calm.toml", "--for", "1s", "--plot", name)
    assert left.value.code == 2
    return capsys.readouterr().err.splitlines()[-1]


def test_other_formats_are_misuse(capsys):
    assert refusal(capsys, "x.pdf").endswith("expected a file that ends in .svg or .png, found `x.pdf`")


def test_png_is_the_picture_of_the_svg(tmp_path):
    if missing := raster.missing_part():
        pytest.skip(missing)
    for name in ("calm.svg", "calm.png"):
        assert moteloom_sim(FOLDER / "calm.toml", "--for", "1min", "--plot", tmp_path / name) == 0
    svg, png = (tmp_path / "calm.svg").read_text(), (tmp_path / "calm.png").read_bytes()
    assert png == raster.rasterize(svg)
    wide, high = map(float, ElementTree.fromstring(svg).get("viewBox").split()[2:])
    assert png[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">II", png[16:24]) == (2 * wide, 2 * high)
    for part in ("text", "polyline", "line", "rect"):  # each leaves a trace
        assert raster.rasterize(re.sub(f"<{part} .*?(</{part}>|/>)", "", svg, flags=re.DOTALL)) != png, part
    assert not list(tmp_path.glob("*.part"))


def test_png_without_its_library_names_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "resvg_py", None)  # as if it were not installed
    message = "PNG needs the library resvg-py: pip install 'moteloom[png]'; SVG needs nothing"
    assert refusal(capsys, "x.png") == f"moteloom sim run: error: argument --plot: {message}"


def test_png_without_a_font_names_what_to_install(monkeypatch, capsys):
    pytest.importorskip("resvg_py")
    monkeypatch.setattr(raster, "FONTS", "'there is no such font'")
    raster._has_font.cache_clear()
    try:
        assert "PNG needs a font, such as that of `sudo apt install fonts-dejavu-core`" in refusal(capsys, "x.png")
    finally:
        raster._has_font.cache_clear()
