"""The energy of a mote: time in each state, counted while the simulation runs.

The measured counterpart of innet.costs, which shares the hardware tables with it and nothing else. Times are whole
microseconds and charges whole nanocoulombs, so that their sum does not depend on their order.
"""

from dataclasses import dataclass

from innet.costs.hardware import Hardware


@dataclass(slots=True)
class EnergyAccount:
    """Time by the states of innet.costs.hardware: `awake_us` with the radio on, `send_us` the part of it spent sending."""

    awake_us: int = 0
    send_us: int = 0
    compute_us: int = 0  # computing while the radio sleeps
    sampled_nc: int = 0  # charge that the sensors drew, nanocoulombs

    def clear(self) -> None:
        self.awake_us = self.send_us = self.compute_us = self.sampled_nc = 0


def compute_joules(
    hardware: Hardware, life_us: int, awake_us: int, send_us: int, compute_us: int, sampled_nc: int
) -> float:
    """The energy in joules of a mote that lived `life_us`, with the times and the charge of an EnergyAccount."""
    radio, processor = hardware.radio, hardware.processor
    listen_us, asleep_us, idle_us = awake_us - send_us, life_us - awake_us, life_us - awake_us - compute_us
    nanocoulombs = (
        radio.send_ma * send_us
        + radio.listen_ma * listen_us
        + radio.sleep_ma * asleep_us
        + processor.active_ma * (awake_us + compute_us)
        + processor.sleep_ma * idle_us
        + sampled_nc
    )
    return hardware.voltage * 1e-9 * nanocoulombs


def spent(hardware: Hardware, life_us: int, account: EnergyAccount) -> float:
    """The energy in joules that a mote has used."""
    return compute_joules(hardware, life_us, account.awake_us, account.send_us, account.compute_us, account.sampled_nc)


@dataclass(frozen=True, slots=True)
class Timing:
    """The times of one kind of radio, in whole microseconds."""

    startup: int
    turnaround: int
    ack: int
    byte_ns: int
    overhead: int  # bytes

    @classmethod
    def of(cls, hardware: Hardware) -> "Timing":
        radio = hardware.radio
        return cls(
            round(radio.startup_ms * 1_000),
            round(radio.turnaround_ms * 1_000),
            round(radio.ack_ms * 1_000),
            round(8e9 / radio.bit_rate),
            radio.overhead_bytes,
        )

    def airtime(self, frame_bytes: int) -> int:
        """How long a frame of `frame_bytes` occupies the air."""
        return (self.overhead + frame_bytes) * self.byte_ns // 1_000

    def attempt(self, frame_bytes: int) -> int:
        """How long one attempt to hand over a frame takes, acknowledged or not."""
        return self.airtime(frame_bytes) + 2 * self.turnaround + self.ack
