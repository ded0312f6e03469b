"""Decides which processes of a supervisor start, drain, stop and are killed. Pure: times are arguments, in seconds.

At the start, the first process starts alone, so that a mistake in the settings is reported once; the others follow
together. Later, at most one process starts at a time, with a back-off, so that a crash loop leaves the machine to the
processes that work.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from app.base.backoff import ExponentialBackoff

BACKOFF: Final = ExponentialBackoff(first=0.5, longest=30.0)  # before a process that ended is started again
HEALTHY_AFTER: Final = 60.0  # seconds of serving after which earlier failures of a process are forgotten
KILLED: Final = 70  # exit status if a process had to be killed: EX_SOFTWARE of sysexits.h, as of a watchdog


class ProcessPhase(StrEnum):
    """What a process of the fleet does."""

    DOWN = "down"
    STARTING = "starting"
    READY = "ready"
    STOPPING = "stopping"


class ActionKind(StrEnum):
    """What the supervisor does to a process."""

    START = "start"
    DRAIN = "drain"  # report that it is not ready, and close each connection after its next answer
    STOP = "stop"  # stop accepting, complete open requests, and exit
    KILL = "kill"


@dataclass(frozen=True, slots=True)
class Action:
    kind: ActionKind
    process: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetTimes:
    """Times in seconds.

    Args:
        drain: longest time from the signal to the first process that stops accepting. It is shorter if all workers
            report that they have drained. Load balancers see the fleet as not ready.
        shutdown: from the signal until processes that still run are killed; also the limit of one rolling restart.
    """

    drain: float
    shutdown: float


@dataclass(slots=True, eq=False)
class _Process:
    name: str
    phase: ProcessPhase = ProcessPhase.DOWN
    since: float = 0.0  # when the phase began
    failures: int = 0  # unexpected ends since it was last healthy
    start_at: float = 0.0  # earliest time of the next start, while it is down
    told_to_drain: bool = False
    has_drained: bool = False
    killed: bool = False


class Fleet:
    """The state of all processes. The last one is stopped last: the controller, if there is one.

    The supervisor reports events by `ready`, `ended`, `stop` and `restart_workers`, and then carries out
    `next_actions`. Repeat that at the latest after `next_change` seconds. When `exit_status` is not None, all processes
    have ended.
    """

    def __init__(self, names: Sequence[str], *, workers: int, times: FleetTimes) -> None:
        self._processes = [_Process(name) for name in names]
        self._workers = self._processes[:workers]
        self._times = times
        self._restarting: list[_Process] = []
        self._stopped_at: float | None = None
        self._drained_after: float | None = None  # seconds from the signal to the first process that stopped accepting
        self._status = 0
        self.started = False

    @property
    def exit_status(self) -> int | None:
        """The exit status of the supervisor, or None while a process runs or will be started."""
        return self._status if self._stopped_at is not None and not self._in(*_RUNNING) else None

    def ready(self, index: int, now: float) -> None:
        process = self._processes[index]
        if process.phase is ProcessPhase.STARTING:
            self._set(process, ProcessPhase.READY, now)
        self.started = self.started or len(self._in(ProcessPhase.READY)) == len(self._processes)

    def ended(self, index: int, status: int, now: float) -> float | None:
        """Record the end of a process, and return the seconds until it is started again; None if it is not.

        Before all processes were ready once, the end of any of them ends the fleet with its status: the cause is
        likely a setting, the schema or the database, and the process has reported it.
        """
        process = self._processes[index]
        was_healthy = process.phase is ProcessPhase.READY and now - process.since >= HEALTHY_AFTER
        was_told = process.phase is ProcessPhase.STOPPING
        self._set(process, ProcessPhase.DOWN, now)
        if self._stopped_at is not None:
            return None
        if not self.started:
            self._status = status or KILLED
            self._stopped_at = now
            return None
        process.failures = 0 if was_told or was_healthy else process.failures
        process.failures += 0 if was_told else 1
        process.start_at = now + BACKOFF.delay(process.failures)
        return process.start_at - now

    def drained(self, index: int) -> None:
        """Note that no client chooses a worker any more."""
        self._processes[index].has_drained = True

    def stop(self, now: float) -> bool:
        """Begin the shutdown. Return False if it has begun before."""
        if self._stopped_at is not None:
            return False
        self._stopped_at = now
        return True

    def restart_workers(self) -> None:
        """Restart each worker after the previous one is ready again. Has no effect while workers restart or stop."""
        if self.started and not self._restarting:
            self._restarting = list(self._workers)

    def next_actions(self, now: float) -> list[Action]:
        """Return what to do now. Each action is returned once."""
        if self._stopped_at is not None:
            return self._stop_in_turn(now, self._stopped_at)
        return [*self._kill_stuck(now), *self._start_due(now), *self._restart_next(now)]

    def next_change(self, now: float) -> float | None:
        """Return the seconds after which `next_actions` can return more without an event; None for never."""
        times = [process.start_at for process in self._in(ProcessPhase.DOWN) if self._stopped_at is None]
        times += [process.since + self._times.shutdown for process in self._in(ProcessPhase.STOPPING)]
        if self._stopped_at is not None:
            times += [self._stopped_at + self._times.drain, self._stopped_at + self._times.shutdown]
            times += [process.since + self._turn for process in self._in(ProcessPhase.STOPPING)]
        return min((max(0.0, time - now) for time in times if time > now), default=None)

    def _start_due(self, now: float) -> list[Action]:
        down = self._in(ProcessPhase.DOWN)
        if self.started:
            due = [process for process in down if process.start_at <= now]
            starting = [] if self._in(ProcessPhase.STARTING) else due[:1]
        else:
            starting = down if self._in(ProcessPhase.READY) else down[-1:] if len(down) == len(self._processes) else []
        for process in starting:
            self._set(process, ProcessPhase.STARTING, now)
            process.told_to_drain = process.has_drained = process.killed = False
        return [self._action(ActionKind.START, process) for process in starting]

    def _restart_next(self, now: float) -> list[Action]:
        """Stop the next worker of a rolling restart once all processes are ready. Other workers serve meanwhile."""
        if not self._restarting or len(self._in(ProcessPhase.READY)) < len(self._processes):
            return []
        process = self._restarting.pop(0)
        self._set(process, ProcessPhase.STOPPING, now)
        return [self._action(ActionKind.STOP, process)]

    def _stop_in_turn(self, now: float, stopped_at: float) -> list[Action]:
        """Drain all workers, then stop one after the other, the controller last."""
        if now - stopped_at >= self._times.shutdown:
            return self._kill(self._in(*_RUNNING))
        serving = [process for process in self._workers if process.phase is ProcessPhase.READY]
        draining = [process for process in serving if not process.told_to_drain]
        actions = [self._action(ActionKind.DRAIN, process) for process in draining]
        for process in draining:
            process.told_to_drain = True
        if self._drained_after is None:
            if self._serves_clients() and now - stopped_at < self._times.drain:
                return actions
            self._drained_after = now - stopped_at
        for process in self._processes:
            if process.phase in (ProcessPhase.STARTING, ProcessPhase.READY):
                self._set(process, ProcessPhase.STOPPING, now)
                actions.append(self._action(ActionKind.STOP, process))
            # A process that takes longer than its turn ends beside the next one.
            if self.started and process.phase is ProcessPhase.STOPPING and now - process.since < self._turn:
                break
        return actions

    def _serves_clients(self) -> bool:
        """Return whether a worker has not drained.

        A fleet that never served has no clients to wait for, and must end soon with its error.
        """
        return self.started and any(
            process.told_to_drain and not process.has_drained and process.phase is ProcessPhase.READY
            for process in self._workers
        )

    @property
    def _turn(self) -> float:
        """How long the next process waits for the end of one, so that all have their turn within the limit."""
        return max(0.0, self._times.shutdown - (self._drained_after or 0.0)) / (len(self._processes) + 2)

    def _kill_stuck(self, now: float) -> list[Action]:
        """Kill a worker that a rolling restart has told to stop, if it has not ended within the limit."""
        stopping = self._in(ProcessPhase.STOPPING)
        return self._kill([process for process in stopping if now - process.since >= self._times.shutdown])

    def _kill(self, processes: Sequence[_Process]) -> list[Action]:
        killed = [process for process in processes if not process.killed]
        for process in killed:
            process.killed = True
        if killed and self._stopped_at is not None:
            self._status = self._status or KILLED
        return [self._action(ActionKind.KILL, process) for process in killed]

    def _in(self, *phases: ProcessPhase) -> list[_Process]:
        return [process for process in self._processes if process.phase in phases]

    def _action(self, kind: ActionKind, process: _Process) -> Action:
        return Action(kind, self._processes.index(process))

    @staticmethod
    def _set(process: _Process, phase: ProcessPhase, now: float) -> None:
        process.phase, process.since = phase, now


_RUNNING: Final = (ProcessPhase.STARTING, ProcessPhase.READY, ProcessPhase.STOPPING)
