"""Both kinds of the data cache: their manifests as they are accepted, compared and described, and their status."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

from typing_extensions import override

from app.domain.cache.limits import CacheLimits
from app.domain.cache.naming import NAME_MAX
from app.domain.cache.reconcile.values import JobRecord, SetRecord
from app.domain.cache.vocabulary import ENDED_JOB_PHASES, SampleJobPhase, SetPhase
from app.domain.errors import FieldError, Problems
from app.domain.kinds.sample_kind import Facts, SampleKind
from app.domain.kinds.samples.edits import frozen_changes, require_editable
from app.domain.kinds.samples.specs import sample_job, sample_set
from app.domain.kinds.samples.specs.earlier import without_empty_values
from app.domain.kinds.samples.specs.mount_options import given_directories
from app.domain.kinds.samples.specs.sample_job import SampleJobSpec, check_sample_job
from app.domain.kinds.samples.specs.sample_set import API_VERSION, SampleSetSpec, check_sample_set
from app.domain.kinds.samples.status import (
    SampleJobFigures,
    SampleSetDetails,
    SampleSetFigures,
    job_conditions,
    job_figures,
    native_job_status,
    native_set_status,
    set_conditions,
    set_details,
    set_figures,
)
from app.domain.kinds.samples.warnings import job_warnings, set_warnings
from app.domain.kinds.spec.checks import Location
from app.domain.plan import JobWarning, Manifest
from app.domain.status.conditions import Wanted
from app.domain.vocabulary import ConditionType

_SPEC: Final = "/spec"
# The codes of errors that may exist only because the field of this name could not be read and was left out.
_CONSEQUENCES: Final = {
    "partitions": {"Required"},
    "source": {"DataSourceEmpty"},
    "uri": {"DataSourceEmpty"},
    "secretRef": {"SecretRefEmpty"},
    "secretRef.name": {"SecretRefNameEmpty"},
    "sampleSetRef.name": {"SampleSetRefEmpty"},
    "sampleSetRef": {"SampleSetRefEmpty"},
    "noSync": {"DataSourceEmpty"},
    "type": {"Required", "SecretRefEmpty", "RmrOptionsEmpty"},
    "rmrOptions": {"RmrOptionsEmpty"},
    "paths": {"RmrPathsEmpty"},
}


class _CacheKind(SampleKind):
    """A kind of the data cache."""

    @override
    def is_consequence(self, error: FieldError, left_out: Sequence[Location]) -> bool:
        return any(error.code in _consequences(place) for place in left_out)

    @override
    def current(self, manifest: Manifest) -> Manifest:
        return without_empty_values(manifest)


def _consequences(place: Location) -> set[str]:
    # Several objects have a field `name`, so the step before it counts too.
    names = [str(step) for step in place[-2:]]
    return _CONSEQUENCES.get(names[-1], set()) | _CONSEQUENCES.get(".".join(names), set())


class SampleSetKind(_CacheKind):
    """A data cache: a volume and the servers next to it."""

    name = sample_set.KIND
    resource = "samplesets"
    word = "sample_set"
    api_versions = (API_VERSION,)
    mutable_fields = sample_set.MUTABLE_FIELDS
    spec_model = SampleSetSpec
    name_max = NAME_MAX
    has_objects = True
    record = SetRecord
    phases = SetPhase
    figures = SampleSetFigures
    details = SampleSetDetails
    example: ClassVar[Manifest] = {
        "apiVersion": API_VERSION,
        "kind": sample_set.KIND,
        "metadata": {"name": "imagenet"},
        "spec": {
            "partitions": 2,
            "source": {"uri": "s3://imagenet.s3.eu-west-1.amazonaws.com/train/"},
            "secretRef": {"name": "imagenet-volume"},
            "cache": {"levels": [{"mediumType": "SSD", "path": "/mnt/disk1/cache", "cacheSize": 200_000}]},
        },
    }
    example_patch: ClassVar[Manifest] = {"spec": {"partitions": 3}}

    @override
    def check(self, spec: Any, metadata: Mapping[str, Any], limits: CacheLimits, problems: Problems) -> None:
        check_sample_set(spec, metadata, _SPEC, limits, problems)

    @override
    def limits_of_edit(self, stored: Manifest, limits: CacheLimits) -> CacheLimits:
        """Return the limits with the directories and the source of the stored set, which an edit may always keep."""
        spec = SampleSetSpec.model_validate(stored["spec"])
        own = given_directories(spec.mount_options, spec.levels)
        return replace(limits, cache_roots=(*limits.cache_roots, *own), stored_source=spec.source_uri)

    @override
    def forbidden_changes(self, record: Any, stored: Manifest, new: Manifest) -> Sequence[FieldError]:
        before, after = (SampleSetSpec.model_validate(manifest["spec"]) for manifest in (stored, new))
        return frozen_changes(record, before, after)

    @override
    def make_figures(self, facts: Facts) -> SampleSetFigures:
        return set_figures(facts)

    @override
    def make_details(self, record: Any) -> SampleSetDetails:
        return set_details(record)

    @override
    def native_status(self, record: Any) -> dict[str, Any]:
        return native_set_status(record)

    @override
    def warnings(self, manifest: Manifest, record: Any) -> Sequence[JobWarning]:
        return (*set_warnings(SampleSetSpec.model_validate(manifest["spec"])), *record.warnings)

    @override
    def conditions(self, record: Any, known: Collection[ConditionType]) -> Wanted:
        return set_conditions(record, known)


class SampleJobKind(_CacheKind):
    """A sync, warm-up, removal or clearing of the data of a SampleSet."""

    name = sample_job.KIND
    resource = "samplejobs"
    word = "sample_job"
    api_versions = (API_VERSION,)
    mutable_fields = sample_job.MUTABLE_FIELDS
    spec_model = SampleJobSpec
    is_about_set = True
    record = JobRecord
    phases = SampleJobPhase
    ended: ClassVar[frozenset[str]] = ENDED_JOB_PHASES
    figures = SampleJobFigures
    example: ClassVar[Manifest] = {
        "apiVersion": API_VERSION,
        "kind": sample_job.KIND,
        "metadata": {"name": "warm-imagenet"},
        "spec": {
            "type": "warmup",
            "sampleSetRef": {"name": "imagenet"},
            "warmupOptions": {"paths": ["n01440764"], "threads": 50},
        },
    }
    example_patch: ClassVar[Manifest] = {"spec": {"warmupOptions": {"threads": 100}}}

    @override
    def check(self, spec: Any, metadata: Mapping[str, Any], limits: CacheLimits, problems: Problems) -> None:
        check_sample_job(spec, _SPEC, limits, problems)

    @override
    def set_name(self, manifest: Manifest) -> str:
        return str(manifest["spec"]["sampleSetRef"]["name"])

    @override
    def require_editable(self, record: Any) -> None:
        require_editable(record)

    @override
    def make_figures(self, facts: Facts) -> SampleJobFigures:
        return job_figures(facts)

    @override
    def native_status(self, record: Any) -> dict[str, Any]:
        return native_job_status(record)

    @override
    def warnings(self, manifest: Manifest, record: Any) -> Sequence[JobWarning]:
        """Return the warnings about the manifest. A job has no objects in the cluster."""
        return list(job_warnings(SampleJobSpec.model_validate(manifest["spec"])))

    @override
    def conditions(self, record: Any, known: Collection[ConditionType]) -> Wanted:
        return job_conditions(record, known)


SAMPLE_SET: Final = SampleSetKind()
SAMPLE_JOB: Final = SampleJobKind()
