"""Both kinds of the data cache: their manifests as they are accepted, compared and described, and their status."""

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

from typing_extensions import override

from app.domain.cache.limits import CacheLimits
from app.domain.cache.naming import NAME_MAX
from app.domain.cache.reconcile.values import JobRecord, SetRecord
from app.domain.cache.vocabulary import SampleJobPhase, SetPhase
from app.domain.errors import FieldError, Problems, pointer_to
from app.domain.kinds.base import Facts, PodlessKind
from app.domain.kinds.changes import immutable_changes
from app.domain.kinds.envelope import read_envelope
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
    Wanted,
    job_conditions,
    job_figures,
    native_job_status,
    native_set_status,
    set_conditions,
    set_details,
    set_figures,
)
from app.domain.kinds.samples.warnings import job_warnings, set_warnings
from app.domain.kinds.spec.checks import Place, SpecChecks, read_and_check
from app.domain.kinds.spec.model import SpecModel
from app.domain.kinds.spec.schema import manifest_schema
from app.domain.kubernetes import labels
from app.domain.plan import JobWarning, Manifest
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


class _CacheKind(PodlessKind):
    """A kind of the data cache."""

    spec: ClassVar[type[SpecModel]]

    @override
    def accept(self, manifest: Manifest, limits: CacheLimits) -> Manifest:
        problems = Problems()
        envelope = read_envelope(manifest, problems)
        _refuse_settings(envelope, problems)
        checks: SpecChecks[Any] = SpecChecks(
            check=lambda spec, found: self.check(spec, envelope["metadata"], limits, found),
            is_consequence=lambda error, left_out: any(error.code in _consequences(place) for place in left_out),
        )
        spec = read_and_check(self.spec, manifest.get("spec"), problems, checks)
        problems.raise_if_any(f"the {self.kind} is not valid")
        assert spec is not None, "without a problem there is a spec"
        return {**envelope, "spec": spec.model_dump(by_alias=True, exclude_none=True)}

    @abstractmethod
    def check(self, spec: Any, metadata: Mapping[str, Any], limits: CacheLimits, problems: Problems) -> None:
        """Report everything that is wrong with a spec of the right shape."""

    @override
    def current(self, manifest: Manifest) -> Manifest:
        return without_empty_values(manifest)

    @override
    def changes(self, stored: Manifest, new: Manifest) -> Sequence[FieldError]:
        return immutable_changes(stored, new, self.mutable_fields)

    @override
    def json_schema(self) -> dict[str, Any]:
        return manifest_schema(self, self.spec)


def _consequences(place: Place) -> set[str]:
    # Several objects have a field `name`, so the step before it counts too.
    names = [str(step) for step in place[-2:]]
    return _CONSEQUENCES.get(names[-1], set()) | _CONSEQUENCES.get(".".join(names), set())


def _refuse_settings(envelope: Manifest, problems: Problems) -> None:
    """Report annotations of jobgate, which are settings of jobs."""
    annotations = envelope["metadata"].get("annotations")
    for key in annotations if isinstance(annotations, dict) else ():
        if key in labels.CLIENT_ANNOTATIONS:
            at = pointer_to("/metadata/annotations", key)
            problems.add(at, "NotSupported", "this is a setting of jobs", "leave it out")


class SampleSetKind(_CacheKind):
    """A data cache: a volume and the servers next to it."""

    kind = sample_set.KIND
    resource = "samplesets"
    word = "sample_set"
    api_versions = (API_VERSION,)
    mutable_fields = sample_set.MUTABLE_FIELDS
    spec = SampleSetSpec
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
    def frozen(self, record: Any, stored: Manifest, new: Manifest) -> Sequence[FieldError]:
        before, after = (SampleSetSpec.model_validate(manifest["spec"]) for manifest in (stored, new))
        return frozen_changes(record, before, after)

    @override
    def shown(self, facts: Facts) -> SampleSetFigures:
        return set_figures(facts)

    @override
    def detailed(self, record: Any) -> SampleSetDetails:
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

    kind = sample_job.KIND
    resource = "samplejobs"
    word = "sample_job"
    api_versions = (API_VERSION,)
    mutable_fields = sample_job.MUTABLE_FIELDS
    spec = SampleJobSpec
    is_about_set = True
    record = JobRecord
    phases = SampleJobPhase
    ended: ClassVar[frozenset[str]] = frozenset({SampleJobPhase.SUCCEEDED, SampleJobPhase.FAILED})
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
        check_sample_job(spec, metadata, _SPEC, limits, problems)

    @override
    def set_name(self, manifest: Manifest) -> str:
        return str(manifest["spec"]["sampleSetRef"]["name"])

    @override
    def require_editable(self, record: Any) -> None:
        require_editable(record)

    @override
    def shown(self, facts: Facts) -> SampleJobFigures:
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
