"""What a controller reports about itself, and how /readyz judges it."""

from dataclasses import dataclass
from typing import Final

import structlog
from typing_extensions import override

log = structlog.get_logger(__name__)

WAITING: Final = "another process holds the controller's lease"


@dataclass(slots=True)
class ControllerState:
    """What the controller of this process reports: Waiting, Syncing, Running, Unreachable or WrongCluster.

    The tasks of the controller set it, and a blocked task cannot. `controller_condition` therefore also reads the clock
    of the lease.
    """

    state: str = "Waiting"
    message: str = WAITING

    def set(self, state: str, message: str = "") -> None:
        # The message of an outage contains its duration, so it changes every second.
        if self.state != state:
            log.info("controller.state", state=state, message=message)
        self.state, self.message = state, message


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerCondition:
    """What /readyz reports about the controller. `ok` is False if an operator should investigate."""

    ok: bool
    state: str
    message: str

    @override
    def __str__(self) -> str:
        return f"{self.state} {self.message}".strip()


def controller_condition(
    reported: ControllerState, *, remaining: float | None, unanswered: float, ttl: float
) -> ControllerCondition:
    """Return the condition of a controller, judged by the clock of its lease. All times are seconds.

    `remaining` is the time until the lease expires, or None if this process does not hold it. `unanswered` is the time
    since the database last answered a request for the lease. `ttl` is the duration of a lease.
    """
    if remaining is None and unanswered > ttl:
        return ControllerCondition(
            ok=False, state="Waiting", message=f"the database has not answered about the lease for {unanswered:.0f} s"
        )
    if remaining is None:
        message = reported.message if reported.state == "Waiting" else WAITING
        return ControllerCondition(ok=True, state="Waiting", message=message)
    if remaining <= 0:
        return ControllerCondition(
            ok=False,
            state="LeaseLost",
            message=f"the lease ran out {abs(remaining):.0f} s ago, and the work under it has not ended",
        )
    # An unreachable cluster needs no restart and may come back; only an operator can resolve a wrong one.
    return ControllerCondition(ok=reported.state != "WrongCluster", state=reported.state, message=reported.message)
