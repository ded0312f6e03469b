"""One run of `jobgate recover`: it stops the controller, carries out the remedies, and lets the controller continue.

    lease ─▶ stop recorded on the cluster ─▶ compare ─▶ remedies ─▶ database continues ─▶ stop taken away

The record on the cluster keeps every controller stopped until the last step, whatever this process survives.
"""

import asyncio
from contextlib import suppress
from dataclasses import replace
from uuid import UUID

from app.base.cancellation import TaskGroup
from app.base.clock import Clock
from app.base.faultpoints import FaultPoint, reach
from app.db import recovery
from app.db.feed import entries
from app.db.installation import identity as installation
from app.db.installation import leases
from app.db.postgres.engine import Database
from app.db.postgres.errors import DatabaseContended
from app.domain.recovery.differences import Choices, JobFinding, with_remedies
from app.loops.leadership.identity import Identity, WrongCluster
from app.loops.leadership.installation_record import InstallationRecord, Reached
from app.loops.leadership.lease import Leadership
from app.loops.leadership.own_cluster import OwnCluster
from app.loops.recovery.remedies import Remedies
from app.loops.recovery.survey import InstallationScope, find_differences

_OFFER_EVERY = 0.5  # seconds between two tries to get the lease


class Recovery:
    """Compares and recovers one installation."""

    def __init__(
        self,
        scope: InstallationScope,
        db: Database,
        lease_db: Database,
        leadership: Leadership,
        clock: Clock,
        *,
        system_namespace: str,
    ) -> None:
        self._scope = scope
        self._db = db
        self._lease_db = lease_db
        self._leadership = leadership
        self._clock = clock
        self._cluster_uid = ""
        self._record = InstallationRecord(
            scope.api, leadership, scope.installation, system_namespace, timeout=scope.timeout
        )
        self._identity = Identity(
            scope.api,
            db,
            leadership,
            clock,
            installation_id=UUID(scope.installation),
            system_namespace=system_namespace,
            timeout=scope.timeout,
        )

    async def mismatch(self) -> str:
        """Return why the controller stops; an empty text if database and cluster belong together.

        Raises:
            KubeError: the cluster did not answer.
        """
        try:
            await self._identity.check()
        except WrongCluster as wrong:
            return str(wrong)
        return ""

    async def identify(self) -> bool:
        """Take the cluster that answers for the one to recover. Return whether the database is bound to another one."""
        self._cluster_uid = await self._identity.pin()
        return (await installation.read(self._db)).cluster_uid not in (None, self._cluster_uid)

    async def acquire(self, within: float) -> bool:
        """Get the lease. A controller that is stopped gives it away; return whether one did within these seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                while not await self._try_to_acquire():
                    await leases.offer(self._lease_db, leases.CONTROLLER, self._leadership.holder)
                    await asyncio.sleep(_OFFER_EVERY)
                return True
        return False

    async def _try_to_acquire(self) -> bool:
        with suppress(DatabaseContended):
            return await self._leadership.try_to_acquire()
        return False

    async def find_differences(self) -> list[JobFinding]:
        """Return all differences. Nothing changes.

        Raises:
            WrongCluster: another cluster has answered, which has none of the objects.
        """
        found = await find_differences(self._scope, self._db)
        await self._identity.probe()
        return found

    async def run(self, choices: Choices) -> None:
        """Recover under the lease, which the caller has acquired and releases.

        Raises:
            NoRemedy, WrongCluster, KubeError, DatabaseUnavailable, LeaseLost: the controller stays stopped.
        """
        reached = await self._begin()
        await self._leadership.outrank(reached.epoch)
        async with TaskGroup() as group:
            keeper = group.create_task(self._leadership.keep())
            # Again, because a controller may have worked until this process got the lease.
            chosen = with_remedies(await self.find_differences(), choices)
            await recovery.skip_versions(self._db, self._leadership.lease)
            await self._remedies().carry_out(chosen)
            await self._end(reached)
            keeper.cancel()

    async def _begin(self) -> Reached:
        """Record the stop on the cluster, and return what the cluster has recorded."""
        epoch, position = self._leadership.epoch, (await entries.bounds(self._db)).last
        await self._identity.probe()
        reached = await self._record.read()
        if reached is None:
            await self._record.create(Reached(epoch=epoch, position=position, recovering=True))
            reached = await self._record.read() or Reached(epoch=epoch, position=position)
        if not reached.recovering:
            reached = await self._record.write(replace(reached, recovering=True), over=reached)
        reach(FaultPoint.RECOVERY_BEGUN)
        return reached

    def _remedies(self) -> Remedies:
        cluster = OwnCluster(
            api=self._scope.api,
            leadership=self._leadership,
            verify=self._identity.verify,
            timeout=self._scope.timeout,
        )
        return Remedies(cluster, self._db, self._clock)

    async def _end(self, reached: Reached) -> None:
        now = self._clock.now()
        await self._identity.probe()
        await recovery.continue_after(self._db, self._leadership.lease, reached.position, self._cluster_uid, now)
        reach(FaultPoint.RECOVERY_CONTINUED)
        position = (await entries.bounds(self._db)).last
        mark = await self._identity.make_mark()
        await self._record.write(Reached(epoch=self._leadership.epoch, position=position, mark=mark), over=reached)
