"""TrainingJob of paddlepaddle.org/v1alpha1: Paddle's master, parameter servers and elastic trainers.

spec -> validation on the way in, plan (templates) and native on the way out, elasticity for what upstream's types
answer; docs/kinds/training-job.md says where this differs from upstream.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from typing_extensions import override

from app.domain.dialects.base import Dialect, Given, Limits, Scaling, Site, StatusFacts
from app.domain.dialects.changes import immutable_changes
from app.domain.dialects.envelope import ASSIGNED, read_envelope, usable_name
from app.domain.dialects.schema import manifest_schema
from app.domain.dialects.spec_model import read_in_part, read_spec
from app.domain.dialects.training_job.elasticity import elastic
from app.domain.dialects.training_job.native import native_status
from app.domain.dialects.training_job.plan import plan_job
from app.domain.dialects.training_job.spec import TrainingJobSpec, with_defaults
from app.domain.dialects.training_job.templates import TRAINER, role_template, roles_of
from app.domain.dialects.training_job.validation import validate
from app.domain.errors import Conflict, FieldError, Problems
from app.domain.plan import JobIdentity, JobPlan, Manifest
from app.domain.policy.declared import DeclaredTemplate

_TRAINERS = "trainers"


class TrainingJobDialect(Dialect):
    kind: ClassVar[str] = "TrainingJob"
    api_versions: ClassVar[tuple[str, ...]] = ("paddlepaddle.org/v1alpha1", "paddlepaddle.org/v1")
    mutable_fields: ClassVar[tuple[str, ...]] = (
        "/metadata/labels",
        "/metadata/annotations",
        "/spec/trainer/min-instance",
        "/spec/trainer/max-instance",
        f"/{ASSIGNED}",
    )

    @override
    def accept(self, manifest: Manifest, limits: Limits, given: Given) -> Manifest:
        problems = Problems()
        envelope = read_envelope(manifest, problems)
        job, namespace = usable_name(envelope), envelope["metadata"].get("namespace")
        namespace = namespace if isinstance(namespace, str) else None
        spec = read_spec(TrainingJobSpec, manifest.get("spec"), "/spec", problems)
        if spec is not None:
            spec = with_defaults(spec)
            validate(spec, job, namespace, limits, problems)
        else:
            _validate_in_part(manifest.get("spec"), job, namespace, limits, problems)
        problems.raise_if_any("the TrainingJob is not valid")
        assert spec is not None, "without a problem there is a spec"
        stored = spec.model_dump(by_alias=True, exclude_none=True)
        return {**envelope, "spec": stored, ASSIGNED: {_TRAINERS: _trainers(spec, given.stored)}}

    @override
    def changes(self, stored: Manifest, new: Manifest) -> Sequence[FieldError]:
        return immutable_changes(stored, new, self.mutable_fields)

    @override
    def plan(self, manifest: Manifest, identity: JobIdentity, *, resumed: bool, site: Site) -> JobPlan:
        return plan_job(_spec(manifest), _size(manifest), manifest, identity, site)

    @override
    def pod_templates(self, posted: Manifest, accepted: Manifest) -> Sequence[DeclaredTemplate]:
        spec = _spec(accepted)
        roles = roles_of(spec)
        made = [(role, role_template(spec, role, accepted["metadata"]["name"])) for role in roles]
        return [DeclaredTemplate(template=one.template, locate=partial(one.origin, role=role)) for role, one in made]

    @override
    def native_status(self, manifest: Manifest, facts: StatusFacts) -> dict[str, Any]:
        return native_status(_spec(manifest), _size(manifest), manifest["metadata"]["name"], facts)

    @override
    def scaling(self, manifest: Manifest) -> Scaling | None:
        spec = _spec(manifest)
        if not elastic(spec):
            return None
        bounds = (spec.trainer.min_instance, spec.trainer.max_instance)
        return Scaling(
            sizes={TRAINER: _size(manifest)},
            bounds={TRAINER: bounds},
            total=bounds,
            autoscaled=TRAINER,
        )

    @override
    def resized(self, manifest: Manifest, sizes: Mapping[str, int]) -> Manifest:
        if self.scaling(manifest) is None:
            raise Conflict("this job has no room between min-instance and max-instance", code="ScaleNotSupported")
        return {**manifest, ASSIGNED: {_TRAINERS: sizes.get(TRAINER, _size(manifest))}}

    @override
    def json_schema(self) -> dict[str, Any]:
        return manifest_schema(self, TrainingJobSpec)


def _validate_in_part(spec: Any, job: str, namespace: str | None, limits: Limits, problems: Problems) -> None:
    """Tell what else is wrong with a spec whose shape is, but nothing that may only follow from that."""
    part = read_in_part(TrainingJobSpec, spec)
    if part is None:
        return
    understood, left_out = part
    found = Problems()
    validate(with_defaults(understood), job, namespace, limits, found)
    counts = {"min-instance", "max-instance", "fault_tolerant", "trainer", "pserver"}
    unsure = {"OutOfRange", "NotFaultTolerant", "TooManyReplicas"} if any(counts & set(at) for at in left_out) else {}
    problems.extend(error for error in found.errors if error.code not in unsure)


def _spec(manifest: Manifest) -> TrainingJobSpec:
    """The model of an accepted manifest."""
    return TrainingJobSpec.model_validate(manifest["spec"])


def _size(manifest: Manifest) -> int:
    """How many trainers an accepted manifest has now."""
    trainers: int = manifest[ASSIGNED][_TRAINERS]
    return trainers


def _trainers(spec: TrainingJobSpec, stored: Manifest | None) -> int:
    """A job begins with its least, and keeps its size within the bounds that it has now."""
    least, most = spec.trainer.min_instance, spec.trainer.max_instance
    return max(least, min(most, _size(stored))) if stored else least
