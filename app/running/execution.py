"""How a command of the server runs: its event loop, and the exit status of its work.

Errors of the settings, the database, the cluster and the machine are for operators: every command reports them here, in
one line and with one status.
"""

import asyncio
import sys
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

import uvloop

from app.domain.errors import DomainError
from app.domain.exports.segments import InvalidExport
from app.embedded_postgres.binaries import EmbeddedPostgresError
from app.k8s.errors import KubeError
from app.loops.leadership.identity import WrongCluster
from app.running.connections import NotPossible
from app.telemetry.logs import report_failure

_NOT_POSSIBLE: Final = 2  # as of a command with wrong arguments
_INTERRUPTED: Final = 130  # as a shell reports SIGINT

# DomainError includes the errors of the database. OSError: a directory that cannot be written, an address in use.
_FOR_OPERATORS: Final = (
    NotPossible,
    DomainError,
    InvalidExport,
    EmbeddedPostgresError,
    KubeError,
    OSError,
    WrongCluster,
)

# Seconds after which a thread that computes lets the event loop run. The loop waits so long after each poll of its
# sockets: with Python's 5 ms, a request with ten steps would take 50 ms beside a computation.
_SWITCH_SECONDS: Final = 0.0005

_Result = TypeVar("_Result")


def run_loop(main: Coroutine[Any, Any, _Result]) -> _Result:
    """Run the coroutine in a new event loop of uvloop, which takes less CPU time per request than asyncio's own."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)


def exit_status(work: Callable[[], int]) -> int:
    """Do the work, and return its exit status: 2 after an error that an operator can fix, which it reports in one line.

    Its traceback is a line of the log with the level DEBUG, because a fault of jobgate can raise such an error too.
    SIGINT interrupts work that does not handle it yet. The status is then that of a shell.
    """
    status = _NOT_POSSIBLE
    try:
        return work()
    except* _FOR_OPERATORS as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        report_failure(" ".join((str(error) or type(error).__name__).split()), group)
    except* KeyboardInterrupt:
        status = _INTERRUPTED
    return status
