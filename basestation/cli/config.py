"""moteloom config: check a deployment without starting a station, or show each value that it gives and where it stands."""

import argparse
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gateway.toml import Setting

HELP = "check a deployment, or show the values that a station takes from it"
EXAMPLE = "moteloom config check examples/lab54/deployment.toml"
REFUSED, BAD_INPUT = 2, 3


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = f"""exit codes: 0 right, 2 the schema refused, 3 a file that cannot be taken

example:
  {EXAMPLE}
  moteloom config show --origin examples/lab54/deployment.toml"""
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB", title="verbs")
    check = verbs.add_parser("check", help="every error at once, each with its place")
    show = verbs.add_parser("show", help="each value, also those that are defaults")
    show.add_argument("--origin", action="store_true", help="also file and line of each value")
    for verb in (check, show):
        verb.add_argument("file", metavar="DEPLOYMENT", help="the deployment's file")
        verb.add_argument("-o", "--output", choices=("text", "json"), default="text", help="json is one object a line")


def run(options: argparse.Namespace) -> int:
    from acquisition.errors import InputError
    from basestation.cli.query_arguments import print_diagnostics, print_input_error
    from gateway.diagnostics import DiagnosticError
    from gateway.toml import ConfigError

    as_json = options.output == "json"
    try:
        return _check(options) if options.verb == "check" else _show(options)
    except ConfigError as error:
        print_diagnostics(error.diagnostics, as_json)
        return BAD_INPUT
    except DiagnosticError as refused:
        print_diagnostics(refused.diagnostics, as_json)
        return REFUSED
    except InputError as error:
        print_input_error(error, as_json)
        return BAD_INPUT


def _check(options: argparse.Namespace) -> int:
    from acquisition.errors import InputError
    from basestation.planner.deployed_catalog import read_deployed_catalog
    from basestation.station.assembly import read_archive_limits
    from innet.deployment.toml_reader import read_deployment

    try:
        deployment = read_deployment(options.file)
    except OSError as why:
        raise InputError("SN501", f"cannot be read: {why.strerror}", options.file) from why
    catalog = read_deployed_catalog(deployment)
    read_archive_limits(options.file, catalog)
    extents = [extent.name for extent in catalog]
    counts = {"motes": len(deployment.motes), "gateways": len(deployment.gateways)}
    if options.output == "json":
        print(json.dumps({"file": options.file, "name": deployment.name, **counts, "extents": extents}))
    else:
        print(
            f"{options.file} is right: {deployment.name}; motes: {counts['motes']}, gateways: {counts['gateways']}, "
            f"extents: {', '.join(extents)}"
        )
    return 0


def _show(options: argparse.Namespace) -> int:
    from acquisition.errors import InputError
    from gateway.source import Source
    from innet.deployment.toml_reader import read_deployment

    settings: list[Setting] = []
    try:
        read_deployment(options.file, settings)
        with open(options.file, encoding="utf-8-sig") as file:
            source = Source(file.read(), options.file)
    except OSError as why:
        raise InputError("SN501", f"cannot be read: {why.strerror}", options.file) from why
    taken = {each.path: each for each in sorted(settings, key=lambda each: each.place is not None)}
    for path, setting in sorted(taken.items(), key=lambda item: _order(item[0])):
        if setting.value is None:  # a key that may be left out, and is
            continue
        name = ".".join(map(str, path))
        line = None if setting.place is None else source.line_column(setting.place.start)[0]
        if options.output == "json":
            print(json.dumps({"key": name, "value": setting.value, "file": options.file, "line": line}, default=str))
        else:
            origin = "default" if line is None else f"{options.file}:{line}"
            print(f"{name} = {_shown(setting.value)}{f'    # {origin}' if options.origin else ''}")
    return 0


def _order(path: tuple[str | int, ...]) -> tuple[tuple[bool, int, str], ...]:
    """Numbers by value, names by the alphabet."""
    return tuple((not str(part).isdecimal(), int(part) if str(part).isdecimal() else 0, str(part)) for part in path)


def _shown(value: Any) -> str:
    """A value as TOML writes it; a long text in one short line."""
    if isinstance(value, str) and len(value) > 60:
        value = f"{' '.join(value.split())[:57]}..."
    return json.dumps(value, ensure_ascii=False, default=str)
