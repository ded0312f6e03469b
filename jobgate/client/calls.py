"""The requests of each resource, as values. The routes are those of docs/api.md."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypedDict, TypeVar
from uuid import UUID

from jobgate.client.log_options import LogOptions, log_query
from jobgate.client.types import (
    Dependents,
    DryRun,
    Event,
    History,
    Job,
    JobQueue,
    JobQueuePage,
    JobStatus,
    JobSummary,
    JobUsage,
    PostedManifest,
    Redaction,
    Replica,
    ResourceDryRun,
    SampleJob,
    SampleJobStatus,
    SampleJobSummary,
    SampleSet,
    SampleSetStatus,
    SampleSetSummary,
    ScaleRecord,
    UsagePage,
)
from jobgate.client.wire import (
    API,
    JSON,
    MERGE_PATCH,
    BatchItem,
    Call,
    DryRunMode,
    Manifest,
    Manifests,
    Page,
    QueryValue,
    json_content,
    manifest_content,
    manifests_content,
    query_of,
    segment,
)

Whole = TypeVar("Whole", bound=Job | SampleSet | SampleJob)
State = TypeVar("State", bound=JobStatus | SampleSetStatus | SampleJobStatus)
Summary = TypeVar("Summary", bound=JobSummary | SampleSetSummary | SampleJobSummary)
Draft = TypeVar("Draft", bound=DryRun | ResourceDryRun)
# An object that the gateway returned.
_Returned = (
    Job
    | JobStatus
    | JobSummary
    | SampleSet
    | SampleSetStatus
    | SampleSetSummary
    | SampleJob
    | SampleJobStatus
    | SampleJobSummary
)
# A name in a namespace, a uid, or an object that the gateway returned.
Ref = str | UUID | _Returned


class Filters(TypedDict, total=False):
    """Which objects a list has (docs/api.md#lists). `set` is the SampleSet of SampleJobs."""

    phase: str | Sequence[str] | None
    kind: str | Sequence[str] | None
    uid: str | Sequence[str] | None
    label_selector: str | None
    name: str | None
    prefix: str | None
    search: str | None
    created_by: str | None
    created_after: datetime | None
    created_before: datetime | None
    finished_after: datetime | None
    finished_before: datetime | None
    queue: str | None
    still_running: bool | None
    deleted: bool | None
    set: str | None
    page_size: int | None


class Secrets(TypedDict, total=False):
    """What a redaction removes: values of environment variables and of fields of the manifest, and texts."""

    env: Sequence[str]
    fields: Sequence[str]
    texts: Sequence[str]


def version_header(if_match: str | None) -> dict[str, str]:
    return {} if if_match is None else {"If-Match": if_match}


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceCalls(Generic[Whole, State, Summary, Draft]):
    """The requests that all resources have. `namespace` applies where a reference is only a name.

    Args:
        whole: the type of an object.
        state: that of an object without its manifest.
        summary: that of a row of a list.
        draft: that of a dry run.
    """

    resource: str
    whole: type[Whole]
    state: type[State]
    summary: type[Summary]
    draft: type[Draft]
    namespace: str

    def collection(self, namespace: str | None = None) -> str:
        return f"{API}/namespaces/{segment(namespace or self.namespace)}/{self.resource}"

    def named(self, ref: Ref, namespace: str | None = None) -> str:
        """Return the path of an object by name, which writes need."""
        if isinstance(ref, UUID):
            raise TypeError("a change needs the name of the object; a uid can only be read")
        if isinstance(ref, str):
            return f"{self.collection(namespace)}/{segment(ref)}"
        return f"{self.collection(ref.namespace)}/{segment(ref.name)}"

    def readable(self, ref: Ref, namespace: str | None = None) -> str:
        """Return the path of an object by uid if it is known: a later object can have the same name."""
        if isinstance(ref, str):
            return self.named(ref, namespace)
        return f"{API}/{self.resource}/{ref if isinstance(ref, UUID) else ref.uid}"

    def submit(self, manifest: Manifest, key: str, namespace: str | None = None) -> Call[Whole]:
        content, media_type = manifest_content(manifest)
        headers = {"Content-Type": media_type, "Idempotency-Key": key}
        return Call(method="POST", path=self.collection(namespace), answer=self.whole, headers=headers, content=content)

    def submit_batch(
        self, manifests: Manifests, key: str, namespace: str | None = None, *, atomic: bool
    ) -> Call[Page[BatchItem[Whole]]]:
        content, media_type = manifests_content(manifests)
        return Call(
            method="POST",
            path=f"{self.collection(namespace)}/batch",
            answer=Page[BatchItem[self.whole]],  # type: ignore[name-defined]
            query=query_of(atomic=atomic),
            headers={"Content-Type": media_type, "Idempotency-Key": key},
            content=content,
        )

    def dry_run(self, manifest: Manifest, mode: DryRunMode, namespace: str | None = None) -> Call[Page[Draft]]:
        content, media_type = manifest_content(manifest)
        return Call(
            method="POST",
            path=f"{self.collection(namespace)}/dry-run",
            answer=Page[self.draft],  # type: ignore[name-defined]
            query=query_of(dry_run=mode),
            headers={"Content-Type": media_type},
            content=content,
        )

    def get(self, ref: Ref, namespace: str | None = None) -> Call[Whole]:
        return Call(method="GET", path=self.readable(ref, namespace), answer=self.whole)

    def posted_manifest(self, ref: Ref, namespace: str | None = None) -> Call[PostedManifest]:
        return self.part(ref, "posted-manifest", PostedManifest, namespace)

    def status(self, ref: Ref, namespace: str | None = None) -> Call[State]:
        return Call(method="GET", path=f"{self.readable(ref, namespace)}/status", answer=self.state)

    def page(self, namespace: str | None, filters: Filters) -> Call[Page[Whole]]:
        """Return the request for one page of the objects of a namespace, or of all namespaces for the name `*`."""
        answer = Page[self.whole]  # type: ignore[name-defined]
        return Call(method="GET", path=self._list_path(namespace), answer=answer, query=query_of(**filters))

    def summaries(self, namespace: str | None, filters: Filters) -> Call[Page[Summary]]:
        """Return the request for one page with what a table shows of the same objects."""
        answer = Page[self.summary]  # type: ignore[name-defined]
        query = query_of(view="summary", **filters)
        return Call(method="GET", path=self._list_path(namespace), answer=answer, query=query)

    def _list_path(self, namespace: str | None) -> str:
        return f"{API}/{self.resource}" if namespace == "*" else self.collection(namespace)

    def replace(
        self, ref: Ref, manifest: Manifest | Whole, namespace: str | None = None, if_match: str | None = None
    ) -> Call[Whole]:
        content, media_type = manifest_content(manifest)
        headers = {"Content-Type": media_type, **version_header(if_match)}
        return Call(method="PUT", path=self.named(ref, namespace), answer=self.whole, headers=headers, content=content)

    def patch(
        self, ref: Ref, patch: Mapping[str, Any], namespace: str | None = None, if_match: str | None = None
    ) -> Call[Whole]:
        headers = {"Content-Type": MERGE_PATCH, **version_header(if_match)}
        content = json_content(patch)
        return Call(
            method="PATCH", path=self.named(ref, namespace), answer=self.whole, headers=headers, content=content
        )

    def delete(
        self, ref: Ref, reason: str | None, namespace: str | None = None, if_match: str | None = None
    ) -> Call[Whole]:
        return Call(
            method="DELETE",
            path=self.named(ref, namespace),
            answer=self.whole,
            query=query_of(reason=reason),
            headers=version_header(if_match),
        )

    def redact(self, uid: UUID, selection: Secrets, page_token: str | None) -> Call[Redaction]:
        given: dict[str, Any] = {name: values for name, values in selection.items() if values}
        return Call(
            method="POST",
            path=f"{self.readable(uid)}/redact",
            answer=Redaction,
            headers={"Content-Type": JSON},
            content=json_content(given if page_token is None else given | {"pageToken": page_token}),
        )

    def history(self, ref: Ref, namespace: str | None, page_token: str | None) -> Call[Page[History]]:
        return self.part(ref, "history", Page[History], namespace, page_token=page_token)

    def events(self, ref: Ref, namespace: str | None, page_token: str | None) -> Call[Page[Event]]:
        return self.part(ref, "events", Page[Event], namespace, page_token=page_token)

    def part(self, ref: Ref, name: str, answer: type[Any], namespace: str | None, **query: QueryValue) -> Call[Any]:
        """Return the request for what the API has below an object, such as its history."""
        return Call(
            method="GET", path=f"{self.readable(ref, namespace)}/{name}", answer=answer, query=query_of(**query)
        )

    def watch(self, namespace: str | None) -> Call[bytes]:
        """Return the request for the changes of all objects of a namespace, or of all namespaces for the name `*`."""
        wanted = None if namespace == "*" else namespace or self.namespace
        return Call(method="GET", path=f"{API}/{self.resource}/watch", answer=bytes, query=query_of(namespace=wanted))


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCalls(ResourceCalls[Job, JobStatus, JobSummary, DryRun]):
    """The requests that only jobs have."""

    def replicas(
        self, ref: Ref, namespace: str | None, *, task: str | None, phase: str | None, page_token: str | None
    ) -> Call[Page[Replica]]:
        return self.part(ref, "replicas", Page[Replica], namespace, task=task, phase=phase, page_token=page_token)

    def scale_records(self, ref: Ref, namespace: str | None, page_token: str | None) -> Call[Page[ScaleRecord]]:
        return self.part(ref, "scale-records", Page[ScaleRecord], namespace, page_token=page_token)

    def log(self, ref: Ref, namespace: str | None, options: LogOptions) -> Call[bytes]:
        return Call(method="GET", path=f"{self.readable(ref, namespace)}/logs", answer=bytes, query=log_query(options))

    def scale(
        self,
        ref: Ref,
        replicas: int | Mapping[str, int],
        *,
        task: str | None = None,
        reason: str | None = None,
        namespace: str | None = None,
    ) -> Call[Job]:
        sizes = {"replicas": replicas, "task": task} if isinstance(replicas, int) else {"tasks": dict(replicas)}
        return self._action(ref, "scale", {**sizes, "reason": reason}, namespace)

    def act(self, ref: Ref, action: str, reason: str | None, namespace: str | None = None) -> Call[Job]:
        """Return the request that pauses, resumes or cancels a job.

        Its repetition may find that the job has ended and be refused, so it is not repeated if its answer was lost.
        """
        return self._action(ref, action, {"reason": reason}, namespace, is_repeatable=False)

    def retry(
        self, ref: Ref, key: str, *, name: str | None, reason: str | None, namespace: str | None = None
    ) -> Call[Job]:
        headers = {"Idempotency-Key": key}
        return self._action(ref, "retry", {"name": name, "reason": reason}, namespace, headers=headers)

    def _action(
        self,
        ref: Ref,
        action: str,
        body: Mapping[str, Any],
        namespace: str | None,
        *,
        is_repeatable: bool = True,
        headers: Mapping[str, str] | None = None,
    ) -> Call[Job]:
        given = {name: value for name, value in body.items() if value is not None}
        return Call(
            method="POST",
            path=f"{self.named(ref, namespace)}/{action}",
            answer=Job,
            headers={"Content-Type": JSON, **(headers or {})},
            content=json_content(given),
            is_repeatable=is_repeatable,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleSetCalls(ResourceCalls[SampleSet, SampleSetStatus, SampleSetSummary, ResourceDryRun]):
    """The requests that only SampleSets have."""

    def dependents(self, ref: Ref, namespace: str | None = None) -> Call[Dependents]:
        return Call(method="GET", path=f"{self.readable(ref, namespace)}/dependents", answer=Dependents)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueCalls:
    """The requests about queues. `namespace` applies unless another one is given."""

    namespace: str

    def get(self, name: str, namespace: str | None = None) -> Call[JobQueue]:
        path = f"{API}/namespaces/{segment(namespace or self.namespace)}/queues/{segment(name)}"
        return Call(method="GET", path=path, answer=JobQueue)

    def page(self, namespace: str | None, page_size: int | None = None) -> Call[JobQueuePage]:
        """Return the request for one page of the queues of a namespace, or of all namespaces for the name `*`."""
        only = None if namespace == "*" else namespace or self.namespace
        query = query_of(namespace=only, page_size=page_size)
        return Call(method="GET", path=f"{API}/queues", answer=JobQueuePage, query=query)


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageFilter:
    """Which usage is wanted: of the days from `first` to `last`, as in 2026-01-31, and of these jobs and resources.

    Without days, it is that of the last 30 days. Empty filters match everything that the user may see.
    """

    first: str | None = None
    last: str | None = None
    namespaces: Sequence[str] = ()
    users: Sequence[str] = ()
    queues: Sequence[str] = ()
    kinds: Sequence[str] = ()
    resources: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageCalls:
    """The requests about usage. `namespace` is that of jobs, unless another one is given."""

    namespace: str

    def groups(self, by: Sequence[str], where: UsageFilter) -> Call[UsagePage]:
        """Return the request for one page of the usage by these dimensions."""
        return Call(method="GET", path=f"{API}/usage", answer=UsagePage, query=_usage_query(by, where))

    def csv(self, by: Sequence[str], where: UsageFilter) -> Call[bytes]:
        query = (*_usage_query(by, where), ("format", "csv"))
        return Call(method="GET", path=f"{API}/usage", answer=bytes, query=query)

    def of_job(self, name: str, namespace: str | None = None) -> Call[JobUsage]:
        path = f"{API}/namespaces/{segment(namespace or self.namespace)}/jobs/{segment(name)}/usage"
        return Call(method="GET", path=path, answer=JobUsage)


def _usage_query(by: Sequence[str], where: UsageFilter) -> tuple[tuple[str, str], ...]:
    return query_of(
        by=",".join(by) or None,
        from_=where.first,
        to=where.last,
        namespace=where.namespaces,
        user=where.users,
        queue=where.queues,
        kind=where.kinds,
        resource=where.resources,
    )
