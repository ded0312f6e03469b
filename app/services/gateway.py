"""All services of one process, put together, and what of them runs in the background."""

import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

from app.cancellation import TaskGroup
from app.clock import Clock
from app.db.engine import Database
from app.db.jobs.group_commit import GroupCommit
from app.domain.access.namespaces import EVERY_NAMESPACE, NamespaceSet
from app.domain.cache.specs.limits import CacheLimits
from app.domain.kinds.base import PodlessKind
from app.domain.kinds.registry import PODLESS_KINDS
from app.domain.planning import Planner
from app.services.access import Access
from app.services.autoscaling import Autoscaling
from app.services.control import JobControl
from app.services.credentials import JobCredentials
from app.services.di_server import DiServer
from app.services.freshness import FreshnessReader
from app.services.lasting import Lasting, LastingLimits
from app.services.logs import LogReader, Logs
from app.services.reading import Reading
from app.services.samples import SampleEditor, SampleReader, SampleSubmitter
from app.services.submitting import Hint
from app.services.submitting_jobs import JobSubmitter
from app.services.watching import Watcher


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that must hold for a process to be ready."""

    name: str
    ok: bool
    detail: str = ""


Readiness = Callable[[], Awaitable[Sequence[Check]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PodlessServices:
    """What a resource without pods is served by."""

    reading: SampleReader
    submitter: SampleSubmitter
    editor: SampleEditor


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """`namespaces` are those that are served here, whoever asks. `podless` has the other resources by name."""

    access: Access
    planner: Planner
    submitter: JobSubmitter
    control: JobControl
    credentials: JobCredentials
    di_server: DiServer
    autoscaling: Autoscaling
    reading: Reading
    podless: Mapping[str, PodlessServices]
    watcher: Watcher
    lasting: Lasting
    logs: Logs
    freshness: FreshnessReader
    commit: GroupCommit
    readiness: Readiness
    clock: Clock
    namespaces: NamespaceSet = EVERY_NAMESPACE

    async def run(self) -> None:
        """Commit submissions, follow the feed and recheck tokens until cancelled.

        Without it nothing is submitted, nobody is woken, and a revoked token keeps what it has open.
        """
        async with TaskGroup() as group:
            group.create_task(self.commit.run())
            group.create_task(self.watcher.run())
            group.create_task(self.lasting.run())

    def close(self) -> None:
        """End what lasts; call it when the process is told to stop, before its server waits for open requests."""
        self.watcher.close()
        self.lasting.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """What tells other processes to look: `intent` after a change people asked for, `feed` waits for news."""

    intent: Hint
    feed: Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """What services are made of. `stale_after` is longer than an idle cluster may be silent.

    `cache_limits` hold in every namespace.
    """

    db: Database
    clock: Clock
    access: Access
    planner: Planner
    installation_key: bytes = field(repr=False)
    hints: Hints
    readiness: Readiness
    log_reader: LogReader | None = None
    namespaces: NamespaceSet = EVERY_NAMESPACE
    stale_after: timedelta = timedelta(seconds=30)
    cache_limits: CacheLimits = field(default_factory=partial(CacheLimits, namespace=""))
    lasting_limits: LastingLimits = field(default_factory=LastingLimits)
    randomness: random.Random = field(default_factory=random.SystemRandom)

    def build(self) -> Services:
        commit = GroupCommit(self.db, self.planner.limits.pods)
        submitter = JobSubmitter(commit, self.planner, self.clock, self.hints.intent, self.randomness)
        reading = Reading(self.db, self.planner)
        control = JobControl(self.db, self.planner, self.clock, self.hints.intent)
        credentials = JobCredentials(self.installation_key)
        return Services(
            access=self.access,
            planner=self.planner,
            submitter=submitter,
            control=control,
            credentials=credentials,
            di_server=DiServer(self.db, control, credentials),
            autoscaling=Autoscaling(self.db, self.clock),
            reading=reading,
            podless={kind.resource: self._podless(kind) for kind in PODLESS_KINDS.values()},
            watcher=Watcher(self.db, self.hints.feed),
            lasting=Lasting(self.access, self.clock, self.lasting_limits),
            logs=Logs(self.db, self.log_reader),
            freshness=FreshnessReader(self.db, self.clock, self.stale_after),
            commit=commit,
            readiness=self.readiness,
            clock=self.clock,
            namespaces=self.namespaces,
        )

    def _podless(self, kind: PodlessKind) -> PodlessServices:
        return PodlessServices(
            reading=SampleReader(kind, self.db),
            submitter=SampleSubmitter(kind, self.db, self.clock, self.hints.intent, self.cache_limits, self.randomness),
            editor=SampleEditor(kind, self.db, self.clock, self.hints.intent, self.cache_limits),
        )
