"""moteloom token: create, list and revoke the tokens of a station, in its data directory on this machine."""

import argparse
import json
import os
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from basestation.cli.station_arguments import DATA, TOKEN_FILE

if TYPE_CHECKING:
    from basestation.station.access_file import AccessFile, TokenRecord

HELP = "create, list or revoke the tokens that admit users to a station"
EXAMPLE = "moteloom token create --name anna --scope submit --expires 90d"
FAILED, REFUSED = 1, 2
SCOPES = "read", "submit", "tag", "operate", "admin"
LATEST_MS = 253_402_300_799_999
"""The end of the year 9999."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = f"""scopes:
  read     the station, and the queries and results of the same name
  submit   read; and submit, replace, pause, resume and stop queries of the same name
  tag      write data: push tuples, correct them
  operate  submit; and all of that for the queries of all
  admin    everything

A name is a user: all tokens of a name see the same queries. A new or revoked token counts at once, also while the station runs.
exit codes: 0 done, 1 the data directory cannot be used, 2 refused

example:
  {EXAMPLE}
  moteloom token list
  moteloom token revoke anna"""
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB", title="verbs")
    create = verbs.add_parser("create", help="make a token and print it; it is shown this one time")
    create.add_argument("--name", type=_user, required=True, metavar="NAME", help="the user")
    create.add_argument(
        "--scope", type=_scopes, required=True, metavar="SCOPE", help=f"one, or some with commas: {', '.join(SCOPES)}"
    )
    create.add_argument(
        "--expires",
        type=_expiry,
        metavar="WHEN",
        help="after a span such as 90d, or at a time such as 2027-01-31; default: never",
    )
    verbs.add_parser("list", help="all tokens, without their secrets")
    revoke = verbs.add_parser("revoke", help="admit a token, or all tokens of a user, no longer")
    revoke.add_argument("which", metavar="NUMBER|NAME")
    for verb in verbs.choices.values():
        verb.add_argument(
            "--data", type=Path, default=Path(DATA), metavar="DIR", help="of the station; default: %(default)s"
        )
        verb.add_argument(
            "-o", "--output", choices=("table", "json"), default="table", help="json is one object a line"
        )


def _user(text: str) -> str:
    from basestation.rest.access import NAME_PATTERN

    if not re.fullmatch(NAME_PATTERN, text):
        raise argparse.ArgumentTypeError(
            f"`{text[:40]}` is no name: it begins with a letter and has up to 64 letters, digits, `-` and `_`"
        )
    return text


def _scopes(text: str) -> list[str]:
    given = text.split(",")
    for name in given:
        if name not in SCOPES:
            raise argparse.ArgumentTypeError(f"unknown scope `{name[:40]}`; known are {', '.join(SCOPES)}")
    return given


def _expiry(text: str) -> int:
    """Ms since 1970."""
    from acquisition.ticks import tick_of_rfc3339
    from acquisition.units import milliseconds_of

    now_ms = _now_ms()
    span = milliseconds_of(text)
    try:
        at_ms = now_ms + span if span is not None else tick_of_rfc3339(text, 1)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"`{text[:40]}` is neither a span such as 90d nor a time such as 2027-01-31T08:00:00Z"
        ) from None
    if not now_ms < at_ms <= LATEST_MS:
        raise argparse.ArgumentTypeError(f"`{text[:40]}` is not in the future, before the year 10000")
    return at_ms


def run(options: argparse.Namespace) -> int:
    from basestation.station.access_file import AccessFile
    from basestation.station.journal_file import JournalError

    try:
        with AccessFile(options.data) as access:
            return _VERBS[options.verb](access, options)
    except JournalError as error:
        print(f"moteloom: {error}; {error.help}", file=sys.stderr)
        return FAILED


def _create(access: "AccessFile", options: argparse.Namespace) -> int:
    from basestation.rest.access import TokenScope

    others = [each for each in access.tokens() if each.name == options.name and each.state(_now_ms()) == "active"]
    token = access.create(options.name, [TokenScope(name) for name in options.scope], options.expires, by=_os_user())
    made = access.tokens()[-1]
    print(json.dumps({"token": token, **_as_json(made)}) if options.output == "json" else token)
    end = "" if options.expires is None else f" until {_time(options.expires)}"
    print(
        f"token {made.number} of {made.name}, {_scopes_text(made)}{end}: keep it, it is not shown again",
        file=sys.stderr,
    )
    if others:
        numbers = ", ".join(str(each.number) for each in others)
        print(f"{options.name} also has token {numbers}: all of them see the same queries", file=sys.stderr)
    return 0


def _scopes_text(token: "TokenRecord") -> str:
    """The scopes of a token with commas."""
    return ",".join(scope.value for scope in token.scopes)


def _list(access: "AccessFile", options: argparse.Namespace) -> int:
    tokens = access.tokens()
    if options.output == "json":
        for each in tokens:
            print(json.dumps(_as_json(each)))
        return 0
    width = max([4, *(len(each.name) for each in tokens)])
    print(f"token  {'name':<{width}}  {'scopes':<15}  state    created               expires")
    for each in tokens:
        expires = "never" if each.expires_ms is None else _time(each.expires_ms)
        print(
            f"{each.number:>5}  {each.name:<{width}}  {_scopes_text(each):<15}  {each.state(_now_ms()):<7}  "
            f"{_time(each.created_ms)}  {expires}"
        )
    return 0


def _revoke(access: "AccessFile", options: argparse.Namespace) -> int:
    from basestation.station.access_file import forget_first_token

    try:
        revoked = access.revoke(options.which, by=_os_user())
    except KeyError:
        print(
            f"moteloom: no token that is active has the number or name {options.which[:80]}; `moteloom token list` shows all",
            file=sys.stderr,
        )
        return REFUSED
    for each in revoked:
        text = f"token {each.number} of {each.name}, {_scopes_text(each)}: revoked"
        print(json.dumps(_as_json(each)) if options.output == "json" else text)
    if forget_first_token(options.data, access):
        print(f"{options.data / TOKEN_FILE} had it and is removed: give commands another with --token", file=sys.stderr)
    return 0


def _as_json(token: "TokenRecord") -> dict[str, Any]:
    return {
        "number": token.number, "name": token.name, "scopes": [scope.value for scope in token.scopes],
        "state": token.state(_now_ms()), "created": _time(token.created_ms),
        "expires": None if token.expires_ms is None else _time(token.expires_ms),
        "revoked": None if token.revoked_ms is None else _time(token.revoked_ms),
    }  # fmt: skip


def _os_user() -> str:
    """The user of this machine, for the audit; no token has such a name."""
    import getpass

    try:
        return f"{getpass.getuser()} at the station"
    except (KeyError, OSError):  # a container may have numbers only
        return f"{os.getuid()} at the station"


def _time(at_ms: int) -> str:
    from acquisition.ticks import rfc3339_of

    return rfc3339_of(at_ms // 1_000, 1_000)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


_VERBS = {"create": _create, "list": _list, "revoke": _revoke}
