"""Both kinds' manifests as they are accepted, compared and described."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from app.domain import labels
from app.domain.cache.naming import NAME_MAX
from app.domain.cache.specs import sample_job, sample_set
from app.domain.cache.specs.limits import CacheLimits
from app.domain.cache.specs.sample_job import SampleJobSpec, check_sample_job
from app.domain.cache.specs.sample_set import API_VERSION, SampleSetSpec, check_sample_set
from app.domain.dialects.changes import immutable_changes
from app.domain.dialects.envelope import read_envelope
from app.domain.dialects.schema import manifest_schema
from app.domain.dialects.spec_model import SpecModel, read_in_part, read_spec
from app.domain.errors import FieldError, Problems, pointer_to
from app.domain.names import DNS_LABEL_MAX
from app.domain.plan import Manifest

_SPEC: Final = "/spec"
# What is said of a spec without a field that was left out because it could not be read.
_FOLLOWS: Final = {
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

Check = Callable[[Any, Mapping[str, Any], str, CacheLimits, Problems], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheKind:
    """A kind of the data cache: no job, so it has neither pods nor ranks, only a spec and its rules.

    `resource` is what its routes and the feed call it. What `has_objects` in the cluster keeps its name until they are
    gone. `set_name` is the set that an accepted manifest is about.
    """

    kind: str
    resource: str
    name_max: int
    has_objects: bool
    set_name: Callable[[Manifest], str]
    api_versions: tuple[str, ...]
    mutable_fields: tuple[str, ...]
    spec: type[SpecModel]
    check: Check
    supports_pause: bool = False

    def accept(self, manifest: Manifest, limits: CacheLimits) -> Manifest:
        """The manifest as it is stored, defaults filled in.

        Raises:
            InvalidManifest: with every error of the manifest.
        """
        problems = Problems()
        envelope = read_envelope(manifest, problems)
        _refuse_settings(envelope, problems)
        given = manifest.get("spec")
        spec = read_spec(self.spec, given, _SPEC, problems)
        if spec is not None:
            self.check(spec, envelope["metadata"], _SPEC, limits, problems)
        elif (part := read_in_part(self.spec, given)) is not None:
            understood, left_out = part
            follows = {code for place in left_out for code in _follows(place)}
            found = Problems()
            self.check(understood, envelope["metadata"], _SPEC, limits, found)
            problems.extend(error for error in found.errors if error.code not in follows)
        problems.raise_if_any(f"the {self.kind} is not valid")
        assert spec is not None, "without a problem there is a spec"
        return {**envelope, "spec": spec.model_dump(by_alias=True, exclude_none=True)}

    def changes(self, stored: Manifest, new: Manifest) -> Sequence[FieldError]:
        """Errors for what differs between two accepted manifests and may not."""
        return immutable_changes(stored, new, self.mutable_fields)

    def json_schema(self) -> dict[str, Any]:
        """JSON schema of the manifest."""
        return manifest_schema(self, self.spec)


def _follows(place: Sequence[str | int]) -> set[str]:
    names = [str(step) for step in place[-2:]]
    return _FOLLOWS.get(names[-1], set()) | _FOLLOWS.get(".".join(names), set())


def _refuse_settings(envelope: Manifest, problems: Problems) -> None:
    """Jobgate's own annotations are settings of jobs."""
    annotations = envelope["metadata"].get("annotations")
    for key in annotations if isinstance(annotations, dict) else ():
        if key in labels.CLIENT_ANNOTATIONS:
            at = pointer_to("/metadata/annotations", key)
            problems.add(at, "NotSupported", "this is a setting of jobs", "leave it out")


SAMPLE_SET: Final = CacheKind(
    kind=sample_set.KIND,
    resource="samplesets",
    name_max=NAME_MAX,
    has_objects=True,
    set_name=lambda manifest: str(manifest["metadata"]["name"]),
    api_versions=(API_VERSION,),
    mutable_fields=sample_set.MUTABLE_FIELDS,
    spec=SampleSetSpec,
    check=check_sample_set,
)
SAMPLE_JOB: Final = CacheKind(
    kind=sample_job.KIND,
    resource="samplejobs",
    name_max=DNS_LABEL_MAX,
    has_objects=False,
    set_name=lambda manifest: str(manifest["spec"]["sampleSetRef"]["name"]),
    api_versions=(API_VERSION,),
    mutable_fields=sample_job.MUTABLE_FIELDS,
    spec=SampleJobSpec,
    check=check_sample_job,
)
CACHE_KINDS: Final[Mapping[str, CacheKind]] = MappingProxyType({one.kind: one for one in (SAMPLE_SET, SAMPLE_JOB)})
