"""Cells and goals of the benchmarks over IPC, and the list of all parts."""

from dataclasses import replace

from bench import environments as env
from bench.archive import server
from bench.archive.lines import ARCHIVE_GROUPS
from bench.goals import Goal, Group, Part
from bench.measure import STOCK, BareMemory, Idle, JavaSample, OneWay, RoundTrip
from bench.placement import PLACEMENTS
from bench.sbe_lines import SBE_GROUPS, VERSIONS
from bench.spark import kafka_broker
from bench.spark.lines import KAFKA_GROUPS, SPARK_GROUPS
from bench.spark.session import missing, versions
from bench.udp_lines import UDP_GROUPS
from interop import toolchain

LARGE = 64 * 1024
LARGEST_CLAIM = 65504 - 32
LARGEST_MTU = "aeron:ipc?mtu=65504"


# Commands are functions: only a measured cell needs its program.
def _native():
    return (env.native(),)


def _c_client():
    return (env.c_client(),)


def _peer(name):
    return lambda: (env.peers(), "-u", env.PEERS / f"{name}.py")


def _ours(name):
    return lambda: (env.ours(), "-u", env.PEERS / f"{name}.py")


def _native_one_way(length, terms):
    size = "32 B" if length == 32 else f"1 KiB, terms of {terms} MiB"
    settings = {"length": length, "channel": f"aeron:ipc?term-length={terms}m"}
    stock = {"length": length, "concurrent": True, "limit": 10}
    c_cells = (f"C client, {size}", f"C client as it comes, {size}")
    ours, batch = f"ours native, {size}", f"ours native in batches, {size}"
    return Group(
        [
            OneWay(c_cells[0], _c_client, "c", settings),
            OneWay(c_cells[1], _c_client, "c", stock, STOCK),
            OneWay(ours, _native, "ours", settings),
            OneWay(batch, _native, "ours", {**settings, "how": "batch"}),
            BareMemory(f"bare memory, {size}", _native, {"length": length, "term_length": terms << 20}),
            JavaSample(f"Java sample in one process, {size}", length),
        ],
        [
            Goal(f"native, message by message, {size}", ours, c_cells, at_least=1.1 if length == 32 else 1.3),
            Goal(f"native, batches, {size}", batch, c_cells, at_least=2),
        ],
    )


def _python_one_way():
    def one(name, how):
        return OneWay(name, _ours("ours_peer"), "ours", {"how": how})

    pyaeron, zmq, packed = "pyaeron, 32 B", "pyzmq, 32 B", "pyzmq packed by 100, 32 B"
    native, rows = "ours native in batches, 32 B again", "ours from Python, rows"
    listed, single = "ours from Python, lists of bytes", "ours from Python, one call per message"
    return Group(
        [
            OneWay(native, _native, "ours", {"how": "batch"}),
            one(rows, "rows"),
            one(listed, "list"),
            one(single, "single"),
            OneWay(pyaeron, _peer("pyaeron_peer"), "c"),
            OneWay(zmq, _peer("zmq_peer")),
            OneWay(packed, _peer("zmq_peer"), settings={"how": "packed"}),
        ],
        [
            Goal("Python rows, compared with our native batches", rows, (native,), at_least=0.8),
            Goal("Python rows, compared with pyaeron", rows, (pyaeron,), at_least=12),
            Goal("Python rows, compared with pyzmq", rows, (zmq,), at_least=60),
            Goal("Python rows, compared with pyzmq packed by 100", rows, (packed,), at_least=6),
            Goal("Python list of bytes, compared with pyaeron", listed, (pyaeron,), at_least=4),
            Goal("Python, one call per message, compared with pyaeron", single, (pyaeron,), at_least=1.2),
        ],
    )


def _large():
    # Our client and the C client have terms of the same length. Both are faster with terms of 4 MiB, because such terms
    # stay in the processor's cache.
    iceoryx2 = "iceoryx2 slices, 64 KiB"
    cells, goals = [OneWay(iceoryx2, _peer("iceoryx2_peer"), settings={"length": LARGE})], []
    for what, channel, settings in (
        ("claim of 65,472 B", f"{LARGEST_MTU}|", {"length": LARGEST_CLAIM, "how": "claim"}),
        ("offer of 64 KiB", "aeron:ipc?", {"length": LARGE, "how": "offer", "assemble": True}),
    ):
        for terms in (16, 4):
            c_client, ours = (f"{who}, {what}, terms of {terms} MiB" for who in ("C client", "ours from Python"))
            with_terms = {**settings, "channel": f"{channel}term-length={terms}m"}
            cells += [
                OneWay(c_client, _c_client, "c", with_terms),
                OneWay(ours, _ours("ours_peer"), "ours", with_terms),
            ]
            text = f"{what}, terms of {terms} MiB, compared with the C client"
            goals.append(Goal(text, ours, (c_client,), at_least=1.5))
            if settings["how"] == "claim":
                bare = {"length": LARGEST_CLAIM, "term_length": terms << 20}
                cells.append(BareMemory(f"bare memory, {what}, terms of {terms} MiB", _native, bare))
        goals.append(Goal(f"{what}, compared with iceoryx2", ours, (iceoryx2,), at_least=0.8))
    return Group(cells, goals)


def _round_trips():
    c_client, native = "C client, round trip", "ours native, round trip"
    pyaeron, python = "pyaeron, round trip", "ours from Python, round trip"
    return Group(
        [
            RoundTrip(c_client, _c_client, "c"),
            RoundTrip(native, _native, "ours"),
            RoundTrip(pyaeron, _peer("pyaeron_peer"), "c"),
            RoundTrip(python, _ours("ours_peer"), "ours"),
        ],
        [
            Goal(f"{text}, {metric}", ours, (peer,), metric, at_most=bound, unit="ns")
            for text, ours, peer, bound in (
                ("native round trip", native, c_client, 1.1),
                ("Python round trip", python, pyaeron, 0.6),
            )
            for metric in ("p50", "p99")
        ],
    )


def _asyncio():
    cells, goals = [], []
    ours, zmq = "ours, async for", "zmq.asyncio, stream"
    cells += [
        OneWay(ours, _ours("ours_async_peer"), "ours"),
        # With a longer queue, the subscriber would still receive messages long after the publisher has stopped.
        OneWay(zmq, _peer("zmq_async_peer"), settings={"queue": 1000}),
    ]
    goals.append(Goal("async for over a subscription, compared with zmq.asyncio", ours, (zmq,), at_least=100))
    for loop, bound in (("asyncio", 2), ("uvloop", 3)):
        mine, theirs = f"ours, one request at a time, {loop}", f"zmq, one request at a time, {loop}"
        cells += [
            RoundTrip(mine, _ours("ours_async_peer"), "ours", {"how": loop}),
            RoundTrip(theirs, _peer("zmq_async_peer"), settings={"how": loop}),
        ]
        text = f"request and response on {loop}, time compared with zmq.asyncio"
        goals.append(Goal(text, mine, (theirs,), "p50", at_most=1 / bound, unit="ns"))
    return Group(cells, goals)


def _elsewhere(group, goals):
    """Returns the first goals of a group, with their cells, in each placement other than that of the group."""
    placed = Group([], [])
    for placement in PLACEMENTS[1:]:
        for goal in group.goals[:goals]:
            names = {name: f"{name}, {placement.name}" for name in (goal.ours, *goal.peers)}
            placed.goals.append(
                replace(
                    goal,
                    text=f"{goal.text}, {placement.name}",
                    ours=names[goal.ours],
                    peers=tuple(names[peer] for peer in goal.peers),
                )
            )
            known = {cell.name for cell in placed.cells}
            placed.cells += [
                replace(group.cell(name), name=new, placement=placement)
                for name, new in names.items()
                if new not in known
            ]
    return placed


def _idle():
    core = "% of a core"
    idle = _ours("ours_idle")
    sync, asynchronous = "idle subscriber", "idle async subscriber"
    embedded = "idle embedded driver with a publication"
    ours, theirs = "idle aeronmd, defaults of C", "idle C driver, its defaults"
    defaults = {"AERON_THREADING_MODE": "DEDICATED"}
    return Group(
        [
            Idle(sync, idle, "ours", {"how": "sync"}),
            Idle(asynchronous, idle, "ours", {"how": "async"}),
            Idle(embedded, idle, None, {"how": "embedded"}),
            Idle(ours, None, "ours", driver_settings=defaults),
            Idle(theirs, None, "c", driver_settings=defaults),
        ],
        [
            *(Goal(f"{name}: CPU", name, None, "cpu", at_most=1, unit=core) for name in (sync, asynchronous, embedded)),
            Goal("idle aeronmd with C's defaults: CPU", ours, (theirs,), "cpu", at_most=1, unit=core),
            Goal(f"{embedded}: memory", embedded, None, "rss", at_most=40, unit="MiB"),
        ],
    )


IPC_GROUPS = {
    "native32": lambda: _native_one_way(32, 16),
    "native1k": lambda: _native_one_way(1024, 16),
    "native1k-4m": lambda: _native_one_way(1024, 4),
    "python32": _python_one_way,
    "large": _large,
    "roundtrip": _round_trips,
    "asyncio": _asyncio,
    "idle": _idle,
    "placed32": lambda: _elsewhere(_native_one_way(32, 16), 1),
    "placed1k": lambda: _elsewhere(_native_one_way(1024, 16), 1),
    "placedroundtrip": lambda: _elsewhere(_round_trips(), 4),
}

PARTS = {
    "ipc": Part("ipc", IPC_GROUPS, seconds=0.7, minutes=60),
    "udp": Part("udp", UDP_GROUPS, seconds=0.7, minutes=40),
    "archive": Part(
        "archive",
        ARCHIVE_GROUPS,
        seconds=1.0,
        minutes=30,
        versions=lambda: (toolchain.JAR,),
        missing=server.missing,
    ),
    "sbe": Part("sbe", SBE_GROUPS, seconds=0.7, minutes=5, versions=lambda: VERSIONS),
    "spark": Part(
        "spark",
        SPARK_GROUPS,
        seconds=1.0,
        minutes=30,
        versions=versions,
        missing=missing,
        runs_in_this_process=True,
    ),
    "kafka": Part(
        "kafka",
        KAFKA_GROUPS,
        seconds=1.0,
        minutes=15,
        versions=lambda: (*versions(("pyspark", "pyarrow")), *kafka_broker.VERSIONS),
        missing=lambda: missing() or kafka_broker.missing(),
        runs_in_this_process=True,
    ),
}
