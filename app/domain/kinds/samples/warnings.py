"""Warnings about fields of valid SampleSets and SampleJobs that have no effect."""

from collections.abc import Iterator

from app.domain.cache.vocabulary import JobType
from app.domain.errors import pointer_to
from app.domain.kinds.samples.specs.sample_job import SampleJobSpec
from app.domain.kinds.samples.specs.sample_set import SampleSetSpec
from app.domain.plan import JobWarning
from app.domain.vocabulary import WarningSource

_SPEC = "/spec"


def set_warnings(spec: SampleSetSpec) -> Iterator[JobWarning]:
    """Yield a warning for each level of the cache that is skipped."""
    for index, level in enumerate(spec.levels):
        if not level.path:
            pointer = pointer_to(_SPEC, "cache", "levels", index)
            yield _warning(pointer, "the level has no effect: a level without a path names no directory")


def job_warnings(spec: SampleJobSpec) -> Iterator[JobWarning]:
    """Yield a warning for each field that is about a job of another type, and for the ignored number of partitions."""
    options = {
        JobType.SYNC: ("syncOptions", spec.sync_options),
        JobType.WARMUP: ("warmupOptions", spec.warmup_options),
        JobType.RMR: ("rmrOptions", spec.rmr_options),
        JobType.CLEAR: ("clearOptions", spec.clear_options),
    }
    given = [(kind, name) for kind, (name, value) in options.items() if value is not None]
    given += [(JobType.SYNC, "secretRef")] if spec.secret_ref is not None else []
    for kind, name in given:
        if spec.type != kind:
            message = f"{name} has no effect on a job of type {spec.type}: it belongs to the type {kind}"
            yield _warning(pointer_to(_SPEC, name), message)
    if spec.type == JobType.WARMUP and spec.warmup_options and spec.warmup_options.partitions is not None:
        message = "partitions has no effect: a warm-up has as many as its SampleSet"
        yield _warning(pointer_to(_SPEC, "warmupOptions", "partitions"), message)


def _warning(pointer: str, message: str) -> JobWarning:
    return JobWarning(source=WarningSource.JOBGATE, pointer=pointer, message=message)
