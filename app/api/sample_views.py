"""What goes over the wire of SampleSets and SampleJobs; as in `app.api.views`, every field is always present."""

from datetime import datetime
from typing import Any
from uuid import UUID

from app.api.views import View
from app.domain.cache.vocabulary import RemovalStage, SampleJobPhase, SetPhase


class DeletionView(View):
    requested_at: datetime
    by: str
    stage: RemovalStage | None
    """What the removal waits for; null until it has begun, gone when nothing is left."""


class SampleCacheView(View):
    """How much of the set's data is cached; over all of its servers."""

    total_bytes: int
    cached_bytes: int
    """The sum over the nodes: more than totalBytes where several have the same data."""
    whole: bool
    """Whether as much is cached as there is."""


class SampleRuntimeView(View):
    """The set's servers."""

    ready: int
    wanted: int
    """The partitions that the manifest asks for."""


class MountingJobView(View):
    uid: UUID
    name: str
    kind: str
    phase: str


class JobOfSetView(View):
    """A SampleJob of a set."""

    uid: UUID
    name: str
    type: str
    phase: SampleJobPhase


class _Named(View):
    uid: UUID
    namespace: str
    name: str
    kind: str
    generation: int
    """Rises with every edit of the spec, not with those of labels and annotations."""
    observed_generation: int
    """The generation that phase, reason and message are about."""


class _Observed(View):
    """`observedAt` and `cacheObservedAt` are told as they are now; their passing changes no ETag."""

    phase: str
    reason: str
    """What stands in the way, by the name of its event; empty where nothing does."""
    message: str
    deletion: DeletionView | None
    observed_at: datetime | None
    """When the controller last looked at it in the cluster."""


class SampleSetStatusView(_Observed, _Named):
    """A SampleSet without its spec and native status: what changes, and is cheap to poll."""

    phase: SetPhase
    cache_observed_at: datetime | None
    """When the set's servers last told how much they have cached."""
    cache: SampleCacheView | None
    """Null until the servers have told it."""
    runtime: SampleRuntimeView


class SampleJobStatusView(_Observed, _Named):
    """A SampleJob without its spec and native status."""

    phase: SampleJobPhase
    type: str
    sample_set: str
    """The set's name."""
    job_name: str | None
    """The name under which the set's servers have it; null until it is posted to them."""


class _Submitted(View):
    api_version: str
    labels: dict[str, str]
    annotations: dict[str, str]
    created_at: datetime
    created_by: str
    spec: dict[str, Any]
    """The manifest's spec in the names of its own system, defaults filled in."""
    native_status: dict[str, Any]
    """The status as the kind's own system shows it."""


class SampleSetView(_Submitted, SampleSetStatusView):
    """A data cache: a volume and the servers next to it."""

    jobs: list[MountingJobView] | None
    """Live jobs that mount the set's claim, the first 100. Null in lists and in the answer to a submission."""
    sample_jobs: list[JobOfSetView] | None
    """The SampleJobs of the set, the newest 100. Null in lists and in the answer to a submission."""


class SampleJobView(_Submitted, SampleJobStatusView):
    """A sync, warm-up, removal or clearing that was asked for."""


class SampleSetPage(View):
    items: list[SampleSetView]
    next_page_token: str | None
    """Null on the last page."""


class SampleJobPage(View):
    items: list[SampleJobView]
    next_page_token: str | None
    """Null on the last page."""


class SampleHistoryView(View):
    """One line of a SampleSet's or SampleJob's story."""

    seq: int
    at: datetime
    phase: str
    reason: str
    message: str
    actor: str


class SampleHistoryPage(View):
    items: list[SampleHistoryView]
    next_page_token: str | None


class SampleEventView(View):
    """What was done or stands in the way, by upstream's names of events."""

    seq: int
    at: datetime
    type: str
    """Normal or Warning."""
    reason: str
    message: str


class SampleEventPage(View):
    items: list[SampleEventView]
    next_page_token: str | None


class SampleDryRunView(View):
    """What a submission would store. Nothing was stored."""

    dry_run: bool
    manifest: dict[str, Any]


class SampleSetWatchEventView(View):
    """The data of an SSE event `sampleset`."""

    type: str
    """created, edited, deleted, gone or status."""
    at: datetime
    sample_set: SampleSetStatusView
    """The set as it is when the event is sent, which may be newer than the event."""


class SampleJobWatchEventView(View):
    """The data of an SSE event `samplejob`."""

    type: str
    """created, edited, deleted, gone or status."""
    at: datetime
    sample_job: SampleJobStatusView
    """The job as it is when the event is sent, which may be newer than the event."""
