"""Life: the link to a mote as the base station sees it, from the first hello to the last, as one table.

The table is all there is: `gateway/reconciler.py` finds out what happened and does what the table says; the picture in
docs/frames.md is made from it.
"""

from enum import Enum

from gateway.errors import LinkError


class MoteState(Enum):
    UNHEARD = "it has not said hello since we started, or since it did"
    GREETED = "it has said what it has"
    LOADING = "it is sent what it should have"
    INSTALLED = "it has said that it has what it should have"
    RUNNING = "its data comes"
    LATE = "something due has not come"
    LOST = "it is silent for too long"


class MoteEvent(Enum):
    HELLO = "it says hello"
    STRANGER = "a frame of a start that has said no hello"
    DIFFERS = "what it has is not what it should have"
    AGREES = "what it has is what it should have"
    DATA = "a reading or a partial"
    OVERDUE = "something due did not come"
    GAP = "a number is missing"
    CLOCK_DUE = "it was not told the time for long"
    MISTIMED = "its data is stamped with another time than ours"
    PAUSE_OVER = "nothing changed since we said something"
    SILENCE = "nothing was heard for too long"


class MoteAction(Enum):
    ASK = "ask for a hello"
    TELL_TIME = "tell it the time"
    LOAD = "send the chunks that it does not have"
    ASK_GAPS = "ask for what is missing"


S, E, A = MoteState, MoteEvent, MoteAction
GREETING = {E.HELLO: (S.GREETED, A.TELL_TIME), E.STRANGER: (S.UNHEARD, A.ASK)}
KNOWN = {**GREETING, E.DIFFERS: (S.LOADING, A.LOAD), E.SILENCE: (S.LOST, A.ASK)}


def _same_state(state: MoteState) -> dict[MoteEvent, tuple[MoteState, MoteAction | None]]:
    """What leaves a mote in its state."""
    return {E.GAP: (state, A.ASK_GAPS), E.CLOCK_DUE: (state, A.TELL_TIME), E.MISTIMED: (state, A.TELL_TIME)}


ROWS: dict[MoteState, dict[MoteEvent, tuple[MoteState, MoteAction | None]]] = {
    S.UNHEARD: {**GREETING, E.PAUSE_OVER: (S.UNHEARD, A.ASK)},
    S.GREETED: {E.DIFFERS: (S.LOADING, A.LOAD), E.AGREES: (S.INSTALLED, None)},
    S.LOADING: {
        **KNOWN,
        **_same_state(S.LOADING),
        E.AGREES: (S.INSTALLED, None),
        E.DATA: (S.LOADING, None),
        E.OVERDUE: (S.LOADING, None),
        E.PAUSE_OVER: (S.LOADING, A.LOAD),
    },
    S.INSTALLED: {
        **KNOWN,
        **_same_state(S.INSTALLED),
        E.DATA: (S.RUNNING, None),
        E.OVERDUE: (S.LATE, None),
    },
    S.RUNNING: {
        **KNOWN,
        **_same_state(S.RUNNING),
        E.DATA: (S.RUNNING, None),
        E.OVERDUE: (S.LATE, None),
    },
    S.LATE: {
        **KNOWN,
        **_same_state(S.LATE),
        E.DATA: (S.RUNNING, None),
        E.OVERDUE: (S.LATE, None),
    },
    # What a lost mote has may have changed meanwhile; that it still speaks shows that it was not started anew.
    S.LOST: {**GREETING, E.DATA: (S.GREETED, A.TELL_TIME), E.OVERDUE: (S.LOST, None), E.PAUSE_OVER: (S.LOST, A.ASK)},
}
TRANSITIONS = {(state, event): outcome for state, row in ROWS.items() for event, outcome in row.items()}


def next_state(state: MoteState, event: MoteEvent) -> tuple[MoteState, MoteAction | None]:
    """The state that an event leads to, and what is to be done. An impossible event is an error of ours."""
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        raise LinkError(f"{event.name} cannot happen to a mote that is {state.name}") from None


def render_state_diagram() -> str:
    """The table as a state diagram in the language of Mermaid: events above the line, what is done for them below."""
    lines = ["stateDiagram-v2", f"    [*] --> {MoteState.UNHEARD.name}"]
    arrows: dict[tuple[MoteState, MoteState, MoteAction | None], list[str]] = {}
    for (state, event), (next_, action) in TRANSITIONS.items():
        arrows.setdefault((state, next_, action), []).append(event.name)
    for (state, next_, action), events in arrows.items():
        said = f"{', '.join(events)} / {action.name}" if action else ", ".join(events)
        lines.append(f"    {state.name} --> {next_.name}: {said}")
    return "\n".join(lines) + "\n"
