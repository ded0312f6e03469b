"""MxJob of mxnet.mlkube.io/v1beta1: MXNet training on one worker, or over a scheduler, servers and workers.

spec -> validation on the way in, plan and native on the way out; docs/kinds/mx-job.md says where this differs from
upstream.
"""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Final

from typing_extensions import override

from app.domain.dialects.base import Dialect, Given, Limits, Site, StatusFacts
from app.domain.dialects.changes import immutable_changes
from app.domain.dialects.envelope import read_envelope, usable_name
from app.domain.dialects.mx_job.native import native_status
from app.domain.dialects.mx_job.plan import plan_job
from app.domain.dialects.mx_job.spec import MxJobSpec
from app.domain.dialects.mx_job.validation import validate
from app.domain.dialects.schema import manifest_schema
from app.domain.dialects.spec_model import read_in_part, read_spec
from app.domain.errors import FieldError, Problems
from app.domain.plan import JobIdentity, JobPlan, Manifest
from app.domain.policy.declared import DeclaredTemplate

_RUNTIME_ID_LENGTH: Final = 4
# What is said of a spec without a field that was left out because it could not be read.
_FOLLOWS: Final = {
    "template": {"MissingTemplate"},
    "mxReplicaType": {"MissingReplicaType", "WorkersInLocalMode", "Duplicate", "NoReplicas"},
    "jobMode": {"UnknownJobMode"},
    "replicaSpecs": {"MissingReplicaType", "NoReplicas"},
}


class MxJobDialect(Dialect):
    kind: ClassVar[str] = "MxJob"
    api_versions: ClassVar[tuple[str, ...]] = ("mxnet.mlkube.io/v1beta1",)
    mutable_fields: ClassVar[tuple[str, ...]] = ("/metadata/labels", "/metadata/annotations")

    @override
    def accept(self, manifest: Manifest, limits: Limits, given: Given) -> Manifest:
        problems = Problems()
        envelope = read_envelope(manifest, problems)
        name = usable_name(envelope)
        spec = read_spec(MxJobSpec, manifest.get("spec"), "/spec", problems)
        if spec is not None:
            spec = _with_runtime_id(spec, given)
            validate(spec, name, "/spec", limits, problems)
        elif (part := read_in_part(MxJobSpec, manifest.get("spec"))) is not None:
            understood, left_out = part
            _validate_in_part(_with_runtime_id(understood, given), left_out, name, limits, problems)
        problems.raise_if_any("the MxJob is not valid")
        assert spec is not None, "without a problem there is a spec"
        return {**envelope, "spec": spec.model_dump(by_alias=True, exclude_none=True)}

    @override
    def changes(self, stored: Manifest, new: Manifest) -> Sequence[FieldError]:
        return immutable_changes(stored, new, self.mutable_fields)

    @override
    def plan(self, manifest: Manifest, identity: JobIdentity, *, resumed: bool, site: Site) -> JobPlan:
        return plan_job(MxJobSpec.model_validate(manifest["spec"]), manifest, identity, site)

    @override
    def pod_templates(self, posted: Manifest, accepted: Manifest) -> Sequence[DeclaredTemplate]:
        return [
            DeclaredTemplate.written_at(replica["template"], f"/spec/replicaSpecs/{index}/template")
            for index, replica in enumerate(accepted["spec"]["replicaSpecs"])
        ]

    @override
    def native_status(self, manifest: Manifest, facts: StatusFacts) -> dict[str, Any]:
        return native_status(MxJobSpec.model_validate(manifest["spec"]), manifest["metadata"]["name"], facts)

    @override
    def json_schema(self) -> dict[str, Any]:
        return manifest_schema(self, MxJobSpec)


def _with_runtime_id(spec: MxJobSpec, given: Given) -> MxJobSpec:
    """What was drawn for a job stays its own."""
    if spec.runtime_id is not None:
        return spec
    drawn = given.stored["spec"]["RuntimeId"] if given.stored else given.random()[:_RUNTIME_ID_LENGTH]
    return spec.model_copy(update={"runtime_id": drawn})


def _validate_in_part(
    spec: MxJobSpec, left_out: Iterable[tuple[str | int, ...]], job: str, limits: Limits, problems: Problems
) -> None:
    """Tell what else is wrong with a spec whose shape is, but nothing that may only follow from that."""
    follows = {code for place in left_out for code in _FOLLOWS.get(str(place[-1]), ())}
    found = Problems()
    validate(spec, job, "/spec", limits, found)
    problems.extend(error for error in found.errors if error.code not in follows)
