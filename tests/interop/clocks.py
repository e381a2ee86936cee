"""Processes whose wall clock a test sets while they run, by Debian's library libfaketime.

The clock of the machine stays as it is. The monotonic clock of the processes is the true one.
"""

import glob
import os
from pathlib import Path

from interop import toolchain

_LIBRARIES = "/usr/lib/*/faketime/libfaketimeMT.so.1"


def library():
    """Returns the path of libfaketime."""
    found = glob.glob(_LIBRARIES)
    if not found:
        raise toolchain.Unavailable("libfaketime is not installed: `make faketime` installs it, or says how")
    return found[0]


class Clock:
    """The wall clock of one or more processes."""

    def __init__(self, file):
        self._file = Path(file)
        self.set(0)

    def set(self, seconds):
        """Sets the clock to the true time plus `seconds`. Each process uses it within a second."""
        new = self._file.with_suffix(".new")
        new.write_text(f"{seconds:+d}\n")
        os.replace(new, self._file)

    def environment(self):
        """Returns the variables for processes that use this clock."""
        return {
            "LD_PRELOAD": library(),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            # The library reads the file once a second.
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
