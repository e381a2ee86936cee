"""Agents: objects whose ``do_work`` is called in a loop, and the classes that run them.

An agent is single-threaded. Its runner calls ``on_start`` once, then ``do_work`` repeatedly, then ``on_close`` once.
`AgentRunner` runs an agent on its own thread. `AgentInvoker` runs it when the program calls ``invoke``. A composite
runs several agents in one duty cycle. These classes behave like Agrona's classes with the same names.
"""

import abc
import contextlib
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Protocol

from aeron.exceptions import AeronError, AgentTerminationError, ArgumentTypeError, InvalidArgumentError

__all__ = ["Agent", "AgentInvoker", "AgentRunner", "CompositeAgent", "DynamicCompositeAgent", "ErrorHandler"]

ErrorHandler = Callable[[Exception], object]
"""A handler of errors: ``handler(error)``, where ``error`` is an exception that an agent raised.

The thread that runs the agent calls the handler. The result of the handler is ignored.
"""


class SupportsIdle(Protocol):
    """Any object with the method ``idle`` of an :class:`aeron.IdleStrategy`."""

    def idle(self, work_count: int) -> None:
        """Waits a little if `work_count` is 0 or less."""


class SupportsIncrement(Protocol):
    """Any object with the method ``increment`` of an :class:`aeron.Counter`."""

    def increment(self) -> int:
        """Adds one and returns the previous value."""


class Agent(abc.ABC):
    """A unit of work that runs in a loop. A subclass defines ``do_work``. One thread runs the agent.

    Example:
        ```python
        class Printer(aeron.Agent):
            def do_work(self) -> int:
                return subscription.poll(lambda payload, header: print(payload))
        ```
    """

    @property
    def role_name(self) -> str:
        """Name of the agent, and of the thread that runs it."""
        return type(self).__name__

    def on_start(self) -> None:  # noqa: B027 (an optional hook)
        """Called once before the first ``do_work``, on the same thread."""

    @abc.abstractmethod
    def do_work(self) -> int:
        """Does a bounded piece of work.

        Returns:
            The amount of work. If it is 0, the runner idles.

        Raises:
            AgentTerminationError: Raise it to end the runner.
        """

    def on_close(self) -> None:  # noqa: B027
        """Called once after the last ``do_work``."""


def _print_error(error: Exception) -> None:
    sys.excepthook(type(error), error, error.__traceback__)


class _DutyCycle:
    """Calls an agent, with the rules for exceptions that runner and invoker share.

    The agent continues after an error of ``do_work``, except after an `AgentTerminationError`. An error of ``on_start``
    ends the agent.
    """

    def __init__(
        self, agent: Agent, error_handler: ErrorHandler | None, error_counter: SupportsIncrement | None
    ) -> None:
        if error_handler is not None and not callable(error_handler):
            raise ArgumentTypeError(f"error_handler={error_handler!r} is not callable: pass a function")
        self.agent = agent
        self.running = True
        self.handle_error: ErrorHandler = error_handler or _print_error
        self._error_counter = error_counter

    def start(self) -> None:
        try:
            self.agent.on_start()
        except Exception as error:
            self.running = False
            self.handle_error(error)
        except BaseException:
            self.running = False
            raise

    def work(self) -> int:
        try:
            return self.agent.do_work()
        except AgentTerminationError as error:
            self.running = False
            self.handle_error(error)
        except Exception as error:
            if self._error_counter is not None:
                with contextlib.suppress(AeronError):
                    self._error_counter.increment()
            self.handle_error(error)
        except BaseException:
            self.running = False
            raise
        return 0

    def close(self) -> None:
        try:
            self.agent.on_close()
        except Exception as error:
            self.handle_error(error)


class AgentRunner:
    """Runs an agent on its own thread. Thread-safe. A runner can be started once.

    If ``do_work`` raises, the runner counts the error, calls the error handler, and continues. An
    ``AgentTerminationError`` ends the runner. A ``with`` block starts the thread, and closes the runner at
    its end.

    Args:
        agent: The agent.
        idle_strategy: An object that waits if ``do_work`` returns 0, for instance an `IdleStrategy`.
        error_handler: Called as ``error_handler(error)``. ``None`` prints the error.
        error_counter: A counter, for instance a `Counter`, that is incremented for each error of ``do_work`` except
            ``AgentTerminationError``.

    Raises:
        ArgumentTypeError: If ``error_handler`` is not callable.

    Example:
        ```python
        with aeron.AgentRunner(agent, aeron.BackoffIdleStrategy()):
            barrier.wait()
        ```
    """

    def __init__(
        self,
        agent: Agent,
        idle_strategy: SupportsIdle,
        error_handler: ErrorHandler | None = None,
        error_counter: SupportsIncrement | None = None,
    ) -> None:
        self._cycle = _DutyCycle(agent, error_handler, error_counter)
        self._idle_strategy = idle_strategy
        self._lock = threading.Lock()
        self._used = False
        self._closed = False
        self._thread: threading.Thread | None = None

    @property
    def agent(self) -> Agent:
        """The agent."""
        return self._cycle.agent

    @property
    def thread(self) -> threading.Thread | None:
        """The thread that `start` created; ``None`` before `start`."""
        return self._thread

    @property
    def is_closed(self) -> bool:
        """Whether the agent has been closed."""
        return self._closed

    def start(self) -> "AgentRunner":
        """Starts a daemon thread that runs the agent. The thread has the name ``agent.role_name``.

        Returns:
            The runner itself.

        Raises:
            AeronError: If the runner was started or closed already.
        """
        thread = threading.Thread(target=self.run, name=self.agent.role_name, daemon=True)
        with self._lock:
            if self._thread is not None or self._used:
                raise AeronError("the runner was started already")
            self._thread = thread
        thread.start()
        return self

    def run(self) -> None:
        """Runs the agent on the calling thread until the agent ends or `close` is called. A second call does
        nothing."""
        with self._lock:
            if self._used:
                return
            self._used = True
        try:
            self._cycle.start()
            while self._cycle.running:
                work_count = self._cycle.work()
                if self._cycle.running:
                    self._idle_strategy.idle(work_count)
        finally:
            self._cycle.running = False
            self._cycle.close()
            self._closed = True

    def close(
        self, retry_timeout: float = 5.0, fail_action: Callable[[threading.Thread], object] | None = None
    ) -> None:
        """Ends the agent, and waits until its thread has ended. Idempotent.

        If the agent never ran, it is closed on the calling thread. A call on the agent's own thread does not wait.

        Args:
            retry_timeout: Seconds to wait for the thread before each call of ``fail_action``.
            fail_action: Called as ``fail_action(thread)``. ``None`` prints a line on standard error.
        """
        self._cycle.running = False
        with self._lock:
            never_ran, self._used = not self._used and self._thread is None, True
        if never_ran:
            self._cycle.close()
            self._closed = True
            return
        thread = self._thread
        if thread is None or thread is threading.current_thread():
            return
        thread.join(retry_timeout)
        while thread.is_alive():
            if fail_action is None:
                print(f"{self.agent.role_name} failed to close due to timeout, retrying...", file=sys.stderr)
            else:
                fail_action(thread)
            thread.join(retry_timeout)

    def __enter__(self) -> "AgentRunner":
        """Starts the thread."""
        return self.start()

    def __exit__(self, *_: object) -> None:
        """Closes the runner."""
        self.close()


class AgentInvoker:
    """Runs an agent when the program calls `invoke`. Not thread-safe: one thread uses it.

    A ``with`` block starts the agent, and closes the agent at its end.

    Args:
        agent: The agent.
        error_handler: Called as ``error_handler(error)``. ``None`` prints the error.
        error_counter: A counter, for instance a `Counter`, that is incremented for each error of ``do_work`` except
            ``AgentTerminationError``.

    Raises:
        ArgumentTypeError: If ``error_handler`` is not callable.
    """

    def __init__(
        self,
        agent: Agent,
        error_handler: ErrorHandler | None = None,
        error_counter: SupportsIncrement | None = None,
    ) -> None:
        self._cycle = _DutyCycle(agent, error_handler, error_counter)
        self.is_started = False
        self.is_closed = False

    @property
    def agent(self) -> Agent:
        """The agent."""
        return self._cycle.agent

    @property
    def is_running(self) -> bool:
        """Whether a call of `invoke` would run the agent."""
        return self.is_started and not self.is_closed and self._cycle.running

    def start(self) -> None:
        """Starts the agent. A second call does nothing. If the agent fails to start, it is closed."""
        if self.is_started or self.is_closed:
            return
        self.is_started = True
        self._cycle.start()
        if not self._cycle.running:
            self.close()

    def invoke(self) -> int:
        """Runs one duty cycle. If the agent ends in this cycle, the agent is closed.

        Returns:
            The amount of work; 0 if the agent is not running.
        """
        if not self.is_running:
            return 0
        work_count = self._cycle.work()
        if not self._cycle.running:
            self.close()
        return work_count

    def close(self) -> None:
        """Closes the agent. Idempotent."""
        if not self.is_closed:
            self.is_closed = True
            self._cycle.running = False
            self._cycle.close()

    def __enter__(self) -> "AgentInvoker":
        """Starts the agent."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Closes the agent."""
        self.close()


def _call_all(calls: Iterable[Callable[[], object]], what: str) -> None:
    errors: list[Exception] = []
    for call in calls:
        try:
            call()
        except Exception as error:
            errors.append(error)
    if errors:
        raise ExceptionGroup(what, errors)


class CompositeAgent(Agent):
    """An agent that runs several agents in one duty cycle. One thread runs the composite.

    Args:
        agents: The agents, in the order in which they run.

    Raises:
        InvalidArgumentError: If there is no agent.
    """

    def __init__(self, *agents: Agent) -> None:
        if not agents:
            raise InvalidArgumentError("a composite needs at least one agent")
        self._agents = agents
        self._next = 0

    @property
    def role_name(self) -> str:
        """The names of the agents: ``[a,b]``."""
        return f"[{','.join(agent.role_name for agent in self._agents)}]"

    def on_start(self) -> None:
        """Starts all agents.

        Raises:
            ExceptionGroup: If agents fail to start. The group has the errors of all these agents.
        """
        _call_all((agent.on_start for agent in self._agents), "agents failed to start")

    def do_work(self) -> int:
        """Runs one duty cycle of each agent. If an agent raises, the next call resumes with the agent after
        that agent.

        Returns:
            The sum of the amounts of work.
        """
        work_count = 0
        while self._next < len(self._agents):
            agent = self._agents[self._next]
            self._next += 1
            work_count += agent.do_work()
        self._next = 0
        return work_count

    def on_close(self) -> None:
        """Closes all agents.

        Raises:
            ExceptionGroup: If agents fail to close. The group has the errors of all these agents.
        """
        _call_all((agent.on_close for agent in self._agents), "agents failed to close")


class DynamicCompositeAgent(Agent):
    """A composite to which agents can be added, and from which agents can be removed, while it runs.

    One thread runs the composite. ``try_add`` and ``try_remove`` are thread-safe. Each of them keeps at most one
    request until the next ``do_work``.

    Args:
        role_name: Name of the composite.
        agents: The agents at the start.
    """

    def __init__(self, role_name: str, *agents: Agent) -> None:
        self._role_name = role_name
        self._agents = list(agents)
        self._status = "INIT"
        self._slots = threading.Lock()
        self._to_add: Agent | None = None
        self._to_remove: Agent | None = None

    @property
    def role_name(self) -> str:
        """Name of the composite."""
        return self._role_name

    @property
    def status(self) -> str:
        """``INIT`` before the start, then ``ACTIVE``, and ``CLOSED`` at the end."""
        return self._status

    @property
    def has_add_completed(self) -> bool:
        """Whether the request of the last ``try_add`` was processed."""
        return self._to_add is None

    @property
    def has_remove_completed(self) -> bool:
        """Whether the request of the last ``try_remove`` was processed."""
        return self._to_remove is None

    def try_add(self, agent: Agent) -> bool:
        """Requests that an agent is added.

        Args:
            agent: The agent.

        Returns:
            ``False`` if an earlier request is not complete.

        Raises:
            AeronError: If the composite is not active.
        """
        with self._slots:
            self._check_active("add")
            if self._to_add is not None:
                return False
            self._to_add = agent
            return True

    def try_remove(self, agent: Agent) -> bool:
        """Requests that an agent is removed.

        Args:
            agent: The agent.

        Returns:
            ``False`` if an earlier request is not complete.

        Raises:
            AeronError: If the composite is not active.
        """
        with self._slots:
            self._check_active("remove")
            if self._to_remove is not None:
                return False
            self._to_remove = agent
            return True

    def on_start(self) -> None:
        """Starts the agents that the composite has at the start.

        Raises:
            ExceptionGroup: If agents fail to start. The group has the errors of all these agents.
        """
        _call_all((agent.on_start for agent in self._agents), "agents failed to start")
        self._status = "ACTIVE"

    def do_work(self) -> int:
        """Adds and removes agents as requested, then runs one duty cycle of each agent.

        Returns:
            The sum of the amounts of work.
        """
        if self._to_add is not None:
            self._join(self._to_add)
        if self._to_remove is not None:
            self._leave(self._to_remove)
        return sum(agent.do_work() for agent in self._agents)

    def on_close(self) -> None:
        """Closes all agents.

        Raises:
            ExceptionGroup: If agents fail to close. The group has the errors of all these agents.
        """
        self._status = "CLOSED"
        agents, self._agents = self._agents, []
        _call_all((agent.on_close for agent in agents), "agents failed to close")

    def _check_active(self, what: str) -> None:
        if self._status != "ACTIVE":
            raise AeronError(f"cannot {what} an agent: the composite {self._role_name} is {self._status}, not ACTIVE")

    def _join(self, agent: Agent) -> None:
        self._to_add = None
        try:
            agent.on_start()
        except Exception:
            agent.on_close()
            raise
        self._agents.append(agent)

    def _leave(self, agent: Agent) -> None:
        self._to_remove = None
        before = len(self._agents)
        self._agents = [other for other in self._agents if other is not agent]
        if len(self._agents) < before:
            agent.on_close()


# Users import these names from `aeron`, so reprs, tracebacks and pickles name that module.
for _class in (Agent, AgentInvoker, AgentRunner, CompositeAgent, DynamicCompositeAgent):
    _class.__module__ = "aeron"
