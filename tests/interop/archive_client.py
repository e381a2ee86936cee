"""Our Rust client of an archive as a process, and real archives for it.

The operations of the client are those of the example program `archive_client`.
"""

import struct
from contextlib import suppress

from interop import toolchain
from interop.peers import Peer
from interop.processes import Process
from interop.waiting import eventually
from ports import free_port

_START_TIMEOUT_S = 60

SEGMENT_LENGTH = 128 * 1024
IPC = "aeron:ipc"
ANY_PORT = "aeron:udp?endpoint=localhost:0"


class RealArchive:
    """The real archive as a process beside a driver, with requests over IPC and on a UDP port of its own."""

    def __init__(self, driver, directory, log, *, id, stream=10, settings=None):
        self.driver = driver
        self.directory = directory
        self.id = id
        self.stream = stream
        self.control = f"aeron:udp?endpoint=localhost:{free_port()}"
        properties = {
            "aeron.dir": driver.directory,
            "aeron.archive.dir": directory,
            "aeron.archive.id": id,
            "aeron.archive.control.channel": self.control,
            "aeron.archive.control.stream.id": stream,
            "aeron.archive.local.control.stream.id": stream,
            "aeron.archive.replication.channel": ANY_PORT,
            "aeron.archive.segment.file.length": SEGMENT_LENGTH,
            "aeron.archive.threading.mode": "SHARED",
            "aeron.archive.connect.timeout": "2s",
            "aeron.archive.low.storage.space.threshold": "0",
            **(settings or {}),
        }
        *java, program = toolchain.java_peer_command("io.aeron.archive.Archive")
        flags = (f"-D{name}={value}" for name, value in properties.items())
        self.process = Process((*java, *flags, program), log=log)
        eventually(self._is_ready, _START_TIMEOUT_S)

    def _is_ready(self):
        """Whether the archive has written its first heartbeat, which is the last step before it takes requests."""
        assert self.process.exit_code is None, f"the archive did not start\n{self.process.output()}"
        with suppress(FileNotFoundError, struct.error):
            (heartbeat_ms,) = struct.unpack_from("<q", (self.directory / "archive-mark.dat").read_bytes(), 16)
            return heartbeat_ms > 0
        return False

    def segments(self, recording):
        """Bases of the recording's segment files."""
        names = (path.stem.split("-") for path in self.directory.glob(f"{recording}-*.rec"))
        return sorted(int(base) for _, base in names)

    def kill(self):
        self.process.kill()


class ArchiveClient(Peer):
    """Our client. `call` returns the values of an operation, `ask` the result of a request to the archive."""

    def __init__(self, log):
        super().__init__("our-archive-client", log)

    def connect(self, archive, *, request=IPC, response=IPC, **settings):
        """Connects a new Aeron client, and by it a client of the archive, which may still be starting."""
        channels = {"request": request, "response": response, "stream": archive.stream}
        return self.call("connect", dir=archive.driver.directory, **channels, **{"timeout_ms": 30_000, **settings})

    def reconnect(self, archive, *, request=IPC, response=IPC, **settings):
        """As `connect`, with the Aeron client that there is."""
        return self.call("reconnect", request=request, response=response, stream=archive.stream, **settings)

    def ask(self, operation, **values):
        return self.call(operation, **values)["value"]
