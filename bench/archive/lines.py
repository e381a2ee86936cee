"""Cells and goals of the benchmarks of the archive. Most goals compare our archive with the real one."""

from bench.archive.catalogs import IdleArchive, List, Start, StreamsAtRest
from bench.archive.following import LiveEdge
from bench.archive.streams import DISK, Files, PythonRead, RecordAndReplay, Recorded
from bench.archive.upkeep import Upkeep
from bench.goals import Goal, Group
from bench.measure import Idle

_UDP = "aeron:udp?endpoint=localhost:{port}"
_KIB = "ns/KiB"
_CORE = "% of a core"


def _pair(make, what, **settings):
    """Returns two cells with the same settings: one for our archive and one for the real archive."""
    return make(f"ours, {what}", "ours", **settings), make(f"Java archive, {what}", "java", **settings)


def _goal(text, cells, metric="rate", **bound):
    ours, peer = cells
    return Goal(text, ours.name, (peer.name,), metric, **bound)


def _small():
    ipc = _pair(RecordAndReplay, "IPC, 32 B", length=32)
    udp = _pair(RecordAndReplay, "UDP, 32 B", length=32, channel=_UDP, replays=False)
    goals = []
    for what, pair in (("IPC", ipc), ("UDP", udp)):
        goals += [
            _goal(f"record {what}, 32 B", pair, at_least=1.1),
            _goal(f"record {what}, 32 B: CPU for a KiB", pair, "record cost", at_most=0.9, unit=_KIB),
        ]
    return Group([*ipc, *udp], goals + _replay_goals("32 B", ipc))


def _replay_goals(what, pair):
    return [
        _goal(f"replay IPC, {what}", pair, "replayed", at_least=1.3),
        _goal(f"replay IPC, {what}: CPU for a KiB", pair, "replay cost", at_most=0.7, unit=_KIB),
        Goal(f"replay IPC, {what}: first message", pair[0].name, None, "first message", at_most=20, unit="ms"),
    ]


def _large(place, parent, rate, cost):
    pair = _pair(RecordAndReplay, f"IPC, 1 KiB, {place}", length=1024, parent=parent)
    bare = Files(f"bare files, 1 KiB, {place}", 1024, parent)
    goals = [
        _goal(f"record 1 KiB, {place}", pair, at_least=rate),
        _goal(f"record 1 KiB, {place}, compared with bare files", (pair[0], bare), at_least=0.85, kind="limit"),
        _goal(f"record 1 KiB, {place}: CPU for a KiB", pair, "record cost", at_most=cost, unit=_KIB),
    ]
    return Group([*pair, bare], goals + _replay_goals(f"1 KiB, {place}", pair))


def _from_python():
    cells = [
        PythonRead("replay in batches, Python, 32 B", "replay"),
        PythonRead("segment files, Python, 32 B", "files"),
    ]
    goal = _goal("replay from Python, compared with the segment files", cells, at_least=0.8)
    return Group(cells, [goal])


def _live_edge():
    plain = LiveEdge("plain subscription, Python, 32 B", "subscription")
    persistent = LiveEdge("live persistent subscription, Python, 32 B", "persistent")
    follower = LiveEdge("live follower, Python, 32 B", "follow")
    goals = [
        _goal("live persistent subscription, compared with a plain one", (persistent, plain), at_least=0.9),
        _goal("live follower, compared with a plain subscription", (follower, plain), at_least=0.9),
    ]
    return Group([plain, persistent, follower], goals)


def _upkeep():
    cells, goals = [], []
    for length, what in ((32, "32 B"), (1024, "1 KiB")):
        on = Upkeep(f"with retention, index and scrub, {what}", length, is_on=True)
        off = Upkeep(f"without retention, index and scrub, {what}", length, is_on=False)
        cells += [on, off]
        text = f"retention, index and scrub, {what}"
        goals += [
            _goal(f"{text}: rate of recording", (on, off), at_least=0.95),
            _goal(f"{text}: CPU for a KiB", (on, off), "record cost", at_most=1.05, unit=_KIB),
        ]
    return Group(cells, goals)


def _latency():
    pair = _pair(Recorded, "offer to recorded, 2,000/s")
    return Group(list(pair), [_goal("offer to recorded, p50", pair, "p50", at_most=1, unit="ns")])


def _start():
    empty, stopped = _pair(Start, "start, empty"), _pair(Start, "start, 100,000 stopped", state="stopped")
    recover = _pair(Start, "start, 100,000 to recover, /dev/shm", state="to recover")
    on_disk = _pair(Start, "start, 100,000 to recover, disk", state="to recover", parent=DISK)
    text = "start time of the archive minus that of aeronmd"
    goals = [
        Goal(f"{text}, no recordings", empty[0].name, None, "over driver", at_most=10, unit="ms"),
        Goal(f"{text}, 100,000 stopped recordings", stopped[0].name, None, "over driver", at_most=50, unit="ms"),
        _goal("start, 100,000 to recover, /dev/shm", recover, "start", at_most=1 / 5, unit="ms"),
        _goal("start, 100,000 to recover, disk", on_disk, "start", at_most=1 / 3, unit="ms"),
    ]
    return Group([*empty, *stopped, *recover, *on_disk], goals)


def _list():
    short = _pair(List, "100,000 to the Java client, 64 KiB terms", response_term="64k")
    long = _pair(List, "100,000 to the Java client, 4 MiB terms", response_term="4m")
    arrow = List("100,000 to our client as Arrow", "ours", None)
    goals = [
        _goal("list 100,000, 64 KiB terms", short, "listing", at_most=1 / 5, unit="ms"),
        _goal("list 100,000, 4 MiB terms", long, "listing", at_most=1, unit="ms"),
        Goal("list 100,000 to Arrow", arrow.name, None, "listing", at_most=150, unit="ms"),
    ]
    return Group([*short, *long, arrow], goals)


def _idle():
    empty = _pair(IdleArchive, "idle")
    many = _pair(IdleArchive, "idle, 100,000 recordings", has_many=True)
    recording = _pair(StreamsAtRest, "idle, a client and a recording")
    driver = Idle("aeronmd beside it", None, "ours")
    goals = [
        _goal("idle archive: CPU", empty, "cpu", at_most=0.5, unit=_CORE),
        _goal("idle archive: memory, compared with the Java archive", empty, "rss", at_most=0.5, unit="MiB"),
        _goal("idle archive: memory, compared with aeronmd", (empty[0], driver), "rss", at_most=1.2, unit="MiB"),
        Goal("100,000 recordings: memory", many[0].name, None, "rss", at_most=40, unit="MiB"),
        _goal("idle archive with a recording: CPU", recording, "cpu", at_most=0.5, unit=_CORE),
    ]
    return Group([*empty, *many, *recording, driver], goals)


ARCHIVE_GROUPS = {
    "archive32": _small,
    "archive1k": lambda: _large("/dev/shm", "/dev/shm", 1.0, 0.9),
    "archive1k-disk": lambda: _large("disk", DISK, 1.3, 0.8),
    "archive-python": _from_python,
    "archive-live": _live_edge,
    "archive-upkeep": _upkeep,
    "archive-latency": _latency,
    "archive-start": _start,
    "archive-list": _list,
    "archive-idle": _idle,
}
