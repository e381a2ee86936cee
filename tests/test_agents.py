"""Tests of agents and of the classes that run agents: runners, invokers, composites, idle strategies and the shutdown
barrier."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from typing import Any

import pytest
from tests.conftest import eventually

import aeron


class Recorder(aeron.Agent):
    """Agent that records the calls of its methods. `do_work` returns or raises each entry of `work`, and then returns
    0."""

    def __init__(self, *work: object, start: Exception | None = None, close: Exception | None = None) -> None:
        self.calls: list[str] = []
        self.work, self.start_error, self.close_error = list(work), start, close

    def on_start(self) -> None:
        self.calls.append("start")
        if self.start_error:
            raise self.start_error

    def do_work(self) -> int:
        self.calls.append("work")
        answer = self.work.pop(0) if self.work else 0
        if isinstance(answer, Exception):
            raise answer
        return int(answer)  # type: ignore[call-overload]

    def on_close(self) -> None:
        self.calls.append("close")
        if self.close_error:
            raise self.close_error


IDLE = aeron.SleepingIdleStrategy(10_000)


def test_a_runner_starts_works_and_closes_once() -> None:
    """03-117"""
    agent = Recorder()
    with aeron.AgentRunner(agent, IDLE) as runner:
        eventually(lambda: len(agent.calls) > 3)
        assert runner.thread is not None
        assert runner.thread.name == "Recorder"
        with pytest.raises(aeron.AeronError):
            runner.start()
    runner.close()
    assert runner.is_closed
    assert agent.calls[0] == "start"
    assert agent.calls[-1] == "close"
    assert agent.calls.count("start") == agent.calls.count("close") == 1
    before = list(agent.calls)
    runner.run()
    assert agent.calls == before, "a closed runner ran its agent again"


def test_a_runner_counts_errors_and_continues_and_termination_ends_it_and_is_not_counted(client: aeron.Aeron) -> None:
    """03-117, 03-124: the runner counts an error before it calls the handler"""
    errors: list[tuple[str, int]] = []
    counter = client.add_counter(1001, "errors")
    agent = Recorder(ValueError("one"), 1, aeron.AgentTerminationError("enough"))
    aeron.AgentRunner(agent, IDLE, lambda error: errors.append((str(error), counter.value)), counter).run()
    assert errors == [("one", 1), ("enough", 1)]
    assert counter.value == 1
    assert agent.calls == ["start", "work", "work", "work", "close"]


def test_an_agent_that_fails_to_start_does_no_work_and_an_error_of_its_close_is_reported() -> None:
    """03-117"""
    errors: list[Exception] = []
    agent = Recorder(start=ValueError("start"), close=ValueError("close"))
    aeron.AgentRunner(agent, IDLE, errors.append).run()
    assert agent.calls == ["start", "close"]
    assert [str(error) for error in errors] == ["start", "close"]


def test_closing_a_runner_that_never_ran_closes_the_agent() -> None:
    """03-117"""
    agent = Recorder()
    runner = aeron.AgentRunner(agent, IDLE)
    runner.close()
    assert agent.calls == ["close"]
    assert runner.is_closed


def test_an_agent_that_does_not_end_is_reported() -> None:
    working, go_on, reported = threading.Event(), threading.Event(), []

    class Stuck(aeron.Agent):
        def do_work(self) -> int:
            working.set()
            go_on.wait(30)
            return 1

    def report(thread: threading.Thread) -> None:
        reported.append(thread.name)
        go_on.set()
        # Without this wait, `close` would report the thread again if the thread ends later than the report interval.
        thread.join(30)

    runner = aeron.AgentRunner(Stuck(), IDLE).start()
    assert working.wait(30)
    runner.close(0.05, report)
    assert reported == ["Stuck"]


def test_an_agent_class_without_do_work_cannot_be_instantiated() -> None:
    class Idler(aeron.Agent):
        pass

    with pytest.raises(TypeError, match="do_work"):
        Idler()  # type: ignore[abstract]


def test_an_invoker_runs_when_it_is_invoked() -> None:
    """03-118"""
    errors: list[Exception] = []
    agent = Recorder(5, ValueError("one"), aeron.AgentTerminationError())
    invoker = aeron.AgentInvoker(agent, errors.append)
    assert invoker.invoke() == 0
    invoker.start()
    assert invoker.is_running
    assert [invoker.invoke() for _ in range(4)] == [5, 0, 0, 0]
    assert not invoker.is_running
    assert invoker.is_closed
    invoker.close()
    assert agent.calls == ["start", "work", "work", "work", "close"]
    assert len(errors) == 2

    failing = Recorder(start=ValueError())
    with aeron.AgentInvoker(failing, errors.append) as invoker:
        assert invoker.is_closed
    assert failing.calls == ["start", "close"]


def test_a_composite_continues_with_the_agent_after_the_failed_one() -> None:
    """03-119"""
    first, second, third = Recorder(1, 1), Recorder(ValueError(), 10), Recorder(100, 100)
    composite = aeron.CompositeAgent(first, second, third)
    assert composite.role_name == "[Recorder,Recorder,Recorder]"
    composite.on_start()
    with pytest.raises(ValueError):  # noqa: PT011
        composite.do_work()
    assert composite.do_work() == 100
    assert composite.do_work() == 1 + 10 + 100
    composite.on_close()
    failing = aeron.CompositeAgent(Recorder(close=ValueError("a")), Recorder(), Recorder(close=ValueError("b")))
    with pytest.raises(ExceptionGroup) as caught:
        failing.on_close()
    assert [str(error) for error in caught.value.exceptions] == ["a", "b"]
    with pytest.raises(ValueError, match="at least one"):
        aeron.CompositeAgent()


def test_agents_join_and_leave_a_dynamic_composite() -> None:
    """03-120"""
    first, second = Recorder(1, 1, 1), Recorder(10, 10)
    composite = aeron.DynamicCompositeAgent("all", first)
    assert composite.status == "INIT"
    with pytest.raises(aeron.AeronError, match="INIT"):
        composite.try_add(second)
    composite.on_start()
    assert composite.try_add(second)
    assert not composite.try_add(Recorder())
    assert not composite.has_add_completed
    assert composite.do_work() == 11
    assert composite.has_add_completed
    assert composite.try_remove(first)
    assert not composite.try_remove(second)
    assert composite.do_work() == 10
    assert composite.has_remove_completed
    assert first.calls[-1] == "close"
    assert composite.try_add(Recorder(start=ValueError("start")))
    with pytest.raises(ValueError, match="start"):
        composite.do_work()
    composite.on_close()
    assert composite.status == "CLOSED"
    assert second.calls[-1] == "close"
    with pytest.raises(aeron.AeronError, match="CLOSED"):
        composite.try_remove(second)


@pytest.mark.parametrize(
    ("strategy", "alias"),
    [
        (aeron.BusySpinIdleStrategy(), "spin"),
        (aeron.YieldingIdleStrategy(), "yield"),
        (aeron.NoOpIdleStrategy(), "noop"),
        (aeron.BackoffIdleStrategy(), "backoff"),
        (aeron.BackoffIdleStrategy(max_spins=1, max_yields=1, min_park_ns=1000, max_park_ns=2000), "backoff"),
        (aeron.SleepingIdleStrategy(1000), "sleep-ns"),
        (aeron.SleepingMillisIdleStrategy(1), "sleep-ms"),
        (aeron.IdleStrategy.parse("backoff", "1-1-1us-1ms"), "backoff"),
    ],
)
def test_idle_strategies_have_their_alias_and_can_idle(strategy: aeron.IdleStrategy, alias: str) -> None:
    """03-121"""
    assert isinstance(strategy, aeron.IdleStrategy)
    assert strategy.alias == alias
    for _ in range(30):
        strategy.idle()
        strategy.idle(0)
        strategy()
    strategy.idle(1)
    strategy.reset()
    assert alias in repr(strategy)


def test_unknown_idle_strategies_and_negative_durations_are_refused() -> None:
    with pytest.raises(aeron.ConfigurationError):
        aeron.IdleStrategy.parse("no-such-strategy")
    with pytest.raises(OverflowError):
        aeron.SleepingIdleStrategy(-1)


def test_two_threads_may_share_an_idle_strategy() -> None:
    strategy = aeron.SleepingMillisIdleStrategy(1)
    threads = [threading.Thread(target=lambda: [strategy.idle() for _ in range(50)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()


def test_a_barrier_wakes_all_waiting_threads_and_calls_its_handler_once() -> None:
    """03-122"""
    calls = []
    with aeron.ShutdownSignalBarrier(lambda: calls.append(1)) as barrier:
        assert not barrier.wait(0.01)
        timer = threading.Timer(0.05, aeron.ShutdownSignalBarrier.signal_all)
        timer.start()
        assert barrier.wait(30)
        barrier.signal()
        assert barrier.is_signalled
        # The timer's thread wakes the waiting threads before it calls the handler.
        timer.join(30)
    assert calls == [1]


def test_a_signal_wakes_the_barrier_and_the_program_ends_cleanly() -> None:
    """03-122"""
    code = (
        "import aeron\n"
        "with aeron.ShutdownSignalBarrier() as barrier:\n"
        "    print('ready', flush=True)\n"
        "    barrier.wait()\n"
        "    print('in order', flush=True)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    os.kill(process.pid, signal.SIGTERM)
    assert process.communicate(timeout=10)[0] == "in order\n"
    assert process.returncode == 0


def closed_on_another_thread(barrier: aeron.ShutdownSignalBarrier) -> None:
    thread = threading.Thread(target=barrier.close)
    thread.start()
    thread.join(30)


def test_the_next_barrier_restores_the_signal_handlers_that_another_thread_could_not_restore() -> None:
    former = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    closed_on_another_thread(aeron.ShutdownSignalBarrier())
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with aeron.ShutdownSignalBarrier() as barrier:
        os.kill(os.getpid(), signal.SIGTERM)
        assert barrier.wait(30)
    assert signal.getsignal(signal.SIGINT) == former[0]
    # The handler that the program has installed in the meantime stays.
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
    signal.signal(signal.SIGTERM, former[1])


def test_a_signal_after_the_close_on_another_thread_has_its_former_effect() -> None:
    seen: list[int] = []
    former = signal.signal(signal.SIGINT, lambda number, _: seen.append(number))
    own = signal.getsignal(signal.SIGINT)
    try:
        closed_on_another_thread(aeron.ShutdownSignalBarrier())
        os.kill(os.getpid(), signal.SIGINT)
        eventually(lambda: seen == [signal.SIGINT])
        assert signal.getsignal(signal.SIGINT) == own
    finally:
        signal.signal(signal.SIGINT, former)


def test_a_handler_that_calls_the_barriers_handler_is_called_once_for_each_signal_after_the_close() -> None:
    seen: list[int] = []
    former = signal.getsignal(signal.SIGTERM)
    try:
        with aeron.ShutdownSignalBarrier():
            chained: Any = signal.getsignal(signal.SIGTERM)

            def own(number: int, frame: Any) -> None:
                seen.append(number)
                chained(number, frame)

            signal.signal(signal.SIGTERM, own)
        os.kill(os.getpid(), signal.SIGTERM)
        eventually(lambda: seen == [signal.SIGTERM])
        assert signal.getsignal(signal.SIGTERM) == own
    finally:
        signal.signal(signal.SIGTERM, former)


def test_a_signal_ends_a_program_without_open_barriers() -> None:
    code = (
        "import aeron, threading, time\n"
        "barrier = aeron.ShutdownSignalBarrier()\n"
        "thread = threading.Thread(target=barrier.close)\n"
        "thread.start(); thread.join()\n"
        "print('ready', flush=True)\n"
        "time.sleep(5)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    os.kill(process.pid, signal.SIGTERM)
    process.communicate(timeout=10)
    assert process.returncode == -signal.SIGTERM
