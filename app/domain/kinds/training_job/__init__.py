"""TrainingJob of paddlepaddle.org/v1alpha1: Paddle's master, parameter servers and elastic trainers.

`validation` checks a spec, `plan` and `native` translate it, `templates` makes its pod templates, and `elasticity`
computes sizes and resources as Paddle's own types do. docs/kinds/training-job.md lists the differences from Paddle EDL.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Final

from typing_extensions import override

from app.domain.errors import Conflict, FieldError, Problems
from app.domain.kinds.envelope import ASSIGNED
from app.domain.kinds.job_kind import Accepted, Context, Given, JobKind, Scaling, Site, StatusFacts
from app.domain.kinds.spec.checks import Location
from app.domain.kinds.training_job.elasticity import elastic
from app.domain.kinds.training_job.native import native_status
from app.domain.kinds.training_job.plan import plan_job
from app.domain.kinds.training_job.spec import TrainingJobSpec, with_defaults
from app.domain.kinds.training_job.templates import TRAINER, role_template, roles_of
from app.domain.kinds.training_job.validation import validate
from app.domain.plan import JobIdentity, JobPlan, Manifest
from app.domain.policy.template import DeclaredTemplate

_TRAINERS: Final = "trainers"
# The fields with numbers of replicas, and the codes of errors that may exist only because one of them was left out.
_COUNTS: Final = frozenset({"min-instance", "max-instance", "fault_tolerant", "trainer", "pserver"})
_CONSEQUENCES: Final = frozenset({"OutOfRange", "NotFaultTolerant", "TooManyReplicas"})


class TrainingJobKind(JobKind[TrainingJobSpec]):
    """The rules of TrainingJob."""

    name: ClassVar[str] = "TrainingJob"
    api_versions: ClassVar[tuple[str, ...]] = ("paddlepaddle.org/v1alpha1", "paddlepaddle.org/v1")
    mutable_fields: ClassVar[tuple[str, ...]] = (
        "/metadata/labels",
        "/metadata/annotations",
        "/spec/trainer/min-instance",
        "/spec/trainer/max-instance",
        # The number of trainers, which a request for another size changes. Clients cannot post this field.
        f"/{ASSIGNED}",
    )
    spec_model = TrainingJobSpec

    @override
    def complete(self, spec: TrainingJobSpec, given: Given) -> TrainingJobSpec:
        return with_defaults(spec)

    @override
    def check(self, spec: TrainingJobSpec, context: Context, problems: Problems) -> None:
        validate(spec, context.job, context.namespace, context.limits, problems)

    @override
    def is_consequence(self, error: FieldError, left_out: Sequence[Location]) -> bool:
        return error.code in _CONSEQUENCES and any(not _COUNTS.isdisjoint(place) for place in left_out)

    @override
    def assign(self, spec: TrainingJobSpec, context: Context) -> Manifest:
        """Return the number of trainers: min-instance for a new job, otherwise the present one within the bounds."""
        least, most = spec.trainer.min_instance, spec.trainer.max_instance
        stored = context.given.stored
        return {_TRAINERS: max(least, min(most, _size(stored))) if stored else least}

    @override
    def plan(self, accepted: Accepted[TrainingJobSpec], identity: JobIdentity, *, resumed: bool, site: Site) -> JobPlan:
        return plan_job(accepted.spec, _size(accepted.manifest), accepted.manifest, identity, site)

    @override
    def pod_templates(self, posted: Manifest, accepted: Accepted[TrainingJobSpec]) -> Sequence[DeclaredTemplate]:
        spec = accepted.spec
        templates = [(role, role_template(spec, role, accepted.name)) for role in roles_of(spec)]
        return [
            DeclaredTemplate(template=rendered.template, locate=partial(rendered.origin, role=role))
            for role, rendered in templates
        ]

    @override
    def native_status(self, accepted: Accepted[TrainingJobSpec], facts: StatusFacts) -> dict[str, Any]:
        return native_status(accepted.spec, _size(accepted.manifest), accepted.name, facts)

    @override
    def scaling(self, accepted: Accepted[TrainingJobSpec]) -> Scaling | None:
        spec = accepted.spec
        if not elastic(spec):
            return None
        bounds = (spec.trainer.min_instance, spec.trainer.max_instance)
        return Scaling(
            sizes={TRAINER: _size(accepted.manifest)},
            bounds={TRAINER: bounds},
            total=bounds,
            autoscaled=TRAINER,
        )

    @override
    def resize(self, accepted: Accepted[TrainingJobSpec], sizes: Mapping[str, int]) -> Accepted[TrainingJobSpec]:
        if self.scaling(accepted) is None:
            raise Conflict("this job has no room between min-instance and max-instance", code="ScaleNotSupported")
        manifest = accepted.manifest
        return replace(accepted, manifest={**manifest, ASSIGNED: {_TRAINERS: sizes.get(TRAINER, _size(manifest))}})


def _size(manifest: Manifest) -> int:
    """Return the present number of trainers of an accepted manifest."""
    trainers: int = manifest[ASSIGNED][_TRAINERS]
    return trainers
