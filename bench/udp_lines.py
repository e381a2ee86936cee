"""Cells and goals of the benchmarks over UDP. They compare our driver with the real C driver, mostly with our native
client."""

from bench import environments as env
from bench.goals import Goal, Group
from bench.udp import EmbeddedRoundTrip, UdpOneWay, UdpRoundTrip, multicast, several_destinations

_YIELDS = {
    f"AERON_{agent}_IDLE_STRATEGY": "yield" for agent in ("CONDUCTOR", "SENDER", "RECEIVER", "SHARED", "SHAREDNETWORK")
}
# The receiver window must be much smaller than the part of a socket buffer that the kernel leaves for data. Otherwise
# the C driver's rate collapses.
TUNED = {
    **_YIELDS,
    "AERON_THREADING_MODE": "DEDICATED",
    "AERON_TERM_BUFFER_LENGTH": "16m",
    "AERON_SOCKET_SO_SNDBUF": "4m",
    "AERON_SOCKET_SO_RCVBUF": "4m",
    "AERON_RCV_INITIAL_WINDOW_LENGTH": "2m",
    "AERON_SENDER_IO_VECTOR_CAPACITY": "16",
    "AERON_RECEIVER_IO_VECTOR_CAPACITY": "16",
    "AERON_NETWORK_PUBLICATION_MAX_MESSAGES_PER_SEND": "16",
}
STOCK = {"AERON_THREADING_MODE": "DEDICATED", "AERON_TERM_BUFFER_LENGTH": "16m"}
PLAIN = {**TUNED, "AERON_UDP_GSO": "false", "AERON_UDP_GRO": "false"}
LARGEST_MTU = {**TUNED, "AERON_MTU_LENGTH": "65504"}
LOSS = {
    **TUNED,
    "AERON_UDP_CHANNEL_INCOMING_INTERCEPTORS": "loss",
    "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_LOSS_ARGS": "rate=0.01|recv-msg-mask=0x2",
}
DEDICATED = {**_YIELDS, "AERON_THREADING_MODE": "DEDICATED"}
SHARED = {**_YIELDS, "AERON_THREADING_MODE": "SHARED"}
INVOKER = {"AERON_THREADING_MODE": "INVOKER"}

SIZES = {
    "32 B": {"length": 32},
    "1 KiB": {"length": 1024},
    "32 to 256 B": {"length": 32, "max_length": 256},
}
CLIENTS = {"idle": "backoff"}
COST = "CPU s/M"


def _one_way(name, drivers, driver_settings, size, **more):
    return UdpOneWay(name, drivers, driver_settings, {**CLIENTS, **SIZES[size]}, **more)


def _both(what, driver_settings, size, **more):
    """Returns two cells with equal settings: one with our driver and one with the C driver."""
    return [
        _one_way(f"{who}, {what}, {size}", (kind,), driver_settings, size, **more)
        for who, kind in (("ours", "ours"), ("C driver", "c"))
    ]


def _throughput(size, at_least):
    ours, c_driver = _both("UDP", TUNED, size)
    stock = _both("UDP as it comes", STOCK, size)
    cells = [ours, c_driver, *stock]
    goals = [
        Goal(f"UDP {size}", ours.name, (c_driver.name, stock[1].name), at_least=at_least),
        Goal(f"UDP {size}, CPU seconds per million", ours.name, (c_driver.name,), "cost", at_most=0.5, unit=COST),
    ]
    if "max_length" not in SIZES[size]:
        plain = _one_way(f"ours, UDP without GSO and GRO, {size}", ("ours",), PLAIN, size)
        cells.append(plain)
        goals.append(Goal(f"UDP {size}, GSO and GRO off", plain.name, (c_driver.name,), at_least=1.1))
    return Group(cells, goals)


def _largest_mtu():
    cells, goals = [], []
    for size in ("32 B", "1 KiB"):
        ours, c_driver = _both("UDP, MTU 65504", LARGEST_MTU, size)
        cells += [ours, c_driver]
        goals.append(Goal(f"UDP {size}, MTU 65504", ours.name, (c_driver.name,), at_least=1.1))
    return Group(cells, goals)


def _mixed_ends():
    size = "32 B"
    real, sending, receiving = (
        _one_way(f"{name}, a driver at each end, {size}", drivers, TUNED, size)
        for name, drivers in (("C to C", ("c", "c")), ("ours to C", ("ours", "c")), ("C to ours", ("c", "ours")))
    )
    goal = Goal("UDP 32 B, our driver sends to the real one", sending.name, (real.name,), at_least=1.5)
    return Group([real, sending, receiving], [goal])


def _fan_out():
    cells, goals = [], []
    for what, channels in (("multicast", multicast), ("MDC", several_destinations)):
        ours, c_driver = _both(f"1 to 4 by {what}", TUNED, "32 B", channels=channels)
        cells += [ours, c_driver]
        goals.append(Goal(f"1 to 4 subscribers by {what}", ours.name, (c_driver.name,), at_least=1))
    return Group(cells, goals)


def _lossy():
    ours, c_driver = _both("UDP, 1 % loss", LOSS, "32 B")
    goal = Goal("UDP 32 B, goodput at 1 % loss", ours.name, (c_driver.name,), at_least=1)
    return Group([ours, c_driver], [goal])


def _round_trips():
    cells, goals = [], []
    shared = {}
    for mode, settings in (("SHARED", SHARED), ("DEDICATED", DEDICATED)):
        ours, c_driver = (
            UdpRoundTrip(f"{who}, UDP round trip, {mode}", (kind,), settings, {"idle": "yield"})
            for who, kind in (("ours", "ours"), ("C driver", "c"))
        )
        shared[mode] = c_driver.name
        cells += [ours, c_driver]
        for metric, bound in (("p50", 0.9), ("p99", 1.1)):
            goals.append(_slower(f"UDP round trip, {mode}", ours, c_driver.name, metric, bound))
    invoked = EmbeddedRoundTrip("ours, UDP round trip, INVOKER", env.native, "invoked", INVOKER, {"idle": "spin"})
    c_invoked = EmbeddedRoundTrip("C driver, UDP round trip, INVOKER", env.c_client, "invoked", INVOKER)
    embedded = EmbeddedRoundTrip("ours, UDP round trip, embedded", env.native, "threads", {}, {"idle": "yield"})
    cells += [invoked, c_invoked, embedded]
    goals.append(_slower("UDP round trip, INVOKER", invoked, c_invoked.name, "p50", 1))
    text = "UDP round trip, embedded as by default, compared with C's SHARED"
    goals.append(_slower(text, embedded, shared["SHARED"], "p50", 0.7))
    return Group(cells, goals)


def _slower(text, ours, peer, metric, bound):
    return Goal(f"{text}, {metric}", ours.name, (peer,), metric, at_most=bound, unit="ns")


def _between_hosts():
    cells, goals = [], []
    for size, bound in (("32 B", 6), ("1 KiB", 5)):
        ours, c_driver = (
            _one_way(f"{who}, between two hosts, {size}", (kind, kind), TUNED, size, between_hosts=True)
            for who, kind in (("ours", "ours"), ("C driver", "c"))
        )
        cells += [ours, c_driver]
        goals.append(Goal(f"UDP between two hosts, {size}", ours.name, (c_driver.name,), at_least=bound))
    ours, c_driver = (
        UdpRoundTrip(f"{who}, round trip between two hosts, SHARED", (kind, kind), SHARED, {"idle": "yield"}, True)
        for who, kind in (("ours", "ours"), ("C driver", "c"))
    )
    cells += [ours, c_driver]
    for metric, bound in (("p50", 0.9), ("p99", 1.1)):
        goals.append(_slower("UDP round trip between two hosts, SHARED", ours, c_driver.name, metric, bound))
    return Group(cells, goals)


UDP_GROUPS = {
    "udp32": lambda: _throughput("32 B", 6),
    "udp1k": lambda: _throughput("1 KiB", 5),
    "udpmixed": lambda: _throughput("32 to 256 B", 1.3),
    "udpmtu": _largest_mtu,
    "udpends": _mixed_ends,
    "udpfanout": _fan_out,
    "udploss": _lossy,
    "udproundtrip": _round_trips,
    "udphosts": _between_hosts,
}
