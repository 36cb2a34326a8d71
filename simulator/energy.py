"""What a mote did with its electricity: time in each state, counted while it happens.

The measured twin of innet.costs: it shares the tables of hardware with it and nothing else. Times are whole
microseconds and charges whole nanocoulombs, so that their sum is the same in whatever order they come.
"""

from dataclasses import dataclass

from innet.costs.hardware import Hardware


@dataclass(slots=True)
class EnergyAccount:
    """The states of innet.costs.hardware. `awake_us` is the time with the radio on, `send_us` the sending part of it."""

    awake_us: int = 0
    send_us: int = 0
    compute_us: int = 0  # computing while the radio sleeps
    sampled_nc: int = 0  # what the sensors drew

    def clear(self) -> None:
        self.awake_us = self.send_us = self.compute_us = self.sampled_nc = 0


def compute_joules(hardware: Hardware, life_us, awake_us, send_us, compute_us, sampled_nc):
    """The energy of a life of `life_us` with that account; for single numbers and for arrays of motes alike."""
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
    """What one mote has used of its battery, in joules."""
    return compute_joules(hardware, life_us, account.awake_us, account.send_us, account.compute_us, account.sampled_nc)


@dataclass(frozen=True, slots=True)
class Timing:
    """The times of one kind of radio, in whole microseconds."""

    startup: int
    turnaround: int
    ack: int
    byte_ns: int
    overhead: int

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

    def airtime(self, frame_bytes):
        """How long a frame of ours occupies the air."""
        return (self.overhead + frame_bytes) * self.byte_ns // 1_000

    def attempt(self, frame_bytes):
        """How long one attempt to hand a frame over takes, whether it is acknowledged or not."""
        return self.airtime(frame_bytes) + 2 * self.turnaround + self.ack
