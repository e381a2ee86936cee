"""Waits that no clock ends while there is progress: only a standstill of minutes is an error."""

from __future__ import annotations

import time
from collections.abc import Callable

STANDSTILL_S = 300.0
"""Time without progress after which the demo fails, in seconds. It is long because a busy machine may need a minute for
Spark's first batch."""

_LOOK_S = 1.0
_SAY_S = 15.0


class Patience:
    """One wait. Call `look` repeatedly until the condition is true. One thread at a time may use this object.

    Args:
        what: The end of the sentence "waiting until ...", for errors and for `say`.
        marks: Returns a value that changes if there is progress. It is called about once a second.
        say: Is called with a line about every 15 seconds while the wait continues.
        clock: Returns the time in seconds.
    """

    def __init__(
        self,
        what: str,
        marks: Callable[[], object] = lambda: None,
        *,
        say: Callable[[str], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._what = what
        self._marks = marks
        self._say = say
        self._clock = clock
        self._begin = self._looked = self._moved = self._said = clock()
        self._last = marks()

    def look(self) -> None:
        """Notes progress, and says from time to time what the wait is for.

        Raises:
            RuntimeError: there was no progress for `STANDSTILL_S`.
        """
        now = self._clock()
        if now - self._looked < _LOOK_S:
            return
        self._looked = now
        marks = self._marks()
        if marks != self._last:
            self._last, self._moved = marks, now
        elif now - self._moved > STANDSTILL_S:
            raise RuntimeError(f"no progress for {STANDSTILL_S:.0f} s while waiting until {self._what}")
        if now - self._said >= _SAY_S:
            self._said = now
            self._say(f"waiting until {self._what}, for {now - self._begin:.0f} s so far")
