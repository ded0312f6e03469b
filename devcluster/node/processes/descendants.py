"""Kills the descendants of processes that end. One scan of all processes answers all that wait for it.

A scan reads /proc, so its time grows with the number of processes. If each process of a node had a scan of its own, the
end of a thousand pods would keep the agent busy for minutes, and its heartbeats with it.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from devcluster.node.processes.leftovers import marks_of, pids, stat_of

ROUNDS: Final = 3  # a descendant can start another one between a scan and its signal
# After a scan, the next one waits for this many times its duration, so that scans take at most a fifth of the agent's
# time. Processes that end meanwhile share the next one.
REST: Final = 4
NO_SESSION: Final = -1
_OVER: Final = (b"Z", b"X", b"")  # states of processes that have ended


@dataclass(slots=True)
class _Round:
    done: "asyncio.Future[bool]"
    sessions: set[int] = field(default_factory=set)
    identities: set[bytes] = field(default_factory=set)


class Descendants:
    """Finds and kills the processes of containers.

    Environments are the most expensive to read. One with an identity is read once, because a process that replaces its
    environment still belongs to its container.
    """

    def __init__(self) -> None:
        self._marks: dict[tuple[int, str], tuple[bytes, ...]] = {}
        self._next: _Round | None = None
        self._rest_until = 0.0

    async def end(self, session: int, identity: str) -> None:
        """Kill the processes of the session, and those with the identity, until none is found or ROUNDS have passed.

        The session leader has ended and is not reaped, so that no other process can have its pid. If it is reaped, the
        caller passes NO_SESSION.
        """
        for _ in range(ROUNDS):
            if not await self._in_next_round(session, identity):
                return

    def kill(self, session: int, identity: str) -> None:
        """Kill the processes of the session, and those with the identity, but not the session leader."""
        self._kill({session}, {identity.encode()} - {b""})

    async def _in_next_round(self, session: int, identity: str) -> bool:
        loop = asyncio.get_running_loop()
        if self._next is None or self._next.done.get_loop() is not loop:
            self._next = _Round(loop.create_future())
            loop.call_at(max(loop.time(), self._rest_until), self._run, self._next)
        waiting = self._next
        waiting.sessions.add(session)
        waiting.identities |= {identity.encode()} - {b""}
        # The others of the round still wait if one of them is cancelled.
        return await asyncio.shield(waiting.done)

    def _run(self, waiting: _Round) -> None:
        self._next = None
        loop = asyncio.get_running_loop()
        begun = loop.time()
        try:
            waiting.done.set_result(self._kill(waiting.sessions, waiting.identities))
        except Exception as error:  # noqa: BLE001  those that wait raise it
            waiting.done.set_exception(error)
        ended = loop.time()
        self._rest_until = ended + REST * (ended - begun)

    def _kill(self, sessions: Collection[int], identities: Collection[bytes]) -> bool:
        """Kill the processes of one scan, except the leaders of the sessions. Returns whether there were any."""
        found: list[int] = []
        marks: dict[tuple[int, str], tuple[bytes, ...]] = {}
        prefixes = tuple(identities)
        for pid in pids():
            stat = stat_of(pid)
            if stat.state in _OVER:
                continue
            own = self._marks.get((pid, stat.started)) or (marks_of(pid) if prefixes else ())
            if own:
                marks[pid, stat.started] = own
            if stat.session in sessions or any(mark.startswith(prefixes) for mark in own):
                found.append(pid)
        self._marks = marks
        others = [pid for pid in found if pid not in sessions and pid != os.getpid()]
        for pid in others:
            # The process has ended, or its pid belongs to a process of another user now.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        return bool(others)


descendants = Descendants()
