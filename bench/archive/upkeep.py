"""Cost of retention, index and scrub for a recording."""

from dataclasses import dataclass

from bench.archive.server import SEGMENT_LENGTH
from bench.archive.streams import IPC, STREAM, WARM_UP_S, record, rig

SCRUB_RATE = 10_000_000
"""Bytes per second that the scrub reads."""
KEPT_BYTES = 2 * SEGMENT_LENGTH
"""Limit of the retention policy. A recording at full rate exceeds it within a run, so retention deletes segments."""
# A pass begins each 100 ms. With the default of a day, the scrub would not see segments of a short run.
_ON = {"index": "true", "scrub.rate": SCRUB_RATE, "scrub.interval": "100ms"}
_OFF = {"index": "false", "scrub.rate": 0}
_FREED_TYPE, _SCRUBBED_TYPE = 20101, 20104


@dataclass
class Upkeep:
    """Records a stream at full rate, with retention, index and scrub or without all three."""

    name: str
    length: int
    is_on: bool
    unit: str = "messages/s"

    def measure(self, seconds):
        settings = {f"aeron.archive.{name}": str(value) for name, value in (_ON if self.is_on else _OFF).items()}
        with rig("ours", **settings) as stand:
            if self.is_on:
                stand.control.set_retention(stream_id=STREAM, max_bytes=KEPT_BYTES)
            record(stand, IPC, self.length, min(WARM_UP_S, seconds))
            transfer = record(stand, IPC, self.length, seconds).transfer
            done = {"freed": _mib(stand, _FREED_TYPE), "scrubbed": _mib(stand, _SCRUBBED_TYPE)} if self.is_on else {}
        return {"rate": transfer.rate, "record cost": transfer.cost, **done}


def _mib(stand, type_id):
    """Returns the value of the archive's counter of this type in MiB. The counter itself counts bytes."""
    [counter] = [one for one in stand.client.counters_reader.snapshot() if one.type_id == type_id]
    return counter.value / 2**20
