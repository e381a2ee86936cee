"""Runs our Rust client of an archive in a process, and archives for the client.

The process is our example program `archive_client`, which defines the operations.
"""

from interop.archives import Archive
from interop.peers import Peer

SEGMENT_LENGTH = 128 * 1024
IPC = "aeron:ipc"
ANY_PORT = "aeron:udp?endpoint=localhost:0"


class SharedArchive(Archive):
    """An archive that several tests share, with its driver, archive id and channels."""

    def __init__(self, kind, driver, directory, log, stream, *, id, settings=None):
        self.driver = driver
        self.id = id
        settings = {"aeron.archive.id": str(id), "aeron.archive.connect.timeout": "2s", **(settings or {})}
        super().__init__(kind, driver, directory, log, stream, settings)
        self.control_channel, self.stream, _ = self.control("udp")

    def segments(self, recording):
        """Returns the start positions of a recording's segment files."""
        names = (path.stem.split("-") for path in self.directory.glob(f"{recording}-*.rec"))
        return sorted(int(base) for _, base in names)


class OurArchiveClient(Peer):
    """The process with our client. `call` performs an operation and returns its values. `ask` sends a request to the
    archive and returns the result."""

    def __init__(self, log):
        super().__init__("our-archive-client", log)

    def connect(self, archive, *, request=IPC, response=IPC, **settings):
        """Connects a new Aeron client to the driver, and a client to the archive. The archive may still be starting."""
        channels = {"request": request, "response": response, "stream": archive.stream}
        return self.call("connect", dir=archive.driver.directory, **channels, **{"timeout_ms": 30_000, **settings})

    def reconnect(self, archive, *, request=IPC, response=IPC, **settings):
        """Connects a client to the archive, like `connect`, but with the existing Aeron client."""
        return self.call("reconnect", request=request, response=response, stream=archive.stream, **settings)

    def ask(self, operation, **values):
        return self.call(operation, **values)["value"]
