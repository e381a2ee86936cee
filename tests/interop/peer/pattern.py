"""Content of test messages. Message n begins with n in eight bytes. Each later byte is (n + index) mod 256."""

import struct

_LONGEST = 17 * 1024 * 1024
_RAMP = bytes(range(256)) * (_LONGEST // 256 + 1)


def message(number, length):
    """Returns the bytes of message `number`."""
    start = number & 0xFF
    head = struct.pack("<q", number)[:length]
    return head + _RAMP[start + len(head) : start + length]
