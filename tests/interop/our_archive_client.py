"""Our Rust client of an archive as a process, and archives for this client.

The operations of the client are those of the example program `archive_client`.
"""

from interop.archives import Archive
from interop.peers import Peer

SEGMENT_LENGTH = 128 * 1024
IPC = "aeron:ipc"
ANY_PORT = "aeron:udp?endpoint=localhost:0"


class SharedArchive(Archive):
    """An archive with its driver, archive id and channels."""

    def __init__(self, kind, driver, directory, log, stream, *, id, settings=None):
        self.driver = driver
        self.id = id
        settings = {"aeron.archive.id": str(id), "aeron.archive.connect.timeout": "2s", **(settings or {})}
        super().__init__(kind, driver, directory, log, stream, settings)
        self.control_channel, self.stream, _ = self.control("udp")

    def segments(self, recording):
        """Start positions of the recording's segment files."""
        names = (path.stem.split("-") for path in self.directory.glob(f"{recording}-*.rec"))
        return sorted(int(base) for _, base in names)


class OurArchiveClient(Peer):
    """Our client. `call` returns the values of an operation, `ask` the result of a request to the archive."""

    def __init__(self, log):
        super().__init__("our-archive-client", log)

    def connect(self, archive, *, request=IPC, response=IPC, **settings):
        """Connects a new Aeron client and a client of the archive, which may still be starting."""
        channels = {"request": request, "response": response, "stream": archive.stream}
        return self.call("connect", dir=archive.driver.directory, **channels, **{"timeout_ms": 30_000, **settings})

    def reconnect(self, archive, *, request=IPC, response=IPC, **settings):
        """Like `connect`, with the existing Aeron client."""
        return self.call("reconnect", request=request, response=response, stream=archive.stream, **settings)

    def ask(self, operation, **values):
        return self.call(operation, **values)["value"]
