"""Recorded streams that a `ReplayMerge` reads: dynamic control over UDP, with a recording of each message."""

import aeron
from ports import free_port

# Messages of a new stream.
COUNT = 300
_TIMEOUT_S = 30


class Recorded:
    """A stream that an archive records, with its publisher."""

    def __init__(self, archive, stream):
        self.archive, self.stream_id = archive, stream
        self.control = free_port()
        channel = f"aeron:udp?control=127.0.0.1:{self.control}|control-mode=dynamic|ssc=true|term-length=256k"
        self.publication = archive.add_recorded_exclusive_publication(channel, stream)
        self.sent = []
        self.publish(COUNT)
        position = self.publication.position
        self.recording_id = archive.wait_recorded(self.publication, position, timeout=_TIMEOUT_S).recording_id

    def publish(self, count):
        for number in range(len(self.sent), len(self.sent) + count):
            message = number.to_bytes(8, "little") * 100
            self.publication.publish(message, timeout=_TIMEOUT_S)
            self.sent.append(message)

    @property
    def live_destination(self):
        return f"aeron:udp?endpoint=127.0.0.1:0|control=127.0.0.1:{self.control}"

    @property
    def session(self):
        return f"session-id={self.publication.session_id}"

    def subscribe(self):
        return self.archive.client.add_subscription(f"aeron:udp?control-mode=manual|{self.session}", self.stream_id)

    def merge(self, subscription, **changes):
        channels = {
            "replay_channel": f"aeron:udp?{self.session}",
            "replay_destination": "aeron:udp?endpoint=127.0.0.1:0",
            "live_destination": self.live_destination,
            "recording_id": self.recording_id,
        }
        return aeron.ReplayMerge(subscription, self.archive, **{**channels, **changes})
