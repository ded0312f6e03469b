"""What the status of a SampleSet and that of a SampleJob have beside what every status has."""

from datetime import datetime

from app.domain.cache.reconcile.values import JobRecord, SetRecord
from app.domain.cache.vocabulary import RemovalStage
from app.domain.kind import Facts, Figures


class SampleCache(Figures):
    """How much of the set's data its servers have cached, in all."""

    total_bytes: int
    cached_bytes: int
    """The sum over the nodes: more than totalBytes where several nodes have the same data."""
    whole: bool
    """Whether as much is cached as there is."""
    observed_at: datetime | None
    """When the servers last reported it."""


class SampleRuntime(Figures):
    """The set's servers."""

    ready: int
    wanted: int
    """The partitions that the manifest asks for."""


class SampleSetFigures(Figures):
    cache: SampleCache | None
    """Null until the servers have reported it."""
    runtime: SampleRuntime
    removal: RemovalStage | None
    """What the removal of a deleted set waits for; null until it has begun, gone when nothing is left."""


class SampleJobFigures(Figures):
    type: str
    sample_set: str
    """The set's name."""
    job_name: str | None
    """The name under which the set's servers have the job; null until it is posted to them."""


def set_figures(facts: Facts) -> SampleSetFigures:
    record: SetRecord = facts.record
    cache = (
        None
        if record.cache is None
        else SampleCache(
            total_bytes=record.cache.total_bytes,
            cached_bytes=record.cache.cached_bytes,
            whole=record.cache.is_whole,
            observed_at=facts.cache_observed_at,
        )
    )
    return SampleSetFigures(
        cache=cache,
        runtime=SampleRuntime(ready=record.runtime.ready_replicas, wanted=facts.manifest["spec"]["partitions"]),
        removal=RemovalStage.GONE if facts.gone else record.stage if facts.deleted else None,
    )


def job_figures(facts: Facts) -> SampleJobFigures:
    record: JobRecord = facts.record
    spec = facts.manifest["spec"]
    return SampleJobFigures(type=spec["type"], sample_set=spec["sampleSetRef"]["name"], job_name=record.job or None)
