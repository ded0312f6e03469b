"""Ensures that the database and the cluster belong together before a missing object is taken as deleted.

Postgres keeps the uid of the cluster's kube-system namespace. The cluster keeps, in one ConfigMap, the lease epoch and
the feed position that this installation had reached when it was last seen. A cluster with another uid is another
cluster. A ConfigMap that is ahead of the database shows that the database was restored from an older backup. One with a
mark that the database does not know was written by a copy of it: a former primary has come back, or is still used.
"""

import asyncio
import secrets
from collections.abc import Sequence
from contextlib import suppress
from uuid import UUID

import structlog

from app.base.cancellation import rounds
from app.base.clock import Clock
from app.db.feed import entries
from app.db.installation import identity as installation
from app.db.installation import leases
from app.db.postgres.engine import Database
from app.db.postgres.errors import DatabaseUnavailable
from app.k8s.api import KubeApi
from app.k8s.codec import OBJECT
from app.k8s.errors import KubeConflict, KubeError
from app.k8s.resources import NAMESPACE
from app.loops.leadership.installation_record import InstallationRecord, Reached
from app.loops.leadership.lease import Leadership

log = structlog.get_logger(__name__)

KUBE_SYSTEM = "kube-system"
VERIFY_EVERY = 5.0  # seconds for which a verified uid of the cluster is trusted
RECORD_EVERY = 10.0  # seconds between updates of the recorded feed position


class WrongCluster(Exception):  # noqa: N818 - /readyz and the heartbeat show this name
    """The database belongs to another cluster. The controller changes nothing until an operator corrects this."""


class Identity:
    """Binds an installation to its cluster. `timeout` is seconds for each request."""

    def __init__(
        self,
        api: KubeApi,
        db: Database,
        leadership: Leadership,
        clock: Clock,
        *,
        installation_id: UUID,
        system_namespace: str,
        timeout: float,
    ) -> None:
        self._api = api
        self._db = db
        self._leadership = leadership
        self._clock = clock
        self._record = InstallationRecord(api, leadership, str(installation_id), system_namespace, timeout=timeout)
        self._timeout = timeout
        self._cluster_uid: str | None = None
        self._mark = ""
        self._marks: Sequence[str] = ()
        self._verified_at: float | None = None
        self._verified_connections = -1
        self._verifying = asyncio.Lock()

    async def bind(self) -> None:
        """Compare the database with the cluster, and record the new epoch on the cluster.

        Raises:
            WrongCluster: they do not belong together.
            KubeError: the cluster did not answer, so nothing is known.
        """
        connections = self._api.connections
        uid = await self._uid()
        bound = await installation.bind_cluster(self._db, self._leadership.lease, uid)
        if bound.cluster_uid != uid:
            raise WrongCluster(
                f"this database belongs to the cluster whose kube-system namespace has the uid {bound.cluster_uid}; "
                f"the cluster at {self._api.url} has {uid}"
            )
        self._cluster_uid = uid
        self._verified_at = self._clock.monotonic()
        self._verified_connections = connections
        self._marks = bound.marks
        reached, _ = await self._compare_record()
        await self.make_mark("" if reached is None else reached.mark)
        await self._record_epoch()

    async def make_mark(self, recorded: str = "") -> str:
        """Store a new mark, with which what this process records on the cluster is known to be of this database.

        `recorded` is the mark that the cluster has now, which was found to be of this database.
        """
        self._mark = secrets.token_hex(8)
        lease = self._leadership.lease
        self._marks = (await installation.add_mark(self._db, lease, self._mark, recorded=recorded)).marks
        return self._mark

    async def check(self) -> None:
        """Compare the database with the cluster without a lease, and change nothing.

        Raises:
            WrongCluster: they do not belong together.
            KubeError: the cluster did not answer.
        """
        uid, bound = await self._uid(), await installation.read(self._db)
        if bound.cluster_uid not in (None, uid):
            raise WrongCluster(f"the cluster at {self._api.url} has the uid {uid}, not {bound.cluster_uid}")
        self._marks = bound.marks
        reached = await self._record.read()
        if reached is not None:
            epoch = await leases.epoch(self._db, leases.CONTROLLER)
            self._compare(reached, epoch, (await entries.bounds(self._db)).last)

    async def pin(self) -> str:
        """Let `verify` expect the cluster that answers now. Return the uid of its namespace kube-system."""
        self._cluster_uid = await self._uid()
        return self._cluster_uid

    async def verify(self) -> None:
        """Raise WrongCluster if another cluster answers at this address now.

        A verified answer counts for VERIFY_EVERY seconds, but only until a connection is opened or a watch ends: moving
        an address to another cluster cuts the open connections. Call this before a write, so that the write does not
        reach another cluster, and after a read, before a missing object is taken as deleted.
        """
        # Many creates call this at once: the first one queries, and the others find its answer.
        async with self._verifying:
            if not self._is_verified():
                await self._verify()

    async def probe(self) -> None:
        """Verify the cluster now, even if an earlier answer still counts.

        Raises:
            WrongCluster: another cluster answers.
            KubeError: no answer came in time.
        """
        async with self._verifying:
            await self._verify()

    def doubt(self) -> None:
        """Let the next `verify` ask the cluster, although an earlier one may have been recent."""
        self._verified_at = None

    def _is_verified(self) -> bool:
        if self._verified_at is None or self._api.connections != self._verified_connections:
            return False
        return self._clock.monotonic() - self._verified_at < VERIFY_EVERY

    async def _verify(self) -> None:
        # Both are read before the request, so that a connection opened meanwhile makes the answer outdated.
        now, connections = self._clock.monotonic(), self._api.connections
        uid = await self._uid()
        if self._cluster_uid is not None and uid != self._cluster_uid:
            raise WrongCluster(
                f"another cluster answers at {self._api.url}: its kube-system namespace has the uid {uid}, "
                f"not {self._cluster_uid}"
            )
        self._verified_at = now
        self._verified_connections = connections

    async def keep(self) -> None:
        """Verify the cluster and record the feed position on it, again and again, until the lease is lost."""
        for _ in rounds():
            await asyncio.sleep(RECORD_EVERY)
            try:
                await self.verify()
                await self._record_epoch()
            except (KubeError, DatabaseUnavailable) as error:
                log.info("identity.not_recorded", error=str(error))

    async def _uid(self) -> str:
        found = await self._api.get(NAMESPACE, KUBE_SYSTEM, codec=OBJECT, timeout=self._timeout)
        return found.metadata.uid

    async def _compare_record(self) -> tuple[Reached | None, Reached]:
        """Return what is recorded on the cluster, and what is to be recorded now.

        Raises:
            WrongCluster: this database may not continue what is recorded.
        """
        epoch, position = self._leadership.lease.epoch, (await entries.bounds(self._db)).last
        reached = await self._record.read()
        if reached is not None:
            self._compare(reached, epoch, position)
        return reached, Reached(epoch=epoch, position=position, mark=self._mark)

    async def _record_epoch(self) -> None:
        reached, now = await self._compare_record()
        if reached is None:
            await self._record.create(now)
            return
        # After a conflict, the next period compares with what the other controller wrote.
        with suppress(KubeConflict):
            await self._record.write(now, over=reached)

    def _compare(self, reached: Reached, epoch: int, position: int) -> None:
        if reached.recovering:
            raise WrongCluster(
                f"`jobgate recover` has begun and not completed, as ConfigMap {self._record} records: run it again"
            )
        if reached.epoch > epoch or reached.position > position:
            raise WrongCluster(
                f"the database is older than what this cluster has seen of it: epoch {epoch} and feed position "
                f"{position} here, {reached.epoch} and {reached.position} in ConfigMap {self._record}"
            )
        # A database without marks is of a version before them, has been one since, or has never marked a cluster.
        if reached.mark and self._marks and reached.mark not in self._marks:
            raise WrongCluster(
                f"another copy of this database has worked on this cluster since, as ConfigMap {self._record} records: "
                "if this one is a former primary that came back, stop the processes that use it"
            )
