"""Idle strategies."""

from typing import Self, final

from typing_extensions import disjoint_base

@disjoint_base
class IdleStrategy:
    @staticmethod
    def parse(name: str, arguments: str | None = None) -> IdleStrategy: ...
    def idle(self, work_count: int = 0) -> None: ...
    def reset(self) -> None: ...
    def __call__(self, work_count: int = 0) -> None: ...
    @property
    def alias(self) -> str: ...

@final
class BusySpinIdleStrategy(IdleStrategy):
    def __new__(cls) -> Self: ...

@final
class YieldingIdleStrategy(IdleStrategy):
    def __new__(cls) -> Self: ...

@final
class NoOpIdleStrategy(IdleStrategy):
    def __new__(cls) -> Self: ...

@final
class BackoffIdleStrategy(IdleStrategy):
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
    def __new__(cls, period_ns: int = 1000) -> Self: ...

@final
class SleepingMillisIdleStrategy(IdleStrategy):
    def __new__(cls, period_ms: int = 1) -> Self: ...
