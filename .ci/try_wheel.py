"""Tries an installed wheel: an embedded driver, a publication and a subscription, and one message between them.

The wheel must have no test hooks.
"""

import importlib
import time
from pathlib import Path

import aeron
import aeron._aeron

CHANNEL = "aeron:ipc"
STREAM_ID = 1001

received = []
with aeron.MediaDriver() as driver, aeron.connect(driver) as client:
    subscription = client.add_subscription(CHANNEL, STREAM_ID)
    publication = client.add_publication(CHANNEL, STREAM_ID)
    publication.publish(b"hello", timeout=10)
    deadline = time.monotonic() + 10
    while not received and time.monotonic() < deadline:
        subscription.poll(lambda payload, header: received.append(payload), 1)
assert received == [b"hello"], received
module = Path(aeron._aeron.__file__).read_bytes()
assert b"AERON_PIPELINE_PAUSE" not in module, "the wheel has test hooks: build it without the feature test-hooks"
importlib.import_module("pyspark_aeron")  # Spark's entry point can be imported, with or without PySpark
print(f"aeron {aeron.__version__} works")
