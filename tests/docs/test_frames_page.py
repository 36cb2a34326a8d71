"""docs/frames.md shows the golden frames and the lifecycle table; SPEC.md has the numbers and sizes of the code.

MOTELOOM_REWRITE=1 rewrites the examples, the diagram and the tables of the page.
"""

import os
import re

import pytest

from gateway.frame import HEADER_SIZE, LARGEST_FRAME, MAX_FRAME, MAX_PAYLOAD, MAX_ROUTE, VERSION, FrameKind
from gateway.image import BLOCK, CHUNK, MAX_IMAGE
from gateway.mote_lifecycle import TRANSITIONS, MoteAction, MoteEvent, MoteState, render_state_diagram
from gateway.payload import EventCode, HelloReason
from innet.payload.assignment import Section
from tests.docs.pages import DOCS, ROOT, blocks

PAGE = DOCS / "frames.md"
GOLDEN = ROOT / "tests" / "golden" / "frames"
SPEC = (ROOT / "gateway" / "SPEC.md").read_text(encoding="utf-8")


def table(enum):
    return "".join(f"| {member.name} | {member.value} |\n" for member in enum)


def renewed(text):
    """Return the page with the present examples, diagram and tables."""
    text = re.sub(
        r"```hex (\w+)\n.*?```\n",
        lambda m: f"```hex {m[1]}\n{(GOLDEN / f'{m[1]}.txt').read_text()}```\n",
        text,
        flags=re.S,
    )
    text = re.sub(r"```mermaid\n.*?```\n", lambda _: f"```mermaid\n{render_state_diagram()}```\n", text, flags=re.S)
    for enum, word in ((MoteState, "state"), (MoteEvent, "event"), (MoteAction, "action")):
        head = f"| {word} | means |\n|---|---|\n"
        text = re.sub(re.escape(head) + r"(\|.*\n)+", lambda _, h=head, e=enum: h + table(e), text)
    return text


@pytest.mark.promise("frames")
def test_page_is_up_to_date():
    if os.environ.get("MOTELOOM_REWRITE"):
        PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    text = PAGE.read_text(encoding="utf-8")
    assert renewed(text) == text


def test_page_has_an_example_of_every_kind():
    shown = "".join(block.text for block in blocks(PAGE, "hex"))
    assert set(re.findall(r"kind (\w+)", shown)) == {kind.name for kind in FrameKind}


def test_diagram_has_every_transition_once():
    arrows = re.findall(r"(\w+) --> (\w+): ([\w, ]+?)(?: / (\w+))?$", render_state_diagram(), flags=re.M)
    drawn = {
        (MoteState[a], MoteEvent[e]): (MoteState[b], MoteAction[x] if x else None)
        for a, b, es, x in arrows
        for e in es.split(", ")
    }
    assert drawn == TRANSITIONS
    assert sum(len(events.split(", ")) for _, _, events, _ in arrows) == len(TRANSITIONS)


def rows(heading):
    """Return the first two columns of the first table below a heading of SPEC.md."""
    section = SPEC.split(f"\n{heading}\n")[1].split("\n## ")[0]
    return re.findall(r"^\| (\d+) \| (\w+)", section, flags=re.M)


@pytest.mark.promise("frames")
@pytest.mark.parametrize(("heading", "enum"), [("## Kinds", FrameKind), ("### PROGRAM", Section)])
def test_specification_numbers_kinds_and_sections_like_the_code(heading, enum):
    assert [(int(number), name) for number, name in rows(heading)] == [(int(one), one.name) for one in enum]


def test_specification_lists_every_event_and_reason():
    camel = {name.upper() for _, name in rows("## EVENT")}
    assert [int(number) for number, _ in rows("## EVENT")] == [int(code) for code in EventCode]
    assert camel == {code.name.replace("_", "") for code in EventCode}
    reasons = re.search(r"Reasons: (.*?)\.", SPEC, flags=re.S)[1].replace("\n", " ")
    assert reasons == ", ".join(
        f"{r.value} {r.name.lower().replace('_', ' ' if 'switched' in r.name.lower() else '-')}" for r in HelloReason
    )


def test_specification_has_the_sizes_of_the_code():
    text = " ".join(SPEC.split())
    for sentence in (
        f"Version {VERSION}.", f"A frame has at most {MAX_FRAME} bytes", f"up to {LARGEST_FRAME};",
        f"at most {MAX_PAYLOAD} bytes, less the route", f"count u8, 1 to {MAX_ROUTE}", f"1 to {MAX_IMAGE} bytes",
        f"blocks of {BLOCK} bytes",
    ):  # fmt: skip
        assert sentence in text
    assert (HEADER_SIZE, CHUNK.size) == (12, 7)
    assert "| 10–11 | receiver |" in SPEC
