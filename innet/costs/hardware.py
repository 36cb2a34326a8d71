"""Hardware: what a kind of mote can do and what it draws while it does it, read from the tables beside this file.

Planner and simulator share these figures and nothing else, so what each of them is good for is said here, once. The
radio of a mote is in one state at a time; `power` of a state times the time spent in it is energy.

    SLEEP ──startup_ms──▶ LISTEN ◀──turnaround_ms──▶ SEND

A mote that is to send or to receive starts its radio (`startup_ms`, at the power of listening). One attempt to hand a
frame over is: turn round, send (`airtime` of the frame), turn round, listen for the acknowledgement. The receiver
listens all through its slot; for the acknowledgement it turns round, sends (`ack_ms`), and turns round. Who misses an
acknowledgement listens for it as long as it would have taken (a turn round and `ack_ms`), then tries again. Turning
round draws what listening draws. The processor is active while it computes and while the radio is not asleep, and
sleeps else; a sensor draws its own current while it is sampled, during which the processor sleeps.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files

MAX_ATTEMPTS = 8
"""How often a frame is sent to a neighbour that does not acknowledge it, one attempt right after the other."""


@dataclass(frozen=True, slots=True)
class Radio:
    """Currents in milliampere, times in milliseconds, sizes in bytes."""

    bit_rate: int  # bits a second on the air
    overhead_bytes: int  # what the air carries around each frame: preamble, start, length, addresses, checksum
    ack_bytes: int  # an acknowledgement between neighbours, all of it
    largest_frame: int  # of ours, without the overhead
    send_ma: float
    listen_ma: float
    sleep_ma: float
    startup_ms: float
    turnaround_ms: float

    def airtime_ms(self, frame_bytes: int) -> float:
        """How long a frame of ours occupies the air."""
        return (self.overhead_bytes + frame_bytes) * 8_000 / self.bit_rate

    @property
    def ack_ms(self) -> float:
        return self.ack_bytes * 8_000 / self.bit_rate


@dataclass(frozen=True, slots=True)
class Processor:
    """Currents in milliampere, sizes in bytes; `instruction_us` is one instruction of our bytecode, interpreted."""

    active_ma: float
    sleep_ma: float
    instruction_us: float
    program_bytes: int  # room for programs, and for their versions that wait to be installed
    ram_bytes: int  # room for what programs keep


@dataclass(frozen=True, slots=True)
class Sensing:
    """What a usual sensor of the board takes for one sample, where a deployment does not say it."""

    sample_ms: float
    sample_ma: float


@dataclass(frozen=True, slots=True)
class Hardware:
    """One kind of mote. `sources` says where each figure was found."""

    name: str
    title: str
    voltage: float
    radio: Radio
    processor: Processor
    sensing: Sensing
    sources: Mapping[str, str]

    def joules(self, ma: float, ms: float) -> float:
        """The energy of a current that flows for a time."""
        return self.voltage * ma * ms / 1e6


@cache
def list_hardware() -> tuple[str, ...]:
    """The names of all kinds of mote for which there is a table."""
    return tuple(
        sorted(file.name[: -len(".toml")] for file in files(__package__).iterdir() if file.name.endswith(".toml"))
    )


@cache
def load_hardware(name: str) -> Hardware:
    """The table of that name; KeyError where there is none."""
    if name not in list_hardware():
        raise KeyError(name)
    return read_hardware(name, files(__package__).joinpath(f"{name}.toml").read_text(encoding="utf-8"))


def read_hardware(name: str, text: str) -> Hardware:
    """Each figure of a table is `{ is = …, from = "…" }`; one that is missing, or that says no source, is no figure."""
    table = tomllib.loads(text)
    sources = {}

    def figure(part, key):
        written = table[part][key] if part else table[key]
        sources[f"{part}.{key}" if part else key] = written["from"]
        return written["is"]

    def read(part, made_of):
        return made_of(*(figure(part, field.name) for field in fields(made_of)))

    return Hardware(
        name=name,
        title=table["title"],
        voltage=figure(None, "voltage"),
        radio=read("radio", Radio),
        processor=read("processor", Processor),
        sensing=read("sensing", Sensing),
        sources=sources,
    )
