"""Hardware: the capabilities and currents of each kind of mote, read from the tables beside this file.

Planner and simulator share these figures and nothing else, so this page defines the meaning of each. The radio is in one
state at a time. The energy of a state is its power times the time spent in it.

    SLEEP ──startup_ms──▶ LISTEN ◀──turnaround_ms──▶ SEND

To send or to receive, a mote starts its radio (`startup_ms`, at the power of listening). One attempt to send a frame is:
turnaround, send (`airtime` of the frame), turnaround, listen for the acknowledgement. The receiver listens throughout its
slot; to acknowledge, it turns around, sends (`ack_ms`) and turns around. A sender that misses an acknowledgement listens
as long as it would have taken (a turnaround and `ack_ms`), then tries again. A turnaround draws the current of listening.
The processor is active while it computes and while the radio is awake; otherwise it sleeps. A sensor draws its own
current while it is sampled; the processor sleeps meanwhile.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar

MAX_ATTEMPTS = 8
"""Attempts to send a frame to a neighbour that does not acknowledge it, one right after the other."""


@dataclass(frozen=True, slots=True)
class Radio:
    """The radio of a mote. Currents in milliampere, times in milliseconds, sizes in bytes."""

    bit_rate: int  # bits per second on the air
    overhead_bytes: int  # around each frame: preamble, start, length, addresses, checksum
    ack_bytes: int  # an acknowledgement between neighbours, with its overhead
    largest_frame: int  # without the overhead
    send_ma: float
    listen_ma: float
    sleep_ma: float
    startup_ms: float
    turnaround_ms: float

    def airtime_ms(self, frame_bytes: float) -> float:
        """Return the milliseconds that a frame occupies the air; `frame_bytes` excludes the overhead."""
        return (self.overhead_bytes + frame_bytes) * 8_000 / self.bit_rate

    @property
    def ack_ms(self) -> float:
        """The milliseconds that an acknowledgement occupies the air."""
        return self.ack_bytes * 8_000 / self.bit_rate


@dataclass(frozen=True, slots=True)
class Processor:
    """The processor of a mote. Currents in milliampere, sizes in bytes."""

    active_ma: float
    sleep_ma: float
    instruction_us: float  # microseconds to interpret one instruction of the bytecode
    program_bytes: int  # for programs, and for their next versions before installation
    ram_bytes: int  # for the tables of partials


@dataclass(frozen=True, slots=True)
class Sensing:
    """Time and current of one sample of a typical sensor, for sensors whose deployment gives no figures."""

    sample_ms: float
    sample_ma: float


@dataclass(frozen=True, slots=True)
class Hardware:
    """One kind of mote; `voltage` is in volt. `sources` has the origin of each figure, by `section.key`."""

    name: str
    title: str
    voltage: float
    radio: Radio
    processor: Processor
    sensing: Sensing
    sources: Mapping[str, str]

    def joules(self, ma: float, ms: float) -> float:
        """Return the energy in joules of a current of `ma` milliampere that flows for `ms` milliseconds."""
        return self.voltage * ma * ms / 1e6


Section = TypeVar("Section", Radio, Processor, Sensing)


@cache
def list_hardware() -> tuple[str, ...]:
    """Return the names of all hardware tables, in alphabetical order."""
    return tuple(
        sorted(file.name[: -len(".toml")] for file in files(__package__).iterdir() if file.name.endswith(".toml"))
    )


@cache
def load_hardware(name: str) -> Hardware:
    """Return the hardware table `name`. KeyError if there is none."""
    if name not in list_hardware():
        raise KeyError(name)
    return read_hardware(name, files(__package__).joinpath(f"{name}.toml").read_text(encoding="utf-8"))


def read_hardware(name: str, text: str) -> Hardware:
    """Parse a hardware table. Each figure is `{ is = …, from = "…" }`; KeyError if a figure or its source is missing."""
    table = tomllib.loads(text)
    sources: dict[str, str] = {}

    def read_figure(section: Mapping[str, Any], key: str, path: str) -> Any:
        sources[path] = section[key]["from"]
        return section[key]["is"]

    def read_section(name: str, section_type: type[Section]) -> Section:
        figures = (read_figure(table[name], field.name, f"{name}.{field.name}") for field in fields(section_type))
        return section_type(*figures)

    return Hardware(
        name=name,
        title=table["title"],
        voltage=read_figure(table, "voltage", "voltage"),
        radio=read_section("radio", Radio),
        processor=read_section("processor", Processor),
        sensing=read_section("sensing", Sensing),
        sources=sources,
    )
