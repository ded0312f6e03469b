"""Which dry runs involve the cluster, and how its findings are reported."""

from collections.abc import AsyncIterator, Sequence

import pytest
import pytest_asyncio
from typing_extensions import override

from app.domain.cluster_check import ClusterCheck, ClusterFinding, FindingEffect
from app.services.submitting.cluster_dry_run import ClusterChecker
from app.services.submitting.jobs import PreparedJob
from tests.support.gateways.gateway import NAMESPACE, Gateway, jobs_path, manifest, running_gateway
from tests.support.kinds.samples import path as samples_path
from tests.support.kinds.samples import sample

FINDING = {
    "object": "Pod a-worker-0",
    "task": "worker",
    "pointer": "/spec/replicaSpecs/0/template",
    "effect": "Waits",
    "code": "QuotaExceeded",
    "detail": "exceeded quota",
}
REFUSED = {"isComplete": True, "detail": "", "findings": [FINDING]}
UNKNOWN = {"isComplete": False, "detail": "busy", "findings": []}


class Cluster(ClusterChecker):
    """Refuses the job `a`, and has not checked the others. Keeps what it was called with."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.tokens: set[str] = set()

    @override
    async def check(self, jobs: Sequence[PreparedJob], token_id: str) -> list[ClusterCheck]:
        self.calls.append([job.new.row.name for job in jobs])
        self.tokens.add(token_id)
        return [
            _refused() if job.new.row.name == "a" else ClusterCheck(is_complete=False, detail="busy") for job in jobs
        ]


def _refused() -> ClusterCheck:
    finding = ClusterFinding(
        object="Pod a-worker-0",
        task="worker",
        pointer="/spec/replicaSpecs/0/template",
        effect=FindingEffect.WAITS,
        code="QuotaExceeded",
        detail="exceeded quota",
    )
    return ClusterCheck(is_complete=True, findings=(finding,))


@pytest_asyncio.fixture
async def guarded(database_url: str) -> AsyncIterator[Gateway]:
    async with running_gateway(database_url, closed=True) as running:
        running.services.cluster = Cluster()
        yield running


def cluster_of(gateway: Gateway) -> Cluster:
    assert isinstance(gateway.services.cluster, Cluster)
    return gateway.services.cluster


async def test_the_findings_are_part_of_each_result(guarded: Gateway) -> None:
    headers = await guarded.token("submitter", NAMESPACE)
    both = {"apiVersion": "v1", "kind": "List", "items": [manifest("a"), manifest("b")]}

    async def cluster(path: str, body: object) -> object:
        answer = await guarded.client.post(path, json=body, headers=headers)
        assert answer.status_code == 200, answer.text
        shown = answer.json()
        return [item["cluster"] for item in shown["items"]] if "items" in shown else shown["cluster"]

    route = jobs_path(NAMESPACE, "dry-run")
    assert await cluster(route, manifest("a")) == [REFUSED]
    assert await cluster(f"{route}?dryRun=All", both) == [REFUSED, UNKNOWN]
    assert await cluster(f"{jobs_path()}?dryRun=All", manifest("a")) == REFUSED
    assert cluster_of(guarded).calls == [["a"], ["a", "b"], ["a"]]
    assert len(cluster_of(guarded).tokens) == 1
    assert await cluster(f"{route}?dryRun=Local", both) == [None, None]
    assert await cluster(f"{jobs_path()}?dryRun=Local", manifest("a")) is None
    assert len(cluster_of(guarded).calls) == 3


@pytest.mark.parametrize(
    ("role", "namespace", "document", "status"),
    [
        ("viewer", NAMESPACE, manifest(), 403),
        ("submitter", "other", manifest(), 404),
        ("submitter", NAMESPACE, manifest(replicas=-1), 422),
    ],
)
async def test_the_cluster_is_not_involved_in_what_jobgate_refuses(
    guarded: Gateway, role: str, namespace: str, document: object, status: int
) -> None:
    headers = await guarded.token(role, NAMESPACE)
    for path in (jobs_path(namespace, "dry-run"), f"{jobs_path(namespace)}?dryRun=All"):
        answer = await guarded.client.post(path, json=document, headers=headers)
        assert answer.status_code == status, answer.text
    assert cluster_of(guarded).calls == []


async def test_the_cluster_is_not_involved_for_kinds_without_pods(guarded: Gateway) -> None:
    headers = await guarded.token("submitter", NAMESPACE)
    answer = await guarded.client.post(
        samples_path("samplesets", "dry-run"), json=sample("samplesets"), headers=headers
    )
    assert (answer.status_code, "cluster" in answer.json()["items"][0]) == (200, False)
    assert cluster_of(guarded).calls == []
