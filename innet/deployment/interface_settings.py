"""Interface settings: the tables [rest] and [limits] of a deployment, of which only a running station makes use."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.toml import TomlTable


@dataclass(frozen=True, slots=True)
class InterfaceSettings:
    """None is for the station's own default. `has_no_tls` admits another host than this machine without a certificate."""

    host: str | None = None
    port: int | None = None
    certificate: Path | None = None
    key: Path | None = None
    has_no_tls: bool = False
    requests_per_second: float | None = None
    burst: int | None = None
    open_requests: int | None = None
    body_kb: int | None = None
    upload_mb: int | None = None
    queries: int | None = None
    queries_of_user: int | None = None
    results_of_user: int | None = None
    state_mb: int | None = None
    state_mb_of_user: int | None = None
    cpu_share: float | None = None
    cpu_share_of_user: float | None = None


def read_interface_tables(top: TomlTable, folder: Path) -> InterfaceSettings:
    """Read the tables `rest` and `limits`; files stand beside the deployment in `folder`."""
    found: dict[str, Any] = {}
    if (rest := top.table("rest")) is not None:
        found["host"] = rest.text("host", None)
        found["port"] = rest.integer("port", 0, 65_535, None)
        names = {key: rest.text(key, None) for key in ("certificate", "key")}
        if (names["certificate"] is None) != (names["key"] is None):
            missing, given = sorted(names, key=lambda key: names[key] is not None)
            rest.fault("SN703", f"`{given}` needs `{missing}`", given)
        found |= {key: None if name is None else folder / name for key, name in names.items()}
        found["has_no_tls"] = bool(rest.get("no_tls", "true or false", lambda value: isinstance(value, bool), False))
        rest.close()
    if (limits := top.table("limits")) is not None:
        found["requests_per_second"] = limits.number("requests_per_second", 0.1, 1_000_000, None)
        for key, most in (
            ("burst", 1_000_000),
            ("open_requests", 100_000),
            ("body_kb", 1_000_000),
            ("upload_mb", 4_000),
            ("queries", 100_000),
            ("queries_of_user", 100_000),
            ("results_of_user", 1_000_000_000),
            ("state_mb", 1_000_000),
            ("state_mb_of_user", 1_000_000),
        ):
            found[key] = limits.integer(key, 1, most, None)
        for key in ("cpu_share", "cpu_share_of_user"):
            found[key] = limits.number(key, 0.001, 64, None)
        limits.close()
    return InterfaceSettings(**found)
