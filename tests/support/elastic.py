"""A kind whose workers the autoscaler may resize, with a leader beside them that must be there."""

from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import override

from app.domain.dialects.base import Dialect, Given, Limits, Scaling, Site, StatusFacts
from app.domain.errors import FieldError
from app.domain.plan import JobIdentity, JobPlan, Manifest, Rank, ReplicaPlan, RestartPlan, TaskPlan
from app.domain.policy import DeclaredTemplate
from app.domain.vocabulary import RestartPolicy

KIND, API_VERSION = "Elastic", "tests/v1"
_RESTART = RestartPlan(policy=RestartPolicy.NEVER, limit=None)


def elastic_manifest(
    size: int = 1, least: int = 1, most: int = 3, *, cpu: str = "1", annotations: Mapping[str, str] | None = None
) -> Manifest:
    return {
        "metadata": {"labels": {"team": "a"}, "annotations": dict(annotations or {})},
        "spec": {"size": size, "least": least, "most": most, "cpu": cpu},
    }


class ElasticDialect(Dialect):
    kind = KIND
    api_versions = (API_VERSION,)
    mutable_fields = ()

    @override
    def accept(self, manifest: Manifest, limits: Limits, given: Given) -> Manifest:
        return manifest

    @override
    def changes(self, stored: Manifest, new: Manifest) -> Sequence[FieldError]:
        return ()

    @override
    def plan(self, manifest: Manifest, identity: JobIdentity, *, resumed: bool, site: Site) -> JobPlan:
        spec = manifest["spec"]
        container = {"name": "main", "resources": {"requests": {"cpu": spec["cpu"]}}}
        template = {"spec": {"containers": [container], "nodeSelector": spec.get("nodeSelector")}}
        tasks = (_task(identity.name, "leader", 1, template), _task(identity.name, "worker", spec["size"], template))
        return JobPlan(identity=identity, tasks=tasks, rules=(), fails_when_success_is_impossible=True)

    @override
    def pod_templates(self, posted: Manifest, accepted: Manifest) -> Sequence[DeclaredTemplate]:
        return ()

    @override
    def native_status(self, manifest: Manifest, facts: StatusFacts) -> dict[str, Any]:
        return {}

    @override
    def json_schema(self) -> dict[str, Any]:
        return {}

    @override
    def scaling(self, manifest: Manifest) -> Scaling:
        spec = manifest["spec"]
        return Scaling(
            sizes={"leader": 1, "worker": spec["size"]},
            bounds={"leader": (1, 1), "worker": (spec["least"], spec["most"])},
            total=(0, spec.get("total", 1000)),
            autoscaled=None if spec.get("byHand") else "worker",
        )

    @override
    def resized(self, manifest: Manifest, sizes: Mapping[str, int]) -> Manifest:
        return {**manifest, "spec": {**manifest["spec"], "size": sizes["worker"]}}


def _task(job: str, name: str, size: int, template: Manifest) -> TaskPlan:
    def pod_name(rank: int) -> str:
        return f"{job}-{name}-{rank}"

    def replica(rank: int) -> ReplicaPlan:
        return ReplicaPlan(
            key=Rank(name, rank),
            global_rank=rank,
            pod_name=pod_name(rank),
            hostname=pod_name(rank),
            subdomain=None,
            template=template,
            labels={},
        )

    return TaskPlan(name=name, restart=_RESTART, size=size, pod_name=pod_name, render=replica)
