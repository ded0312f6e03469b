"""GenericJob of batch.tensorstack.dev/v1beta1: replicas of any type, and rules over their ranks for the job's end.

spellings -> spec -> validation on the way in, plan and native on the way out; docs/kinds/generic-job.md says where
this differs from upstream.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

from typing_extensions import override

from app.domain.dialects.base import Dialect, Given, Limits, Site, StatusFacts
from app.domain.dialects.changes import immutable_changes
from app.domain.dialects.envelope import read_envelope, usable_name
from app.domain.dialects.generic_job.native import native_status
from app.domain.dialects.generic_job.plan import plan_job
from app.domain.dialects.generic_job.spec import GenericJobSpec
from app.domain.dialects.generic_job.spellings import current_spelling
from app.domain.dialects.generic_job.validation import validate
from app.domain.dialects.schema import manifest_schema
from app.domain.dialects.spec_model import read_in_part, read_spec
from app.domain.errors import Conflict, FieldError, Problems, pointer_to
from app.domain.plan import JobIdentity, JobPlan, Manifest
from app.domain.pod_template import validate_pod_template
from app.domain.policy.declared import DeclaredTemplate


class GenericJobDialect(Dialect):
    kind: ClassVar[str] = "GenericJob"
    api_versions: ClassVar[tuple[str, ...]] = ("batch.tensorstack.dev/v1beta1",)
    mutable_fields: ClassVar[tuple[str, ...]] = (
        "/metadata/labels",
        "/metadata/annotations",
        "/spec/cleanUpPolicy",
        "/spec/runMode/pause/enabled",
    )
    supports_pause: ClassVar[bool] = True

    @override
    def accept(self, manifest: Manifest, limits: Limits, given: Given) -> Manifest:
        problems = Problems()
        envelope = read_envelope(manifest, problems)
        found = Problems()
        spelling = current_spelling(manifest.get("spec"), "/spec", problems)
        spec = read_spec(GenericJobSpec, spelling.spec, "/spec", found)
        if spec is not None:
            validate(spec, usable_name(envelope), "/spec", limits, found)
        elif not found.full:
            _validate_in_part(spelling.spec, usable_name(envelope), limits, found)
        problems.extend(spelling.original(error) for error in found.errors)
        problems.raise_if_any("the GenericJob is not valid")
        assert spec is not None, "without a problem there is a spec"
        return {**envelope, "spec": _stored(spec)}

    @override
    def changes(self, stored: Manifest, new: Manifest) -> Sequence[FieldError]:
        return immutable_changes(stored, new, self.mutable_fields)

    @override
    def plan(self, manifest: Manifest, identity: JobIdentity, *, resumed: bool, site: Site) -> JobPlan:
        return plan_job(_spec(manifest), manifest, identity, resumed=resumed, site=site)

    @override
    def pod_templates(self, posted: Manifest, accepted: Manifest) -> Sequence[DeclaredTemplate]:
        spelling = current_spelling(posted.get("spec"), "/spec", Problems())
        specs = accepted["spec"]["replicaSpecs"]
        return [
            DeclaredTemplate.written_at(
                replica["template"], spelling.written_at(f"/spec/replicaSpecs/{index}/template")
            )
            for index, replica in enumerate(specs)
        ]

    @override
    def native_status(self, manifest: Manifest, facts: StatusFacts) -> dict[str, Any]:
        return native_status(_spec(manifest), manifest["metadata"]["name"], facts)

    @override
    def with_pause(self, manifest: Manifest, *, paused: bool) -> Manifest:
        mode = manifest["spec"]["runMode"]
        if paused and mode["debug"]["enabled"]:
            raise Conflict("a job in debug mode cannot be paused", code="DebugMode")
        pause = {**mode["pause"], "enabled": paused}
        return {**manifest, "spec": {**manifest["spec"], "runMode": {**mode, "pause": pause}}}

    @override
    def json_schema(self) -> dict[str, Any]:
        return manifest_schema(self, GenericJobSpec)


def _validate_in_part(spec: Any, job: str, limits: Limits, problems: Problems) -> None:
    """Tell what else is wrong with a spec whose shape is, but nothing that may only follow from that."""
    part = read_in_part(GenericJobSpec, spec)
    if part is None:
        _validate_templates(spec, problems)
        return
    understood, left_out = part
    follows: set[str] = set()
    for place in left_out:
        if place[-1] == "replicas":
            follows |= {"UnknownRank", "TooManyReplicas", "NoReplicas", "InvalidVariable"}
        elif place[0] == "service":
            follows.add("InvalidVariable")
    found = Problems()
    validate(understood, job, "/spec", limits, found)
    problems.extend(error for error in found.errors if error.code not in follows)


def _validate_templates(spec: Any, problems: Problems) -> None:
    """Tell what is wrong with the templates of a spec that is wrong itself, so that one round of mending is enough."""
    replicas = spec.get("replicaSpecs") if isinstance(spec, dict) else None
    for index, replica in enumerate(replicas if isinstance(replicas, list) else []):
        if isinstance(replica, dict) and isinstance(replica.get("template"), dict):
            validate_pod_template(replica["template"], pointer_to("/spec/replicaSpecs", index, "template"), problems)


def _spec(manifest: Manifest) -> GenericJobSpec:
    """The model of an accepted manifest."""
    return GenericJobSpec.model_validate(manifest["spec"])


def _stored(spec: GenericJobSpec) -> Manifest:
    """Defaults are filled in, but for what was left out with a meaning of its own (an Always without a limit)."""
    stored = spec.model_dump(by_alias=True, exclude_none=True)
    for replica in stored["replicaSpecs"]:
        restart = replica["restartPolicy"]
        if restart["policy"] != "Always":
            restart.setdefault("limit", 0)
    return stored
