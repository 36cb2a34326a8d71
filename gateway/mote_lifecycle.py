"""The lifecycle of a mote as the base station sees it, from the first HELLO to the last, as one state table.

`gateway.reconciler` detects the events and performs the actions. The diagram in docs/frames.md is made from this table.
"""

from enum import Enum

from gateway.errors import LinkError


class MoteState(Enum):
    """States of a mote as the base station knows them; the value is the meaning."""

    UNKNOWN = "has sent no HELLO since the base station or the mote started"
    IDENTIFIED = "has sent a HELLO with its installed images"
    INSTALLING = "receives the desired images"
    INSTALLED = "has reported the desired images"
    RUNNING = "sends data"
    LATE = "has not sent data that was due"
    LOST = "has been silent for too long"


class MoteEvent(Enum):
    """Events of a mote; the value is the meaning."""

    HELLO = "a HELLO arrived"
    UNKNOWN_BOOT = "a frame arrived from a boot of the mote that has sent no HELLO"
    OUT_OF_DATE = "reported and desired images differ"
    UP_TO_DATE = "reported and desired images are the same"
    DATA = "a READING or PARTIAL arrived"
    OVERDUE = "data that was due did not arrive"
    GAP = "a sequence number is missing"
    CLOCK_DUE = "the last TIME was sent long ago"
    CLOCK_WRONG = "data carries time stamps that disagree with our clock"
    RETRY_DUE = "no progress since the last message"
    SILENCE = "no frame arrived for too long"


class MoteAction(Enum):
    """Actions of the base station; the value is the meaning."""

    REQUEST_HELLO = "request a HELLO"
    SEND_TIME = "send the time"
    SEND_IMAGES = "send the missing chunks of the desired images"
    REQUEST_GAPS = "request the missing frames"


S, E, A = MoteState, MoteEvent, MoteAction
Row = dict[MoteEvent, tuple[MoteState, MoteAction | None]]
ON_REPORT: Row = {E.HELLO: (S.IDENTIFIED, A.SEND_TIME), E.UNKNOWN_BOOT: (S.UNKNOWN, A.REQUEST_HELLO)}
WHILE_KNOWN: Row = {
    **ON_REPORT,
    E.OUT_OF_DATE: (S.INSTALLING, A.SEND_IMAGES),
    E.SILENCE: (S.LOST, A.REQUEST_HELLO),
}


def _same_state(state: MoteState) -> Row:
    """Return the transitions that leave a mote in its state."""
    return {
        E.GAP: (state, A.REQUEST_GAPS),
        E.CLOCK_DUE: (state, A.SEND_TIME),
        E.CLOCK_WRONG: (state, A.SEND_TIME),
    }


ROWS: dict[MoteState, Row] = {
    S.UNKNOWN: {**ON_REPORT, E.RETRY_DUE: (S.UNKNOWN, A.REQUEST_HELLO)},
    S.IDENTIFIED: {E.OUT_OF_DATE: (S.INSTALLING, A.SEND_IMAGES), E.UP_TO_DATE: (S.INSTALLED, None)},
    S.INSTALLING: {
        **WHILE_KNOWN,
        **_same_state(S.INSTALLING),
        E.UP_TO_DATE: (S.INSTALLED, None),
        E.DATA: (S.INSTALLING, None),
        E.OVERDUE: (S.INSTALLING, None),
        E.RETRY_DUE: (S.INSTALLING, A.SEND_IMAGES),
    },
    S.INSTALLED: {
        **WHILE_KNOWN,
        **_same_state(S.INSTALLED),
        E.DATA: (S.RUNNING, None),
        E.OVERDUE: (S.LATE, None),
    },
    S.RUNNING: {
        **WHILE_KNOWN,
        **_same_state(S.RUNNING),
        E.DATA: (S.RUNNING, None),
        E.OVERDUE: (S.LATE, None),
    },
    S.LATE: {
        **WHILE_KNOWN,
        **_same_state(S.LATE),
        E.DATA: (S.RUNNING, None),
        E.OVERDUE: (S.LATE, None),
    },
    # The images of a lost mote may have changed. Data of the same boot shows that it did not restart.
    S.LOST: {
        **ON_REPORT,
        E.DATA: (S.IDENTIFIED, A.SEND_TIME),
        E.OVERDUE: (S.LOST, None),
        E.RETRY_DUE: (S.LOST, A.REQUEST_HELLO),
    },
}
TRANSITIONS = {(state, event): outcome for state, row in ROWS.items() for event, outcome in row.items()}


def next_state(state: MoteState, event: MoteEvent) -> tuple[MoteState, MoteAction | None]:
    """Return the state after an event, and the action to take.

    Raises LinkError if the event is impossible in this state.
    """
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        raise LinkError(f"{event.name} cannot happen to a mote that is {state.name}") from None


def render_state_diagram() -> str:
    """Return the table as a Mermaid state diagram, with arrows labelled `events / action`."""
    lines = ["stateDiagram-v2", f"    [*] --> {MoteState.UNKNOWN.name}"]
    arrows: dict[tuple[MoteState, MoteState, MoteAction | None], list[str]] = {}
    for (state, event), (next_, action) in TRANSITIONS.items():
        arrows.setdefault((state, next_, action), []).append(event.name)
    for (state, next_, action), events in arrows.items():
        label = f"{', '.join(events)} / {action.name}" if action else ", ".join(events)
        lines.append(f"    {state.name} --> {next_.name}: {label}")
    return "\n".join(lines) + "\n"
