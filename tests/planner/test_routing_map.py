"""The drawing of a deployment: motes at their positions, lines to their parents, darker with more energy."""

import json
from itertools import combinations
from math import dist
from xml.etree import ElementTree

import pytest

from basestation.cli import explain as verb
from basestation.explain.routing_map import _apart
from gateway.cli import parser_of
from innet.deployment.toml_reader import read_deployment
from tests.docs.pages import DOCS, ROOT

OFFICE, BRIDGE = (ROOT / "examples" / name / "deployment.toml" for name in ("lab54", "roadbridge"))
SVG = "{http://www.w3.org/2000/svg}"
MEAN = "SELECT AVG(temp) FROM lab [NOW]"


def call(capsys, *arguments):
    code = verb.run(parser_of("explain", verb).parse_args([*map(str, arguments)]))
    printed = capsys.readouterr()
    return code, printed.out, printed.err


@pytest.fixture
def drawn(capsys, tmp_path):
    def called(deployment, query):
        file = tmp_path / "map.svg"
        assert call(capsys, "-c", deployment, "--map", file, query)[0] == 0
        return file.read_text(encoding="utf-8")

    return called


@pytest.mark.promise("explain")
@pytest.mark.parametrize(
    ("path", "query"), [(OFFICE, MEAN), (BRIDGE, "SELECT temp FROM road; SELECT vibration FROM road")]
)
def test_motes_are_drawn_in_place_darker_with_energy(drawn, path, query):
    deployment = read_deployment(path)
    tree = ElementTree.fromstring(drawn(path, query))
    discs = {int(d.find(f"{SVG}title").text.split(":")[0].split()[1]): d for d in tree.iter(f"{SVG}circle")}
    assert discs.keys() == deployment.motes.keys() and len(list(tree.iter(f"{SVG}line"))) == len(discs)
    _, _, wide, high = map(float, tree.get("viewBox").split())
    for axis, mark, sign in ((0, "cx", 1), (1, "cy", -1)):
        along = sorted(discs, key=lambda mote: deployment.motes[mote].position[axis])
        places = [sign * float(discs[mote].get(mark)) for mote in along]
        assert places == sorted(places)
    assert all(0 < float(d.get("cx")) < wide and 0 < float(d.get("cy")) < high for d in discs.values())
    joules = {mote: float(d.find(f"{SVG}title").text.split(": ")[1].split(" J/h")[0]) for mote, d in discs.items()}
    green = [int(discs[mote].get("fill")[3:5], 16) for mote in sorted(joules, key=joules.get)]
    assert green == sorted(green, reverse=True) and green[0] == 236 and green[-1] == 20
    assert sum(d.get("stroke") == "black" for d in discs.values()) == 1


@pytest.mark.promise("explain")
def test_drawing_of_walk_is_up_to_date(drawn):
    assert drawn(OFFICE, MEAN) == (DOCS / "walks/office.svg").read_text(encoding="utf-8")


@pytest.mark.promise("explain")
def test_nothing_to_draw_is_reported(capsys, tmp_path):
    file = tmp_path / "map.svg"
    code, out, err = call(capsys, "-c", OFFICE, "--map", file, f"{MEAN} DELIVER WITHIN 1 SEC")
    assert code == 2 and out and err.startswith("SN514: there is nothing to draw: a sample arrives after")
    code, _, err = call(capsys, "-c", OFFICE, "--map", file, "SELECT room FROM rooms")
    assert code == 2 and err == "SN514: there is nothing to draw: motes do nothing for this\n"
    code, out, err = call(capsys, "-c", OFFICE, "-o", "json", "--map", file, "SELECT room FROM rooms")
    printed = json.loads(out.splitlines()[-1])
    assert (code, err, printed["type"], printed["code"]) == (2, "", "error", "SN514")
    assert not file.exists()
    code, _, err = call(capsys, "-c", OFFICE, "--map", tmp_path / "no/map.svg", MEAN)
    assert code == 3 and err == f"SN501: {tmp_path / 'no/map.svg'}: cannot be written: No such file or directory\n"


@pytest.mark.promise("explain")
def test_overlapping_motes_move_apart_gateway_stays():
    """Motes at one position, some of them at the gateway."""
    at = {0: (100.0, 100.0), **{mote: (100.0 + mote // 4, 100.0) for mote in range(1, 12)}, 12: (300.0, 300.0)}
    apart = _apart(at, {0: None}, 10.0)
    assert apart[0] == at[0] and apart[12] == at[12]
    assert all(dist(apart[a], apart[b]) > 20.0 for a, b in combinations(apart, 2))
    assert all(dist(apart[mote], at[mote]) < 80 for mote in at)


@pytest.mark.promise("explain")
def test_legend_has_scale_of_lengths(drawn):
    tree = ElementTree.fromstring(drawn(OFFICE, MEAN))
    metres = float(next(t.text for t in tree.iter(f"{SVG}text") if t.text.endswith(" m")).split()[0])
    [bar] = [p.get("d") for p in tree.iter(f"{SVG}path")]
    motes = read_deployment(OFFICE).motes
    discs = {int(d.find(f"{SVG}title").text.split(":")[0].split()[1]): d for d in tree.iter(f"{SVG}circle")}
    paper = abs(float(discs[1].get("cx")) - float(discs[54].get("cx")))
    scale = paper / abs(motes[1].position[0] - motes[54].position[0])
    assert float(bar.split(" h")[1].split()[0]) / metres == pytest.approx(scale, rel=0.01)
