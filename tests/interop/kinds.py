"""Combinations of clients and drivers in tests: one side is ours, the other is the real Aeron."""

import pytest

REAL = ("java", "c")
CLIENTS = (*REAL, "ours")

# (driver, client)
PAIRS = [("ours", client) for client in CLIENTS] + [(driver, "ours") for driver in REAL]

# (driver, publisher, subscriber), at least one of them ours
TRIPLES = [
    (driver, publisher, subscriber)
    for driver in (*REAL, "ours")
    for publisher in CLIENTS
    for subscriber in CLIENTS
    if "ours" in (driver, publisher, subscriber)
]

# (sending driver, receiving driver). Each driver has a client of the same kind.
WAYS = [("ours", real) for real in REAL] + [(real, "ours") for real in REAL]

each_way = pytest.mark.parametrize(("sender", "receiver"), WAYS, ids=["-to-".join(way) for way in WAYS])
each_pair = pytest.mark.parametrize(("driver", "client"), PAIRS, ids=map("-".join, PAIRS))
each_triple = pytest.mark.parametrize(("driver", "publisher", "subscriber"), TRIPLES, ids=map("-".join, TRIPLES))
each_kind = pytest.mark.parametrize("exclusive", [False, True], ids=["concurrent", "exclusive"])

# (archive, driver). Tests with the real archive check the test itself.
ARCHIVES = [("ours", "ours"), ("ours", "c"), ("java", "ours")]
each_archive = pytest.mark.parametrize("kinds", ARCHIVES, ids=["-on-".join(kinds) for kinds in ARCHIVES])
# For tests that do not depend on the driver. They start fewer processes.
ON_OURS = [kinds for kinds in ARCHIVES if kinds[1] == "ours"]
each_archive_on_ours = pytest.mark.parametrize("kinds", ON_OURS, ids=["-on-".join(kinds) for kinds in ON_OURS])
