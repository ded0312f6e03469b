"""DIJob of diengine.opendilab.org/v2alpha1: learner, collectors and evaluator, whose numbers may change while they run.

spec -> validation -> layout of global ranks on the way in, plan and native on the way out; `members` is what the
server inside the cluster asks. docs/kinds/di-job.md says where this differs from upstream.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from typing_extensions import override

from app.domain.dialects.base import Dialect, Given, Limits, Scaling, Site, StatusFacts
from app.domain.dialects.changes import immutable_changes
from app.domain.dialects.di_job.bounds import largest_sizes, least_total, most_listed
from app.domain.dialects.di_job.members import RANKS, layout, ranks, sizes
from app.domain.dialects.di_job.native import native_status
from app.domain.dialects.di_job.plan import plan_job
from app.domain.dialects.di_job.spec import DIJobSpec
from app.domain.dialects.di_job.templates import current_templates
from app.domain.dialects.di_job.validation import TASKS, declared_template, named, validate
from app.domain.dialects.envelope import ASSIGNED, as_posted, read_envelope, usable_name
from app.domain.dialects.schema import manifest_schema
from app.domain.dialects.spec_model import read_in_part, read_spec
from app.domain.errors import FieldError, Problems, pointer_to
from app.domain.plan import JobIdentity, JobPlan, Manifest
from app.domain.pod_template import validate_pod_template
from app.domain.policy.declared import DeclaredTemplate

_MOST: Final = "most"  # replicas in all, as this installation allowed when the manifest was accepted


class DIJobDialect(Dialect):
    kind: ClassVar[str] = "DIJob"
    api_versions: ClassVar[tuple[str, ...]] = ("diengine.opendilab.org/v2alpha1",)
    mutable_fields: ClassVar[tuple[str, ...]] = (
        "/metadata/labels",
        "/metadata/annotations",
        "/spec/cleanPodPolicy",
        "/spec/minReplicas",
        "/spec/maxReplicas",
        "/spec/tasks/*/replicas",
    )

    @override
    def accept(self, manifest: Manifest, limits: Limits, given: Given) -> Manifest:
        problems = Problems()
        envelope = read_envelope(manifest, problems)
        job = usable_name(envelope)
        posted = current_templates(manifest.get("spec"))
        spec = read_spec(DIJobSpec, posted, "/spec", problems)
        if spec is not None:
            spec = named(spec)
            validate(spec, job, limits, problems)
        elif not problems.full:
            _validate_in_part(posted, job, limits, problems)
        problems.raise_if_any("the DIJob is not valid")
        assert spec is not None, "without a problem there is a spec"
        accepted = {**envelope, "spec": _stored(spec)}
        before = ranks(given.stored) if given.stored else {}
        most = spec.max_replicas or most_listed(spec, job, limits)
        return {**accepted, ASSIGNED: {RANKS: layout(sizes(accepted), before), _MOST: most}}

    @override
    def changes(self, stored: Manifest, new: Manifest) -> Sequence[FieldError]:
        return immutable_changes(as_posted(stored), as_posted(new), self.mutable_fields)

    @override
    def plan(self, manifest: Manifest, identity: JobIdentity, *, resumed: bool, site: Site) -> JobPlan:
        return plan_job(_spec(manifest), manifest, identity, site)

    @override
    def pod_templates(self, posted: Manifest, accepted: Manifest) -> Sequence[DeclaredTemplate]:
        spec = _spec(accepted)
        return [declared_template(spec, task, index) for index, task in enumerate(spec.tasks)]

    @override
    def native_status(self, manifest: Manifest, facts: StatusFacts) -> dict[str, Any]:
        return native_status(manifest["metadata"]["name"], sizes(manifest), facts)

    @override
    def json_schema(self) -> dict[str, Any]:
        return manifest_schema(self, DIJobSpec)

    @override
    def scaling(self, manifest: Manifest) -> Scaling:
        spec, most = _spec(manifest), manifest[ASSIGNED][_MOST]
        largest = largest_sizes(spec, manifest["metadata"]["name"], most)
        return Scaling(
            sizes=sizes(manifest),
            bounds={task: (1, size) for task, size in largest.items()},
            total=(least_total(spec), most),
        )

    @override
    def resized(self, manifest: Manifest, sizes: Mapping[str, int]) -> Manifest:
        tasks = [{**task, "replicas": sizes.get(task["name"], task["replicas"])} for task in manifest["spec"]["tasks"]]
        ranked = layout({task["name"]: task["replicas"] for task in tasks}, ranks(manifest))
        return {
            **manifest,
            "spec": {**manifest["spec"], "tasks": tasks},
            ASSIGNED: {**manifest[ASSIGNED], RANKS: ranked},
        }


def _spec(manifest: Manifest) -> DIJobSpec:
    """The model of an accepted manifest."""
    return DIJobSpec.model_validate(manifest["spec"])


def _stored(spec: DIJobSpec) -> Manifest:
    """Defaults are filled in; a backoffLimit without a limit stays the null that it is."""
    return {**spec.model_dump(by_alias=True, exclude_none=True), "backoffLimit": spec.backoff_limit}


def _validate_in_part(spec: Any, job: str, limits: Limits, problems: Problems) -> None:
    """Tell what else is wrong with a spec whose shape is, but nothing that may only follow from that."""
    part = read_in_part(DIJobSpec, spec)
    if part is None:
        _validate_templates(spec, problems)
        return
    understood, left_out = part
    follows: set[str] = set()
    for place in left_out:
        if place[-1] in ("type", "name"):
            follows.add(pointer_to("/spec", *place[:-1], "name"))
        elif place[-1] in ("replicas", "minReplicas", "maxReplicas"):
            follows |= {TASKS, "/spec/maxReplicas"}
        elif place == ("volumes",):
            follows |= {"volumeMounts", "volumeDevices"}
    found = Problems()
    validate(named(understood), job, limits, found)
    problems.extend(
        error for error in found.errors if error.pointer not in follows and not follows & {*error.pointer.split("/")}
    )


def _validate_templates(spec: Any, problems: Problems) -> None:
    """Tell what is wrong with the templates of a spec that is wrong itself, so that one round of mending is enough."""
    tasks = spec.get("tasks") if isinstance(spec, dict) else None
    for index, task in enumerate(tasks if isinstance(tasks, list) else []):
        if isinstance(task, dict) and isinstance(task.get("template"), dict):
            validate_pod_template(task["template"], pointer_to(TASKS, index, "template"), problems)
