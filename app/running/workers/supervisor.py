"""Forks the processes of a fleet, sends them orders, and reaps them. Thin I/O around `app.running.workers.fleet`.

It is not asynchronous: a fork in a process with an event loop or threads would copy them in an undefined state. Forked
processes share the imported modules with the supervisor, so they start in milliseconds and need less memory.
"""

import os
import selectors
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import Final, NoReturn

import structlog

from app.base.clock import Clock
from app.running.workers.fleet import KILLED, Action, ActionKind, Fleet, FleetTimes
from app.running.workers.link import DRAINED, READY, Order, SupervisorLink

log = structlog.get_logger(__name__)

_STOPPING: Final = frozenset({signal.SIGINT, signal.SIGTERM})
_HANDLED: Final = frozenset({*_STOPPING, signal.SIGHUP, signal.SIGCHLD})
# A longer interval between two iterations means that this process or the machine was stopped. That time does not count,
# so that the processes still get their full time to end.
_UNEXPLAINED: Final = 1.0  # seconds
_ORDERS: Final = {ActionKind.DRAIN: Order.DRAIN, ActionKind.STOP: Order.STOP}

RunProcess = Callable[[int, SupervisorLink], int]
"""The work of a process: gets its number and its link in the forked child, and returns the exit status."""


@dataclass(frozen=True, slots=True)
class _Child:
    pid: int
    connection: socket.socket


class ProcessSupervisor:
    """Runs a fleet until a signal stops it: SIGTERM or SIGINT drain and stop, SIGHUP restarts the workers in turn.

    Args:
        names: of the processes; the first `workers` are workers.
        run_process: runs in each forked process.
        on_started: called once all processes are ready.
        on_ended: called with the number of a process that has ended.
    """

    def __init__(
        self,
        names: Sequence[str],
        run_process: RunProcess,
        *,
        workers: int,
        times: FleetTimes,
        clock: Clock,
        on_started: Callable[[], None],
        on_ended: Callable[[int], None],
    ) -> None:
        self._names = names
        self._run_process = run_process
        self._fleet = Fleet(names, workers=workers, times=times)
        self._clock = clock
        self._on_started = on_started
        self._on_ended = on_ended
        self._children: dict[int, _Child] = {}

    def run(self) -> int:
        """Run until all processes have ended, and return the exit status. A second signal ends all at once."""
        with _signals() as signals, selectors.DefaultSelector() as selector:
            selector.register(signals, selectors.EVENT_READ)
            now, before = 0.0, self._clock.monotonic()
            while True:
                for action in self._fleet.next_actions(now):
                    self._carry_out(action, selector)
                if (status := self._fleet.exit_status) is not None:
                    return status
                wait = self._fleet.next_change(now)
                events = selector.select(wait)
                elapsed = self._clock.monotonic() - before
                before += elapsed
                now += elapsed if wait is None else min(elapsed, wait + _UNEXPLAINED)
                for key, _ in events:
                    if key.fileobj is signals:
                        self._on_signals(signals.recv(64), now)
                    else:
                        self._on_message(int(key.data), selector, now)
                self._reap(selector, now)

    def _on_signals(self, received: bytes, now: float) -> None:
        for number in received:
            if number == signal.SIGHUP:
                log.info("workers.restarting")
                self._fleet.restart_workers()
            elif number in _STOPPING and not self._fleet.stop(now):
                self._end_at_once(number)

    def _on_message(self, process: int, selector: selectors.BaseSelector, now: float) -> None:
        """Note that a process is ready, or has drained. `_reap` notes its end."""
        child = self._children[process]
        try:
            received = child.connection.recv(64)
        except OSError:
            received = b""
        if not received:
            selector.unregister(child.connection)
            return
        if DRAINED in received:
            self._fleet.drained(process)
        if READY not in received:
            return
        was_started = self._fleet.started
        self._fleet.ready(process, now)
        log.info("workers.process_ready", name=self._names[process], pid=child.pid)
        if self._fleet.started and not was_started:
            self._on_started()

    def _reap(self, selector: selectors.BaseSelector, now: float) -> None:
        for process, child in list(self._children.items()):
            pid, wait_status = os.waitpid(child.pid, os.WNOHANG)
            if not pid:
                continue
            del self._children[process]
            with suppress(KeyError):  # its end was read before
                selector.unregister(child.connection)
            child.connection.close()
            self._on_ended(process)
            status = os.waitstatus_to_exitcode(wait_status)
            # A shell reports the number of the signal in the same way.
            restart_in = self._fleet.ended(process, status if status >= 0 else 128 - status, now)
            # A process that could not start has reported why, unless a signal ended it.
            if restart_in is not None or status < 0:
                report = log.info if status == 0 else log.warning
                name = self._names[process]
                report("workers.process_ended", name=name, pid=pid, status=status, restart_in=restart_in)

    def _carry_out(self, action: Action, selector: selectors.BaseSelector) -> None:
        if action.kind is ActionKind.START:
            child = self._children[action.process] = self._fork(action.process)
            selector.register(child.connection, selectors.EVENT_READ, action.process)
            return
        child = self._children[action.process]
        if action.kind is ActionKind.KILL:
            log.critical("workers.process_killed", name=self._names[action.process], pid=child.pid)
            os.kill(child.pid, signal.SIGKILL)
            return
        with suppress(OSError):  # it has ended, which `_reap` notes
            child.connection.send(_ORDERS[action.kind].value)

    def _fork(self, process: int) -> _Child:
        sys.stdout.flush()
        sys.stderr.flush()
        ours, theirs = socket.socketpair()
        # A signal between the fork and the new handlers would otherwise be written to the supervisor's descriptor.
        signal.pthread_sigmask(signal.SIG_BLOCK, _HANDLED)
        supervisor = os.getpid()
        pid = os.fork()
        if pid == 0:
            ours.close()
            self._become(process, SupervisorLink(theirs, self._names[process], supervisor))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _HANDLED)
        theirs.close()
        return _Child(pid, ours)

    def _become(self, process: int, link: SupervisorLink) -> NoReturn:
        """Run as the forked process until its end."""
        status = KILLED
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _HANDLED)
            # A process that held the supervisor's end of another link would hide the end of the supervisor from it.
            for child in self._children.values():
                child.connection.close()
            status = self._run_process(process, link)
        except BaseException:  # nothing may return into the supervisor's code
            log.critical("workers.process_failed", name=self._names[process], exc_info=True)
        finally:
            with suppress(OSError, ValueError):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(status)

    def _end_at_once(self, number: int) -> None:
        """Kill all processes, and end by the signal."""
        for child in self._children.values():
            os.kill(child.pid, signal.SIGKILL)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


def _ignore(_: int, __: FrameType | None) -> None:
    """Do nothing. Unlike SIG_IGN, a handler is not inherited by the programs that a process runs."""


@contextmanager
def _signals() -> Iterator[socket.socket]:
    """Yield a socket from which the numbers of the handled signals are read, during the block."""
    receiving, sending = socket.socketpair()
    with receiving, sending:
        receiving.settimeout(0)
        sending.settimeout(0)
        before = {number: signal.signal(number, _ignore) for number in _HANDLED}
        wakeup = signal.set_wakeup_fd(sending.fileno())
        try:
            yield receiving
        finally:
            signal.set_wakeup_fd(wakeup)
            for number, handler in before.items():
                signal.signal(number, handler)
