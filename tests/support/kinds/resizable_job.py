"""A GenericJob whose tasks can all be resized, for tests of code that scales jobs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from typing_extensions import override

from app.domain.errors import FieldError
from app.domain.kinds import registry
from app.domain.kinds.generic_job import GenericJobKind
from app.domain.kinds.generic_job.spec import GenericJobSpec
from app.domain.kinds.job_kind import Accepted, JobKind, Scaling, Site, StatusFacts
from app.domain.plan import JobIdentity, JobPlan, Manifest
from tests.support.gateways import gateway

KIND, API_VERSION = "ResizableJob", "tests/v1"
_BOUNDS = {"tests/least": "1", "tests/most": "6", "tests/total": "2-8"}


class ResizableJobKind(GenericJobKind):
    """The kind. Annotations contain the bounds of each task and of the sum."""

    name: ClassVar[str] = KIND
    api_versions: ClassVar[tuple[str, ...]] = (API_VERSION,)

    @override
    def changes(self, stored: Manifest, new: Manifest) -> Sequence[FieldError]:
        return ()

    @override
    def plan(self, accepted: Accepted[GenericJobSpec], identity: JobIdentity, *, resumed: bool, site: Site) -> JobPlan:
        plan = super().plan(accepted, identity, resumed=resumed, site=site)
        return replace(plan, tasks=tuple(replace(task, elastic=True) for task in plan.tasks))

    @override
    def native_status(self, accepted: Accepted[GenericJobSpec], facts: StatusFacts) -> dict[str, Any]:
        return {"records": [record.seq for record in facts.scale_records], "reported": dict(facts.reported)}

    @override
    def scaling(self, accepted: Accepted[GenericJobSpec]) -> Scaling | None:
        annotations = _BOUNDS | accepted.manifest["metadata"].get("annotations", {})
        sizes = {task.type: task.replicas for task in accepted.spec.replica_specs}
        least, most = int(annotations["tests/least"]), int(annotations["tests/most"])
        low, high = (int(bound) for bound in annotations["tests/total"].split("-"))
        return Scaling(sizes=sizes, bounds=dict.fromkeys(sizes, (least, most)), total=(low, high))

    @override
    def resize(self, accepted: Accepted[GenericJobSpec], sizes: Mapping[str, int]) -> Accepted[GenericJobSpec]:
        manifest = accepted.manifest
        tasks = [
            {**task, "replicas": sizes.get(task["type"], task["replicas"])} for task in manifest["spec"]["replicaSpecs"]
        ]
        return self.read({**manifest, "spec": {**manifest["spec"], "replicaSpecs": tasks}})


KINDS_WITH_RESIZABLE: Mapping[tuple[str, str], JobKind[Any]] = {
    **registry.JOB_KINDS,
    (API_VERSION, KIND): ResizableJobKind(),
}
"""The registered job kinds and this one, in place of `registry.JOB_KINDS`."""


def manifest(
    name: str = "hello", sizes: Mapping[str, int] | None = None, annotations: Mapping[str, str] | None = None
) -> Manifest:
    """A job with these tasks; by default two workers."""
    document: Manifest = gateway.manifest(name)
    (task,) = document["spec"]["replicaSpecs"]
    tasks = [{**task, "type": kind, "replicas": size} for kind, size in (sizes or {"worker": 2}).items()]
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": name, "annotations": dict(annotations or {})},
        "spec": {"replicaSpecs": tasks},
    }
