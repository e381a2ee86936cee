"""Rate at which Python reads a recorded stream at its live edge."""

import json
from dataclasses import dataclass

from bench import environments as env
from bench.archive.streams import rig
from bench.measure import SPARE_TIME_S, VoidError, expect_ready, started, timed


@dataclass
class LiveEdge:
    """Reads a stream in batches while the archive records it. `how` is the reader of `archive_follower.py`."""

    name: str
    how: str
    unit: str = "messages/s"

    def measure(self, seconds):
        program = (env.ours(), "-u", env.PEERS / "archive_follower.py")
        with rig("ours") as stand, started(program, stand.driver, ["pub", *timed({}, seconds)]) as publisher:
            recording = json.loads(publisher.read(SPARE_TIME_S))["recording"]
            words = timed({"how": self.how, "recording": recording}, seconds)
            with started(program, stand.driver, ["sub", *words]) as reader:
                expect_ready(reader)
                publisher.write("go")
                sent, got = (json.loads(each.read(seconds + SPARE_TIME_S)) for each in (publisher, reader))
        if got["faults"] or (got["received"], got["sum"]) != (sent["sent"], sent["sum"]):
            raise VoidError(f"{self.name}: sent {sent}, received {got}")
        return {"rate": got["measured"] / got["seconds"]}
