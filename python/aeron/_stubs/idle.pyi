"""Idle strategies."""

from typing import Self, final

from typing_extensions import disjoint_base

@disjoint_base
class IdleStrategy:
    """The behaviour of a loop that finds no work.

    Use one strategy for each loop. Calling the object is the same as calling `idle`. Thread-safe.

    Example:
        ```python
        idle = aeron.BackoffIdleStrategy()
        while running:
            idle(subscription.poll(handler))
        ```
    """
    @staticmethod
    def parse(name: str, arguments: str | None = None) -> IdleStrategy:
        """Creates an idle strategy from its name and arguments.

        Name and arguments are texts, as in the driver's settings `AERON_*_IDLE_STRATEGY` and
        `AERON_*_IDLE_STRATEGY_INIT_ARGS`.

        Args:
            name: `spin`, `yield`, `backoff`, `sleep-ns`, `sleep-ms` or `noop`.
            arguments: Arguments of the strategy. `None` stands for its defaults.

        Returns:
            The strategy.

        Raises:
            ConfigurationError: If the name is not known, or the arguments are not valid.
        """
    def idle(self, work_count: int = 0) -> None:
        """Waits if there was no work, else resets the strategy.

        Args:
            work_count: The amount of work of the last duty cycle. If it is 0 or less, the call waits.
        """
    def reset(self) -> None:
        """Resets the strategy: the next wait is as short as the first wait."""
    def __call__(self, work_count: int = 0) -> None: ...
    @property
    def alias(self) -> str:
        """Short name of the strategy."""

@final
class BusySpinIdleStrategy(IdleStrategy):
    """Spins: the shortest wait, which occupies a core and keeps the GIL. Use one for each loop. Thread-safe."""
    def __new__(cls) -> Self: ...

@final
class YieldingIdleStrategy(IdleStrategy):
    """Yields to other threads, without sleeping. Use one for each loop. Thread-safe."""
    def __new__(cls) -> Self: ...

@final
class NoOpIdleStrategy(IdleStrategy):
    """Does nothing, and keeps the GIL. Use one for each loop. Thread-safe."""
    def __new__(cls) -> Self: ...

@final
class BackoffIdleStrategy(IdleStrategy):
    """Spins, then yields, then parks, each time for longer. After work, the strategy starts again with spins.

    Use one for each loop. Thread-safe.

    Args:
        max_spins: Number of spins before the first yield.
        max_yields: Number of yields before the first park.
        min_park_ns: Length of the first park, in nanoseconds. Each park is twice as long as the previous
            park.
        max_park_ns: Length of the longest park, in nanoseconds.
        max_idle_park_ns: Length of the longest park after a second without work, in nanoseconds. 0 stands
            for `max_park_ns`.
    """
    def __new__(
        cls,
        max_spins: int = 10,
        max_yields: int = 5,
        min_park_ns: int = 1000,
        max_park_ns: int = 1000000,
        max_idle_park_ns: int = 0,
    ) -> Self: ...

@final
class SleepingIdleStrategy(IdleStrategy):
    """Sleeps for nanoseconds. Use one for each loop. Thread-safe.

    Args:
        period_ns: Length of a sleep, in nanoseconds.
    """
    def __new__(cls, period_ns: int = 1000) -> Self: ...

@final
class SleepingMillisIdleStrategy(IdleStrategy):
    """Sleeps for milliseconds. Use one for each loop. Thread-safe.

    Args:
        period_ms: Length of a sleep, in milliseconds.
    """
    def __new__(cls, period_ms: int = 1) -> Self: ...
