"""Composes `jobgate recover`: it compares, reports, and with a confirmation recovers."""

import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from app.base import faultpoints
from app.db.installation.identity import Installation
from app.domain.recovery.differences import Choices, Difference, JobFinding, with_remedies
from app.loops.leadership.lease import Leadership
from app.loops.recovery.recovery import Recovery
from app.loops.recovery.survey import InstallationScope, find_unknown_sets
from app.running.connections import Connections, NotConfigured, connections
from app.running.controlling import lease_database
from app.settings import ENV_PREFIX, Settings

# A stopped controller gives the lease away at its first renewal after its limit. Then its lease may have to expire.
_LEASES_AWAITED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What was found. `stopped` is why the controller stops, or empty. `sets` are StatefulSets that are not known."""

    stopped: str
    findings: Sequence[JobFinding]
    sets: Sequence[str]

    @property
    def differs(self) -> bool:
        """Whether there is something to recover. A job that only has to start differs from nothing."""
        return bool(self.stopped) or any(item.difference is not Difference.UNSTARTED for item in self.findings)


async def recover(
    settings: Settings, choices: Choices, *, rebinds: bool, confirmed: bool, show: Callable[[Report], None]
) -> bool:
    """Compare and show the differences. With `confirmed`, recover. Return whether differences are left.

    With `rebinds`, the cluster may be another one than that of the database.

    Raises:
        NotConfigured: a setting is missing, or another process has the lease.
        NoRemedy: a remedy must be chosen.
        WrongCluster, KubeError, DatabaseUnavailable, LeaseLost: nothing is complete; run it again.
    """
    faultpoints.arm(os.environ)
    async with connections(settings) as opened, AsyncExitStack() as stack:
        lease_db = await lease_database(stack, settings, opened)
        leadership = Leadership(
            lease_db, opened.clock, ttl=settings.lease_seconds, renew_every=settings.lease_seconds / 5
        )
        scope = _scope(settings, opened, opened.installation)
        recovery = Recovery(
            scope,
            opened.db,
            lease_db,
            leadership,
            opened.clock,
            system_namespace=settings.system_namespace,
        )
        if await recovery.identify() and not rebinds:
            raise NotConfigured(
                f"{await recovery.mismatch()}: correct {ENV_PREFIX}KUBECONFIG, or bind the database to this cluster "
                "with --cluster"
            )
        report = Report(
            stopped=await recovery.mismatch(),
            findings=await recovery.find_differences(),
            sets=await find_unknown_sets(scope, opened.db),
        )
        show(report)
        if not confirmed or not report.differs:
            return report.differs
        with_remedies(report.findings, choices)  # before anything changes
        async with _lease(settings, recovery, leadership):
            await recovery.run(choices)
        return False


def _scope(settings: Settings, opened: Connections, installation: Installation) -> InstallationScope:
    assert opened.api is not None
    return InstallationScope(
        api=opened.api,
        installation=str(installation.id),
        namespaces=settings.namespaces,
        served=settings.served_namespaces(),
        timeout=settings.request_timeout,
    )


@asynccontextmanager
async def _lease(settings: Settings, recovery: Recovery, leadership: Leadership) -> AsyncIterator[None]:
    within = settings.contact_limit() + _LEASES_AWAITED * settings.lease_seconds
    try:
        if not await recovery.acquire(within):
            raise NotConfigured(
                "the lease of the controller was not free: a controller works on this cluster, or another "
                "`jobgate recover` is running. Nothing was changed"
            )
        yield
    finally:
        await leadership.release()
