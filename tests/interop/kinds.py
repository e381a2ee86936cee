"""Combinations of programs that run together in a test.

`ours` is a program of this project. `java` and `c` are programs of the real Aeron. In each combination, at least one
program is ours.
"""

import pytest

REAL = ("java", "c")
CLIENTS = (*REAL, "ours")

# (driver, client)
PAIRS = [("ours", client) for client in CLIENTS] + [(driver, "ours") for driver in REAL]

# (driver, publisher, subscriber)
TRIPLES = [
    (driver, publisher, subscriber)
    for driver in (*REAL, "ours")
    for publisher in CLIENTS
    for subscriber in CLIENTS
    if "ours" in (driver, publisher, subscriber)
]

# (sending driver, receiving driver). The clients of each driver come from the same project and language as the driver.
WAYS = [("ours", real) for real in REAL] + [(real, "ours") for real in REAL]

each_way = pytest.mark.parametrize(("sender", "receiver"), WAYS, ids=["-to-".join(way) for way in WAYS])
each_pair = pytest.mark.parametrize(("driver", "client"), PAIRS, ids=map("-".join, PAIRS))
each_triple = pytest.mark.parametrize(("driver", "publisher", "subscriber"), TRIPLES, ids=map("-".join, TRIPLES))
each_kind = pytest.mark.parametrize("exclusive", [False, True], ids=["concurrent", "exclusive"])

# (archive, driver). The runs with the real archive show that the tests expect Aeron's behaviour.
ARCHIVES = [("ours", "ours"), ("ours", "c"), ("java", "ours")]
each_archive = pytest.mark.parametrize("kinds", ARCHIVES, ids=["-on-".join(kinds) for kinds in ARCHIVES])
# The pairs with our driver, for tests that do not depend on the driver. These tests start fewer processes.
ON_OURS = [kinds for kinds in ARCHIVES if kinds[1] == "ours"]
each_archive_on_ours = pytest.mark.parametrize("kinds", ON_OURS, ids=["-on-".join(kinds) for kinds in ON_OURS])
