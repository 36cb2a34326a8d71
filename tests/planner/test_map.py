"""The drawing of a deployment: each mote where it is, a line to whom it sends, darker for who uses more."""

from xml.etree import ElementTree

import pytest

from basestation.cli import explain as verb
from gateway.cli import parser_of
from innet.deployment.description import read_deployment
from tests.docs.pages import DOCS, ROOT

OFFICE, BRIDGE = (ROOT / "examples" / name / "deployment.toml" for name in ("lab54", "roadbridge"))
SVG = "{http://www.w3.org/2000/svg}"
MEAN = "SELECT AVG(temp) FROM lab [NOW]"


def call(capsys, *arguments):
    code = verb.run(parser_of("explain", verb).parse_args([*map(str, arguments)]))
    told = capsys.readouterr()
    return code, told.out, told.err


@pytest.fixture
def drawn(capsys, tmp_path):
    def called(deployment, query):
        file = tmp_path / "map.svg"
        assert call(capsys, "-c", deployment, "--map", file, query)[0] == 0
        return file.read_text(encoding="utf-8")

    return called


@pytest.mark.parametrize(
    ("path", "query"), [(OFFICE, MEAN), (BRIDGE, "SELECT temp FROM road; SELECT vibration FROM road")]
)
def test_every_mote_is_where_it_is_and_darker_if_it_uses_more(drawn, path, query):
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


def test_the_drawing_of_the_walk_is_what_the_command_draws(drawn):
    assert drawn(OFFICE, MEAN) == (DOCS / "walks/office.svg").read_text(encoding="utf-8")


def test_what_cannot_be_drawn_is_told(capsys, tmp_path):
    file = tmp_path / "map.svg"
    code, out, err = call(capsys, "-c", OFFICE, "--map", file, f"{MEAN} DELIVER WITHIN 1 SEC")
    assert (
        code == 0
        and out
        and err.startswith("moteloom explain: there is nothing to draw: what is sampled arrives after")
    )
    code, _, err = call(capsys, "-c", OFFICE, "--map", file, "SELECT room FROM rooms")
    assert code == 0 and err == "moteloom explain: there is nothing to draw: motes do nothing for this\n"
    assert not file.exists()
    code, _, err = call(capsys, "-c", OFFICE, "--map", tmp_path / "no/map.svg", MEAN)
    assert code == 3 and err == f"SN501: {tmp_path / 'no/map.svg'}: cannot be written: No such file or directory\n"
