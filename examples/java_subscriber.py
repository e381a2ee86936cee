"""Publishes to a subscriber in Java: Aeron's own sample `BasicSubscriber`, on the driver of this program.

python examples/java_subscriber.py aeron-all-1.51.0.jar

The jar is io.aeron:aeron-all from Maven Central. The sample needs a JDK. A client in C attaches to the
driver's directory in the same way.
"""

from __future__ import annotations

import subprocess
import sys

import aeron

CHANNEL = "aeron:ipc"
STREAM_ID = 1001


def java_subscriber(jar: str, directory: str) -> subprocess.Popen[str]:
    """Starts the sample, which prints each message that it receives."""
    properties = {"aeron.dir": directory, "aeron.sample.channel": CHANNEL, "aeron.sample.streamId": STREAM_ID}
    command = ["java", "--add-opens", "java.base/jdk.internal.misc=ALL-UNNAMED"]
    command += [f"-D{name}={value}" for name, value in properties.items()]
    command += ["-cp", jar, "io.aeron.samples.BasicSubscriber"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def main(jar: str) -> None:
    with aeron.MediaDriver() as driver, aeron.connect(driver) as client:
        publication = client.add_publication(CHANNEL, STREAM_ID)
        with java_subscriber(jar, driver.dir) as java:
            try:
                publication.wait_connected(timeout=120)
                for number in range(3):
                    publication.publish(b"message %d from Python" % number, timeout=120)
                assert java.stdout is not None
                for line in java.stdout:
                    print(f"java: {line}", end="")
                    if "message 2" in line:
                        break
            finally:
                java.terminate()


if __name__ == "__main__":
    main(sys.argv[1])
