"""A peer that records, reads and follows numbers with our client of an archive.

In addition to the operations of `our_peer.py`: use_archive, record, record_more, stop_recording, recorded, describe,
found, protect, apply_retention, follow and followed.
"""

import threading
from datetime import UTC, datetime

from our_peer import OurPeer
from serve import serve

import aeron

ALIAS = "numbers"
CHANNEL = f"aeron:ipc?term-length=64k|alias={ALIAS}"
# With the header, a message has 512 bytes, so that no term needs padding.
_LENGTH = 480
_TIMEOUT_S = 30


class ArchiveUser(OurPeer):
    def connect(self, dir, **settings):
        self._directory = dir
        return super().connect(dir, **settings)

    def use_archive(self, control, control_stream, response, timeout_s=_TIMEOUT_S):
        """Connects to the archive, and keeps the settings for the publishers."""
        self._settings = {
            "control_channel": control,
            "control_stream_id": int(control_stream),
            "response_channel": response,
            "message_timeout": float(timeout_s),
        }
        self._archive = aeron.connect_archive(self._client, **self._settings)

    def record(self, stream, first, count):
        """Extends the recording of the stream with numbers, or starts the recording, which stays active until
        `stop_recording`. Returns the recording id."""
        self._publisher = aeron.RecordedPublisher(
            CHANNEL, int(stream), driver=self._directory, alias=ALIAS, takeover_timeout=_TIMEOUT_S, **self._settings
        )
        return self.record_more(first, count)

    def record_more(self, first, count):
        """Records more numbers with the same publisher, even if the archive was restarted."""
        for number in range(int(first), int(first) + int(count)):
            position = self._publisher.publish(b"%0*d" % (_LENGTH, number), timeout=_TIMEOUT_S)
        self._publisher.wait_recorded(position, timeout=_TIMEOUT_S)
        return {"recording": self._publisher.recording_id}

    def stop_recording(self):
        """Closes the publisher. All its messages are recorded."""
        self._publisher.close(timeout=_TIMEOUT_S)

    def recorded(self, recording):
        """Returns the numbers that are recorded now."""
        with self._archive.replay(int(recording), length=aeron.REPLAY_ALL_AND_STOP) as replay:
            return {"numbers": [int(text) for batch in replay.batches(timeout=_TIMEOUT_S) for text in batch.to_list()]}

    def protect(self, recording, position):
        """Keeps the data of the recording from `position` on for a reader, although the policy permits no data."""
        self._archive.commit_reader(int(recording), "bars", int(position))
        self._archive.set_retention(recording_id=int(recording), max_bytes=1)
        self._archive.set_recording_name(int(recording), f"name {recording}")
        self._archive.set_recording_metadata(int(recording), b"\0metadata")

    def apply_retention(self):
        self._archive.apply_retention()

    def describe(self):
        """Returns the recordings, and the content of the file of extensions."""
        return {
            "recordings": [
                [one.recording_id, one.stream_id, one.start_position, self._end_of(one.recording_id)]
                for one in self._archive.list_recordings()
            ],
            "readers": [[one.recording_id, one.name, one.position] for one in self._archive.list_readers()],
            "policies": [[one.recording_id, one.max_bytes] for one in self._archive.list_retention()],
            "names": [
                [one.recording_id, one.name, (one.metadata or b"").hex()] for one in self._archive.list_recording_info()
            ],
        }

    def _end_of(self, recording):
        return self._archive.get_max_recorded_position(recording)

    def found(self, recording, seconds):
        """Returns the position at a time in seconds since the epoch, and whether it is exact."""
        found = self._archive.find_position(int(recording), since=datetime.fromtimestamp(float(seconds), UTC))
        return {"position": found.position, "exact": not found.is_approximate}

    def follow(self, recording):
        """Starts a thread that reads the recording until the peer ends."""
        self._numbers = []
        follower = self._archive.follow(int(recording), reader="follower")
        threading.Thread(target=self._read, args=(follower,), daemon=True).start()

    def _read(self, follower):
        for batch in follower.batches():
            self._numbers += [int(text) for text in batch.to_list()]

    def followed(self):
        return {"numbers": list(self._numbers)}


if __name__ == "__main__":
    serve(ArchiveUser())
