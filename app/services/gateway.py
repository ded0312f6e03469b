"""The services of one process, and their background work."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from app.base.cancellation import TaskGroup
from app.base.clock import Clock
from app.db.jobs.group_commit import GroupCommit
from app.db.postgres.engine import Database
from app.domain.access.namespaces import EVERY_NAMESPACE, NamespaceSet
from app.domain.cache.limits import CacheLimits
from app.domain.kinds.registry import SAMPLE_KINDS
from app.domain.kinds.sample_kind import SampleKind
from app.domain.planning import Planner
from app.domain.retention import FOR_EVER, Retention
from app.domain.usage.prices import Prices
from app.log_store import LogStore
from app.services.access import Access
from app.services.di_server import DiServer
from app.services.editing.jobs import JobEditor
from app.services.editing.redaction import JobRedactor, SampleRedactor
from app.services.editing.samples import SampleEditor
from app.services.hints import FeedHint, Hint
from app.services.limits.long_request_limits import LongRequestLimits
from app.services.limits.long_requests import LongRequests
from app.services.limits.turns import Turns
from app.services.logs.containers import LogReader
from app.services.logs.kept import KeptReader
from app.services.logs.merged import MergedLogs
from app.services.logs.opening import Logs
from app.services.reading.autoscaling import Autoscaling
from app.services.reading.freshness import FreshnessReader
from app.services.reading.gang_apis import GangApis, unknown
from app.services.reading.jobs import JobReader
from app.services.reading.objects import list_turns
from app.services.reading.queues import QueueReader
from app.services.reading.samples import SampleReader
from app.services.reading.system import ReadinessChecks, SystemReader
from app.services.reading.usage import UsageReader
from app.services.submitting.cluster_dry_run import ClusterChecker, NoCluster
from app.services.submitting.cluster_match import ClusterMatch
from app.services.submitting.cluster_namespaces import NamespaceCheck
from app.services.submitting.jobs import JobSubmitter
from app.services.submitting.pod_sets import PodSetCheck
from app.services.submitting.samples import SampleSubmitter
from app.services.watching.watcher import Watcher

if TYPE_CHECKING:
    from app.services.oidc.sign_in import SignIn

# Submissions that are validated and stored at once: enough for large commits, and few enough that a submission is
# answered within a fraction of a second when its turn has come.
_SUBMISSIONS_AT_ONCE: Final = 128
# Seconds after which a client gets the answer that the process is overloaded, or that the database stores nothing.
_SUBMISSION_WAIT: Final = 10.0


@dataclass(frozen=True, slots=True)
class SampleServices:
    """The services of one sample kind."""

    reading: SampleReader
    submitter: SampleSubmitter
    editor: SampleEditor
    redactor: SampleRedactor


@dataclass(slots=True, kw_only=True)
class Services:
    """The services of one process, built from its connections and limits.

    Args:
        db: the pool for requests.
        clock: the time of the installation.
        host_clock: the clock of this host, with which the times of an issuer are compared.
        installation_key: derives the tokens with which the pods of a job call the gateway.
        job_hint: announces a changed intent of a job to the controller.
        sample_hint: the same for SampleSets and SampleJobs.
        feed_hint: returns when the feed may have new entries, and at the latest after its polling interval.
        readiness: runs the checks of /readyz.
        sign_in: signs users in at the OIDC issuer; None if none is configured.
        log_reader: reads the logs of running pods; None in a process without a cluster.
        log_store: has the kept logs; None if there is no log store.
        cluster: has the cluster check the objects of a dry run.
        gang_apis: returns which APIs of PodGroups the cluster serves, for the objects that are shown of a job.
        namespaces: the namespaces that this installation serves, for every caller.
        refuses_missing_namespaces: refuse new objects in namespaces that the cluster does not have.
        stale_after: age of the controller's last contact with the cluster from which status is stale. It is longer than
            an idle cluster is silent.
        cache_limits: limits of SampleSets, without a namespace.
        long_request_limits: limits of streams, long polls, logs and CSVs.
        keep_jobs: how long the records of ended jobs are kept.
        max_waiting_submissions: most submissions that wait for their turn; further ones are refused.
        prices: what usage costs; None without prices.
        usage_labels: the keys of the labels by which usage is added up.
        randomness: draws uids and the suffixes of generated names.
    """

    db: Database
    clock: Clock
    host_clock: Clock
    access: Access
    planner: Planner
    installation_key: bytes = field(repr=False)
    job_hint: Hint
    sample_hint: Hint
    feed_hint: FeedHint
    readiness: ReadinessChecks
    sign_in: "SignIn | None" = None
    log_reader: LogReader | None = None
    log_store: LogStore | None = None
    cluster: ClusterChecker = field(default_factory=NoCluster)
    gang_apis: GangApis = unknown
    namespaces: NamespaceSet = EVERY_NAMESPACE
    refuses_missing_namespaces: bool = True
    stale_after: timedelta = timedelta(seconds=30)
    cache_limits: CacheLimits = field(default_factory=partial(CacheLimits, namespace=""))
    long_request_limits: LongRequestLimits = field(default_factory=LongRequestLimits)
    keep_jobs: Retention = FOR_EVER
    max_waiting_submissions: int = 1000
    prices: Prices | None = None
    usage_labels: Sequence[str] = ()
    randomness: random.Random = field(default_factory=random.SystemRandom)

    reading: JobReader = field(init=False)
    submitter: JobSubmitter = field(init=False)
    submission_turns: Turns = field(init=False)
    editor: JobEditor = field(init=False)
    redactor: JobRedactor = field(init=False)
    samples: Mapping[str, SampleServices] = field(init=False)
    di_server: DiServer = field(init=False)
    autoscaling: Autoscaling = field(init=False)
    watcher: Watcher = field(init=False)
    long_requests: LongRequests = field(init=False)
    logs: Logs = field(init=False)
    merged_logs: MergedLogs = field(init=False)
    freshness: FreshnessReader = field(init=False)
    queues: QueueReader = field(init=False)
    usage: UsageReader = field(init=False)
    system: SystemReader = field(init=False)
    namespace_check: NamespaceCheck = field(init=False)
    cluster_match: ClusterMatch = field(init=False)
    _commit: GroupCommit = field(init=False)

    def __post_init__(self) -> None:
        lists = list_turns()
        self._commit = GroupCommit(self.db, self.planner.limits.pods)
        self.reading = JobReader(self.db, self.planner, lists, self.gang_apis)
        self.submitter = JobSubmitter(
            self._commit, self.planner, self.clock, self.job_hint, self.randomness, PodSetCheck(self.db)
        )
        self.submission_turns = Turns(
            "submissions",
            at_once=_SUBMISSIONS_AT_ONCE,
            max_waiting=self.max_waiting_submissions,
            max_seconds=_SUBMISSION_WAIT,
        )
        self.editor = JobEditor(self.db, self.planner, self.clock, self.job_hint)
        self.redactor = JobRedactor(self.db, self.reading, self.planner, self.clock)
        self.samples = {kind.resource: self._sample_services(kind, lists) for kind in SAMPLE_KINDS.values()}
        self.di_server = DiServer(self.db, self.editor, self.installation_key)
        self.autoscaling = Autoscaling(self.db, self.clock)
        self.watcher = Watcher(self.db, self.feed_hint)
        self.long_requests = LongRequests(self.access, self.host_clock, self.long_request_limits)
        kept_logs = None if self.log_store is None else KeptReader(self.db, self.log_store)
        self.logs = Logs(self.db, self.log_reader, kept_logs)
        self.merged_logs = MergedLogs(self.reading, self.logs, self.watcher)
        self.freshness = FreshnessReader(self.db, self.clock, self.stale_after)
        self.queues = QueueReader(self.db, self.freshness, self.planner.limits.pods)
        self.usage = UsageReader(self.db, lists, self.clock, self.prices, self.usage_labels)
        self.system = SystemReader(self.db, self.freshness, self.readiness)
        self.cluster_match = ClusterMatch(self.db, self.freshness)
        self.namespace_check = NamespaceCheck(
            self.db, self.clock, self.freshness, required=self.refuses_missing_namespaces
        )

    def _sample_services(self, kind: SampleKind, lists: Turns) -> SampleServices:
        hint, limits = self.sample_hint, self.cache_limits
        reading = SampleReader(kind, self.db, lists)
        return SampleServices(
            reading,
            SampleSubmitter(kind, self.db, self.clock, hint, limits, self.randomness),
            SampleEditor(kind, self.db, self.clock, hint, limits),
            SampleRedactor(self.db, reading, self.clock),
        )

    async def run(self) -> None:
        """Commit submissions, read versions and keys, follow the feed and recheck tokens, until cancelled.

        Without it, submissions and polls wait forever, streams and long polls learn of no change, and requests of a
        revoked token stay open.
        """
        async with TaskGroup() as group:
            group.create_task(self._commit.run())
            group.create_task(self.watcher.run())
            group.create_task(self.long_requests.run())
            group.create_task(self.reading.run())
            if self.sign_in is not None:
                group.create_task(self.sign_in.run())
            for services in self.samples.values():
                group.create_task(services.reading.run())

    def close(self) -> None:
        """End all long-running requests. The server waits for open requests, so call this before it stops."""
        self.watcher.close()
        self.long_requests.close()
