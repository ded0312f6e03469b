"""DIJob of diengine.opendilab.org/v2alpha1: a learner, collectors and an evaluator that can be scaled while they run.

`validation` checks a spec, and `plan` and `native` translate it. `members` assigns global ranks, and finds the
addresses of replicas for requests of the job's own pods. docs/kinds/di-job.md lists the differences from
DI-orchestrator.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

from typing_extensions import override

from app.domain.errors import FieldError, Problems, pointer_to
from app.domain.kinds.changes import immutable_changes
from app.domain.kinds.di_job.bounds import largest_sizes, least_total, most_listed
from app.domain.kinds.di_job.members import RANKS, layout, ranks, sizes
from app.domain.kinds.di_job.native import native_status
from app.domain.kinds.di_job.plan import plan_job
from app.domain.kinds.di_job.spec import DIJobSpec
from app.domain.kinds.di_job.templates import current_templates
from app.domain.kinds.di_job.validation import TASKS, add_names, declared_template, refuse_first_form, validate
from app.domain.kinds.envelope import ASSIGNED, postable
from app.domain.kinds.job_kind import Accepted, Context, Given, JobKind, Scaling, Site, StatusFacts
from app.domain.kinds.spec.checks import Location
from app.domain.kinds.spec.spelling import Spelling
from app.domain.kinds.warnings import ignored_restart_policies
from app.domain.plan import JobIdentity, JobPlan, JobWarning, Manifest
from app.domain.pod_template import validate_pod_template
from app.domain.policy.template import DeclaredTemplate

# The name of the field of `assigned` with the largest number of replicas of all tasks together. The installation's
# limit at the time of acceptance applies for the life of the job.
_MOST: Final = "most"


class DIJobKind(JobKind[DIJobSpec]):
    """The rules of DIJob."""

    name: ClassVar[str] = "DIJob"
    api_versions: ClassVar[tuple[str, ...]] = ("diengine.opendilab.org/v2alpha1",)
    mutable_fields: ClassVar[tuple[str, ...]] = (
        "/metadata/labels",
        "/metadata/annotations",
        "/spec/cleanPodPolicy",
        "/spec/minReplicas",
        "/spec/maxReplicas",
        "/spec/tasks/*/replicas",
    )
    spec_model = DIJobSpec

    @override
    def current_spelling(self, spec: Any, problems: Problems) -> Spelling:
        refuse_first_form(spec, problems)
        return Spelling(current_templates(spec))

    @override
    def complete(self, spec: DIJobSpec, given: Given) -> DIJobSpec:
        return add_names(spec)

    @override
    def check(self, spec: DIJobSpec, context: Context, problems: Problems) -> None:
        validate(spec, context.job, context.limits, problems)

    @override
    def is_consequence(self, error: FieldError, left_out: Sequence[Location]) -> bool:
        consequences: set[str] = set()  # pointers, and names of fields
        for place in left_out:
            if place[-1] in ("type", "name"):
                consequences.add(pointer_to("/spec", *place[:-1], "name"))
            elif place[-1] in ("replicas", "minReplicas", "maxReplicas"):
                consequences |= {TASKS, "/spec/maxReplicas"}
            elif place == ("volumes",):
                consequences |= {"volumeMounts", "volumeDevices"}
        return error.pointer in consequences or not consequences.isdisjoint(error.pointer.split("/"))

    @override
    def check_unreadable(self, spec: Any, problems: Problems) -> None:
        tasks = spec.get("tasks") if isinstance(spec, dict) else None
        for index, task in enumerate(tasks if isinstance(tasks, list) else []):
            if isinstance(task, dict) and isinstance(task.get("template"), dict):
                validate_pod_template(task["template"], pointer_to(TASKS, index, "template"), problems)

    @override
    def stored_spec(self, spec: DIJobSpec) -> Manifest:
        """Return the spec with its defaults. A null backoffLimit stays null: it means no limit."""
        return {**spec.model_dump(by_alias=True, exclude_none=True), "backoffLimit": spec.backoff_limit}

    @override
    def assign(self, spec: DIJobSpec, context: Context) -> Manifest:
        """Return the global ranks of all replicas and the largest number of replicas. Replicas keep stored ranks."""
        before = ranks(context.given.stored) if context.given.stored else {}
        wanted = {task.name: task.replicas for task in spec.tasks}
        most = spec.max_replicas or most_listed(spec, context.job, context.limits)
        return {RANKS: layout(wanted, before), _MOST: most}

    @override
    def changes(self, stored: Manifest, new: Manifest) -> Sequence[FieldError]:
        # The assigned ranks follow from the sizes, which may change.
        return immutable_changes(postable(stored), postable(new), self.mutable_fields)

    @override
    def plan(self, accepted: Accepted[DIJobSpec], identity: JobIdentity, *, resumed: bool, site: Site) -> JobPlan:
        return plan_job(accepted.spec, accepted.manifest, identity, site)

    @override
    def pod_templates(self, posted: Manifest, accepted: Accepted[DIJobSpec]) -> Sequence[DeclaredTemplate]:
        spec = accepted.spec
        return [declared_template(spec, task, index) for index, task in enumerate(spec.tasks)]

    @override
    def warnings(self, posted: Manifest, accepted: Accepted[DIJobSpec]) -> Iterator[JobWarning]:
        return ignored_restart_policies(self.pod_templates(posted, accepted))

    @override
    def native_status(self, accepted: Accepted[DIJobSpec], facts: StatusFacts) -> dict[str, Any]:
        return native_status(accepted.name, sizes(accepted.manifest), facts)

    @override
    def scaling(self, accepted: Accepted[DIJobSpec]) -> Scaling:
        spec, most = accepted.spec, accepted.manifest[ASSIGNED][_MOST]
        largest = largest_sizes(spec, accepted.name, most)
        return Scaling(
            sizes=sizes(accepted.manifest),
            bounds={task: (1, size) for task, size in largest.items()},
            total=(least_total(spec), most),
        )

    @override
    def resize(self, accepted: Accepted[DIJobSpec], sizes: Mapping[str, int]) -> Accepted[DIJobSpec]:
        manifest = accepted.manifest
        tasks = [{**task, "replicas": sizes.get(task["name"], task["replicas"])} for task in manifest["spec"]["tasks"]]
        ranked = layout({task["name"]: task["replicas"] for task in tasks}, ranks(manifest))
        return self.read(
            {
                **manifest,
                "spec": {**manifest["spec"], "tasks": tasks},
                ASSIGNED: {**manifest[ASSIGNED], RANKS: ranked},
            }
        )
