"""Reads the system counters of a driver through a client."""

BYTES_SENT, BYTES_RECEIVED = 0, 1
NAKS_SENT, NAKS_RECEIVED = 5, 6
RETRANSMITS_SENT, RETRANSMITTED_BYTES = 11, 36
UNDER_RUNS, OVER_RUNS, INVALID_PACKETS, ERRORS, SHORT_SENDS = 12, 13, 14, 15, 16
LOSS_GAP_FILLS, RESOLUTION_CHANGES = 23, 25


def counter(peer, id):
    """Returns the value of a counter of the peer's driver."""
    return next(counter["value"] for counter in peer.counters() if counter["id"] == id)


def counters_of(peer, type):
    """Returns the counters of one type that the peer's driver has."""
    return [counter for counter in peer.counters() if counter["type"] == type]
