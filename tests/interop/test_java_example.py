"""Test of the example with a subscriber in Java, which runs with the real Aeron's jar."""

from examples import run_example
from interop import toolchain

_TIMEOUT_S = 120


def test_the_java_sample_receives_the_messages_of_the_example():
    printed = run_example("java_subscriber.py", toolchain.jar(), timeout=_TIMEOUT_S)
    assert [line.partition("<<")[2] for line in printed.splitlines() if "<<" in line] == [
        f"message {number} from Python>>" for number in range(3)
    ]
