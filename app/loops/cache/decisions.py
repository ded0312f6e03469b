"""Reads the inputs of a reconcile of a SampleSet or a SampleJob, and calls the pure reconcile. It changes nothing."""

from dataclasses import dataclass, replace
from uuid import UUID

from app.db.samples import controller as sample_controller
from app.db.samples.rows import SampleRow
from app.domain.access.credentials import runtime_token_of
from app.domain.cache.job_options import JobOptions
from app.domain.cache.reconcile.cache_status import aggregate
from app.domain.cache.reconcile.needs import needs
from app.domain.cache.reconcile.sample_jobs import reconcile_job
from app.domain.cache.reconcile.sample_sets import reconcile_set
from app.domain.cache.reconcile.values import (
    Complaint,
    JobDecision,
    JobInputs,
    JobObserved,
    JobRecord,
    SetDecision,
    SetInputs,
    SetObserved,
    SetRecord,
)
from app.domain.cache.values import SecretValues, SetIdentity
from app.domain.cache.vocabulary import JobType, Need, SampleJobPhase, SetPart, SetPhase
from app.domain.kinds.samples.specs.sample_job import SampleJobSpec
from app.domain.plan import JobWarning
from app.domain.vocabulary import JobPhase
from app.k8s.errors import KubeError
from app.loops.cache.actuator import SampleWork
from app.loops.cache.observation import (
    ClusterReader,
    OptionsOrComplaint,
    SetObjects,
    Subject,
    replicas_of,
    subject_of,
)
from app.loops.context import ControllerContext

_POSTED = frozenset({SampleJobPhase.PENDING, SampleJobPhase.RUNNING})


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcileResult:
    """A decision and what its actions need.

    `observed` and `cache_observed` say whether the cluster and the caches were read. `set_uid` is the uid of a
    SampleJob's set.
    """

    decision: SetDecision | JobDecision
    work: SampleWork | None = None
    observed: bool = True
    cache_observed: bool = False
    set_uid: UUID | None = None


@dataclass(slots=True, kw_only=True)
class _Found:
    """The observation of a set, which grows with each need."""

    observed: SetObserved
    secret: SecretValues | None = None
    options: JobOptions | None = None


class SampleDecider:
    """Decides on sets and jobs. It remembers refused creations until the object is created, and warnings."""

    def __init__(self, context: ControllerContext) -> None:
        self._db = context.db
        self._runtimes = context.runtimes
        self._installation = str(context.installation_id)
        self._key = context.installation_key
        self._reader = ClusterReader(context.api, context.samples, timeout=context.settings.request_timeout)
        self._refusals: dict[str, dict[SetPart, str]] = {}
        self._warnings: dict[str, list[JobWarning]] = {}

    def forget(self, uid: str) -> None:
        self._refusals.pop(uid, None)
        self._warnings.pop(uid, None)

    async def decide_set(self, row: SampleRow, fresh_name: str) -> ReconcileResult:
        """Reconcile a SampleSet. `fresh_name` is an unused name for the option file of a sync.

        Raises:
            KubeError: the cluster cannot be read.
        """
        record = row.record
        assert isinstance(record, SetRecord)
        subject, leaving = self._subject(row), row.delete_requested_at is not None
        refusals = self._refusals.setdefault(str(row.uid), {})
        warnings = self._warnings.setdefault(str(row.uid), [])
        objects = await self._reader.objects(subject, leaving=leaving)
        found = _Found(observed=replace(objects.observe(subject.identity, refusals), warnings=tuple(warnings)))
        for need in sorted(needs(subject.spec, record, found.observed, deleted=leaving)):
            await self._fulfil(need, subject, record, objects, found)
        if record.phase is SetPhase.READY and not leaving:
            found.observed = replace(found.observed, in_use=await self._is_in_use(row))

        async def options() -> OptionsOrComplaint:
            return found.options or await self._reader.first_sync(subject)

        decision = reconcile_set(
            SetInputs(spec=subject.spec, deleted=leaving, record=record, observed=found.observed, fresh_name=fresh_name)
        )
        work = SampleWork(
            subject=subject,
            actions=decision.actions,
            kind=JobType.SYNC,
            objects=objects,
            secret=found.secret,
            options=options,
            refusals=refusals,
            warnings=warnings,
        )
        return ReconcileResult(decision=decision, work=work, cache_observed=found.observed.cache is not None)

    async def _fulfil(
        self, need: Need, subject: Subject, record: SetRecord, objects: SetObjects, found: _Found
    ) -> None:
        """Read what the need is about, and add it to the observation."""
        servers = objects.servers(subject)
        match need:
            case Need.SECRET:
                secret = await self._reader.volume_secret(subject)
                if isinstance(secret, Complaint):
                    found.observed = replace(found.observed, secret=secret)
                else:
                    found.secret = secret
            case Need.WARNING:
                found.observed = replace(found.observed, warning=await self._warning(subject, record, objects))
            case Need.SYNC_OPTIONS:
                options = await self._reader.first_sync(subject)
                if isinstance(options, Complaint):
                    found.observed = replace(found.observed, sync_refusal=options)
                else:
                    found.options = options
                    found.observed = replace(found.observed, digest=options.digest(self._key))
            case Need.SYNC_RESULT:
                answers = await self._runtimes.answers(servers[:1], JobType.SYNC, record.sync_job)
                # Server 0 runs all syncs. If it is not running, the first of the running servers is another one.
                answer = next((answer for answer in answers if answer.index == 0), None)
                found.observed = replace(found.observed, sync=answer)
            case Need.CACHE:
                # As upstream: while a set is being mounted, server 0 alone measures the cache.
                queried = servers[:1] if record.phase is SetPhase.MOUNT else servers
                reports = await self._runtimes.reports(queried)
                by_index = {server.index: report for server, report in zip(queried, reports, strict=True)}
                found.observed = replace(found.observed, cache=aggregate(reports), reports=by_index)

    async def _warning(self, subject: Subject, record: SetRecord, objects: SetObjects) -> Complaint | None:
        """Return why a server does not start.

        Raises:
            KubeError: the cluster cannot be read, and the set is Bound.
        """
        # Server 0 alone matters until the cache status is known.
        count = subject.spec.partitions if record.phase is SetPhase.PARTIAL_READY else 1
        try:
            return await self._reader.warning(subject, objects, servers=count)
        except KubeError:
            # Later phases go on with what the servers answer, whether or not the cause is known.
            if record.phase is SetPhase.BOUND:
                raise
            return None

    async def _is_in_use(self, row: SampleRow) -> bool:
        """Return whether a running job mounts the set's claim."""
        jobs = await sample_controller.jobs_mounting(self._db, row.namespace, row.name)
        return any(job.phase == JobPhase.RUNNING for job in jobs)

    async def decide_job(self, row: SampleRow, fresh_name: str) -> ReconcileResult:
        """Reconcile a SampleJob. `fresh_name` is an unused name for its option files.

        Raises:
            KubeError: the cluster cannot be read.
        """
        record = row.record
        assert isinstance(record, JobRecord)
        spec = SampleJobSpec.model_validate(row.manifest["spec"])
        set_row = await sample_controller.live_set(self._db, row.namespace, row.set_name)
        if set_row is None:
            inputs = JobInputs(spec=spec, record=record, observed=JobObserved(), fresh_name=fresh_name)
            return ReconcileResult(decision=reconcile_job(inputs), observed=False)
        subject = self._subject(set_row)
        observed = JobObserved(set_uid=str(set_row.uid), is_leaving=set_row.delete_requested_at is not None)
        objects, options_now = SetObjects(), None
        if record.phase is not SampleJobPhase.SUCCEEDED:
            objects = SetObjects(pods=await self._reader.pods(subject))
        if record.phase in _POSTED:
            observed = await self._observed_after_post(subject, objects, spec, record, observed)
        elif record.phase is not SampleJobPhase.SUCCEEDED:
            options_now = await self._reader.job_options(subject, spec)
            observed = self._observed_before_post(subject, objects, options_now, observed)

        async def options() -> OptionsOrComplaint:
            return options_now or await self._reader.job_options(subject, spec)

        decision = reconcile_job(JobInputs(spec=spec, record=record, observed=observed, fresh_name=fresh_name))
        work = SampleWork(
            subject=subject,
            actions=decision.actions,
            kind=JobType(spec.type),
            objects=objects,
            secret=None,
            options=options,
        )
        return ReconcileResult(decision=decision, work=work, set_uid=set_row.uid)

    def _observed_before_post(
        self, subject: Subject, objects: SetObjects, options: OptionsOrComplaint, observed: JobObserved
    ) -> JobObserved:
        """Add what a job that is not posted needs: the running servers, and the options that it would have now."""
        running = tuple(server.index for server in objects.servers(subject))
        if isinstance(options, Complaint):
            return replace(observed, running=running, refusal=options)
        return replace(observed, running=running, digest=options.digest(self._key))

    async def _observed_after_post(
        self, subject: Subject, objects: SetObjects, spec: SampleJobSpec, record: JobRecord, observed: JobObserved
    ) -> JobObserved:
        """Add what a posted job needs: the number of servers, and the answers of those that have the job."""
        servers = [server for server in objects.servers(subject) if server.index in record.servers]
        return replace(
            observed,
            replicas=replicas_of(await self._reader.runtime(subject)),
            answers=await self._runtimes.answers(servers, JobType(spec.type), record.job),
        )

    def _subject(self, row: SampleRow) -> Subject:
        identity = SetIdentity(
            uid=str(row.uid), namespace=row.namespace, name=row.name, installation=self._installation
        )
        return subject_of(identity, row.manifest, runtime_token_of(self._key, identity.uid))
