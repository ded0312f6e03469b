"""A kind with workers that the autoscaler may resize, and one leader."""

from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import override

from app.domain.errors import Problems
from app.domain.kinds.job_kind import Accepted, Context, JobKind, Scaling, Site, StatusFacts
from app.domain.kinds.spec.model import SpecModel
from app.domain.plan import JobIdentity, JobPlan, Manifest, Rank, ReplicaPlan, RestartPlan, TaskPlan
from app.domain.policy import DeclaredTemplate
from app.domain.vocabulary import RestartPolicy

KIND, API_VERSION = "Elastic", "tests/v1"
_RESTART = RestartPlan(policy=RestartPolicy.NEVER, limit=None)


def elastic_manifest(
    size: int = 1,
    least: int = 1,
    most: int = 3,
    *,
    name: str = "n",
    cpu: str = "1",
    annotations: Mapping[str, str] | None = None,
) -> Manifest:
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {
            "name": name,
            "namespace": "team",
            "labels": {"team": "a"},
            "annotations": dict(annotations or {}),
        },
        "spec": {"size": size, "least": least, "most": most, "cpu": cpu},
    }


class ElasticSpec(SpecModel):
    size: int
    least: int
    most: int
    cpu: str
    total: int = 1000
    by_hand: bool = False
    node_selector: dict[str, str] | None = None


class ElasticKind(JobKind[ElasticSpec]):
    name = KIND
    api_versions = (API_VERSION,)
    mutable_fields = ()
    spec_model = ElasticSpec

    @override
    def check(self, spec: ElasticSpec, context: Context, problems: Problems) -> None:
        """Accept every spec of the right shape."""

    @override
    def plan(self, accepted: Accepted[ElasticSpec], identity: JobIdentity, *, resumed: bool, site: Site) -> JobPlan:
        spec = accepted.spec
        container = {"name": "main", "resources": {"requests": {"cpu": spec.cpu}}}
        template = {"spec": {"containers": [container], "nodeSelector": spec.node_selector}}
        tasks = (_task(identity.name, "leader", 1, template), _task(identity.name, "worker", spec.size, template))
        return JobPlan(identity=identity, tasks=tasks, rules=(), fails_when_success_is_impossible=True)

    @override
    def pod_templates(self, posted: Manifest, accepted: Accepted[ElasticSpec]) -> Sequence[DeclaredTemplate]:
        return ()

    @override
    def native_status(self, accepted: Accepted[ElasticSpec], facts: StatusFacts) -> dict[str, Any]:
        return {}

    @override
    def scaling(self, accepted: Accepted[ElasticSpec]) -> Scaling:
        spec = accepted.spec
        return Scaling(
            sizes={"leader": 1, "worker": spec.size},
            bounds={"leader": (1, 1), "worker": (spec.least, spec.most)},
            total=(0, spec.total),
            autoscaled=None if spec.by_hand else "worker",
        )

    @override
    def resize(self, accepted: Accepted[ElasticSpec], sizes: Mapping[str, int]) -> Accepted[ElasticSpec]:
        manifest = accepted.manifest
        return self.read({**manifest, "spec": {**manifest["spec"], "size": sizes["worker"]}})


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

    return TaskPlan(
        name=name,
        restart=_RESTART,
        size=size,
        pod_name=pod_name,
        render=replica,
        template=template,
        elastic=name == "worker",
    )
