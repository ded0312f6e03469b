"""Runs terms for as long as this process holds the lease. What it observed does not outlive its term.

A term ends when the lease is lost, or when another cluster answers. The controller then mirrors, creates and deletes
nothing, and the heartbeat has the reason.
"""

import asyncio
from contextlib import suppress
from datetime import UTC, datetime

import structlog

from app.base.cancellation import TaskGroup, rounds
from app.base.instruments import ComputedMetric, ValueSource, expose
from app.db.installation import heartbeats
from app.db.postgres.errors import DatabaseUnavailable, LeaseLost
from app.k8s.errors import KubeError, public_message
from app.loops import metrics
from app.loops.context import ControllerContext
from app.loops.leadership.controller_state import (
    WAITING,
    ControllerCondition,
    ControllerState,
    controller_condition,
)
from app.loops.leadership.identity import WrongCluster
from app.loops.leadership.lease import Leadership
from app.loops.leadership.succession import LeaseGivenAway, Succession
from app.loops.term import Term

log = structlog.get_logger(__name__)

NEVER = datetime(1970, 1, 1, tzinfo=UTC)  # the last contact of a controller that never had one


class Controller:
    """Waits for the lease and leads while it holds it, until it is cancelled."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._db = context.db
        self._settings = context.settings
        self._leadership = self._candidate()
        self._succession = self._wire_succession()
        self.state = ControllerState()

    def _candidate(self) -> Leadership:
        settings = self._settings
        return Leadership(
            self._context.lease_db, self._context.clock, ttl=settings.lease_ttl, renew_every=settings.lease_renew_every
        )

    def _wire_succession(self) -> Succession:
        context, settings = self._context, self._settings
        check = context.build_identity(self._leadership).check
        return Succession(
            context.lease_db, context.clock, check=check, limit=settings.contact_limit, ttl=settings.lease_ttl
        )

    def condition(self) -> ControllerCondition:
        """Return what /readyz reports, judged by the clock of the lease and not by what the tasks have noticed."""
        leadership = self._leadership
        return controller_condition(
            self.state,
            remaining=leadership.remaining,
            unanswered=self._context.clock.monotonic() - leadership.answered_at,
            ttl=self._settings.lease_ttl,
        )

    def overdue(self) -> str | None:
        """Return what must end because the lease has expired, or None. Every thread may call this."""
        found = self.condition()
        return str(found) if found.state == "LeaseLost" else None

    async def run(self) -> None:
        """Acquire the lease and lead, again and again, until cancelled."""
        gauges: dict[ComputedMetric, ValueSource] = {
            metrics.STATE: lambda: {(self.condition().state,): 1.0},
            metrics.EPOCH: lambda: {(): self._leadership.epoch},
            metrics.LEASE_REMAINING: lambda: {(): self._leadership.remaining or 0.0},
        }
        with expose(gauges):
            await self._run_terms()

    async def _run_terms(self) -> None:
        for _ in rounds():
            # A task that outlives its term holds the former candidate, so it cannot act under the next epoch.
            leadership = self._leadership = self._candidate()
            await self._acquire(leadership)
            self._succession.reached()  # the time without contact counts from here
            try:
                await self._lead(leadership)
            except* LeaseGivenAway as given:
                log.warning("controller.lease_given_away", reason=str(_first(given)))
                self.state.set("Waiting", str(_first(given)))
            except* LeaseLost as lost:
                log.warning("controller.lease_lost", error=str(_first(lost)))
            finally:
                # `_lead` returns only when all its tasks have ended, so nothing acts after the release.
                await leadership.release()

    async def _acquire(self, leadership: Leadership) -> None:
        for _ in rounds():
            if await self._succession.may_acquire():
                self.state.set("Waiting", WAITING)
                if await leadership.try_to_acquire():
                    return
                await self._succession.offer(leadership.holder)
            await asyncio.sleep(self._settings.lease_renew_every)

    async def _lead(self, leadership: Leadership) -> None:
        async with TaskGroup() as group:
            group.create_task(leadership.keep(lambda offered: self._succession.answer(offered=offered)))
            group.create_task(self._context.timekeeper.lead(self._db, lambda: leadership.lease))
            for _ in rounds():
                await self._term(leadership)

    async def _term(self, leadership: Leadership) -> None:
        """Run one term, which ends only by an error. Pause after an error that the next term can recover from."""
        failure: tuple[str, str] | None = None
        try:
            await self._context.timekeeper.settle(self._db, leadership.lease)
            await Term(self._context, leadership, self.state, self._succession.reached).run()
        # LeaseLost is not handled here: it ends `_lead`.
        except* WrongCluster as wrong:
            failure = "WrongCluster", str(_first(wrong))
        except* KubeError as error:
            failed = _first(error)
            log.warning("controller.cluster_failed", error=str(failed))
            failure = failure or ("Unreachable", public_message(failed))
        except* DatabaseUnavailable as error:
            log.warning("controller.database_unavailable", error=str(_first(error)))
        if failure is not None:
            await self._report(leadership, *failure)
        await asyncio.sleep(self._settings.retry_every)

    async def _report(self, leadership: Leadership, state: str, message: str) -> None:
        """Store the reason in the heartbeat, with the last contact unchanged."""
        self.state.set(state, message)
        # Without PostgreSQL the heartbeat cannot be stored, and the API processes see its age.
        with suppress(DatabaseUnavailable):
            before = await heartbeats.read(self._db)
            seen = before.observed_at if before is not None else NEVER
            await heartbeats.beat(self._db, leadership.lease, seen, state, message)


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the first error of nested exception groups."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
