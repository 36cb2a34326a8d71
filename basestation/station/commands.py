"""Commands: the requests of users as the journal keeps them, and how a station carries them out.

submit   {"text": …, "name": …, "active": …}    replace  {"number": …, "text": …, "name": …, "active": …}
         the name as `basestation.station.query_names` qualifies it
stop, pause, resume, drain   the number of a query      correct  a text of REVISE, DELETE and INSERT
exceed   {"number": …, "reason": …}             a query that exceeds a limit
declare  the declaration of a pushed or stored extent
leave hours, enter hours     the number of a query whose active hours end or begin
prune                        nothing: a query with SINCE is about to be submitted
restart links                the boot that frames to motes carry from now on
"""

import json
from collections.abc import Mapping

from basestation.controller.active_hours import OUTSIDE, ActiveHours, parse_active_hours
from basestation.controller.query_lifecycle import QueryRecord
from basestation.station.journal import Command, Upload
from basestation.station.service import Station
from basestation.station.uploads import apply_upload


def encode_target(text: str, number: int | None, name: str | None, active: str | None = None) -> str:
    """The argument of a command with a text. ActiveHoursError where `active` is none."""
    hours = None if active is None else str(parse_active_hours(active))
    given = {"number": number, "text": text, "name": name, "active": hours}
    return json.dumps({key: value for key, value in given.items() if value is not None}, ensure_ascii=False)


def apply(command: Command | Upload, station: Station) -> QueryRecord | None:
    """Carry a command out; returns the query that it made or changed, if it is about one.

    KeyError: there is no such query. QueryStateError: its state does not allow that. DiagnosticError: the text cannot run.
    """
    if isinstance(command, Upload):
        apply_upload(command, station)
        return None
    match command.kind:
        case "submit":
            given = json.loads(command.argument)
            return station.submit(given["text"], command.now_ms, given.get("name"), _hours_of(given))
        case "replace":
            given = json.loads(command.argument)
            return station.replace(given["number"], given["text"], command.now_ms, given.get("name"), _hours_of(given))
        case "stop":
            return station.stop(int(command.argument), command.now_ms)
        case "pause":
            return station.pause(int(command.argument), command.now_ms)
        case "resume":
            return station.resume(int(command.argument), command.now_ms)
        case "drain":
            return station.drain(int(command.argument), command.now_ms)
        case "leave hours":
            return station.pause(int(command.argument), command.now_ms, OUTSIDE)
        case "enter hours":
            return station.enter_hours(int(command.argument), command.now_ms)
        case "exceed":
            given = json.loads(command.argument)
            return station.fail(given["number"], command.now_ms, given["reason"])
        case "correct":
            station.correct(command.argument, command.now_ms)
            return None
        case "declare":
            station.declare(command.argument, command.now_ms)
            return None
        case "prune":
            station.prune(command.now_ms)
            return None
        case "restart links":
            station.restart_links(int(command.argument))
            return None
        case unknown:
            raise ValueError(f"expected a command of a station, found {unknown!r}")


def _hours_of(given: Mapping[str, str]) -> ActiveHours | None:
    return parse_active_hours(given["active"]) if "active" in given else None
