"""Jobs in a queue whose flavor has a topology: Kueue assigns nodes to their pods, by rank."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

import msgspec
import pytest
import pytest_asyncio

from app.base.cancellation import TaskGroup
from app.domain.kubernetes.topology import TopologyAssignment
from tests.behaviour.manifests import Body, job, task
from tests.behaviour.queues.kueue import API, GROUP, Queues, body_of, existing, queued, requesting
from tests.support.plans import T0

pytestmark = pytest.mark.timeout(600)
NODES = "/api/v1/nodes"
HOST = "kubernetes.io/hostname"


@dataclass(slots=True, kw_only=True)
class Racks:
    """Two racks of two nodes, each with room for two pods, and the LocalQueue `racks`. Nothing runs on these nodes."""

    queues: Queues
    name: str
    nodes: list[str]

    @property
    def level(self) -> str:
        return f"rack-{self.name}"

    async def beat(self) -> None:
        """Report every second that the nodes are ready: the cluster compares only whether the times differ."""
        for second in itertools.count():
            for node in list(self.nodes):
                await self.report(node, ready=True, second=second)
            await asyncio.sleep(1)

    async def report(self, node: str, *, ready: bool, second: int = 0) -> None:
        at = (T0 + timedelta(seconds=second)).strftime("%Y-%m-%dT%H:%M:%SZ")
        reported = {"type": "Ready", "status": str(ready), "reason": "Test", "message": "", "lastHeartbeatTime": at}
        room = {"cpu": "2", "memory": "8Gi", "pods": "20"}
        status = {"capacity": room, "allocatable": room, "conditions": [reported]}
        (await self.queues.jobs.kube.patch(f"{NODES}/{node}/status", {"status": status})).ok()


@pytest_asyncio.fixture
async def racks(queues: Queues) -> AsyncIterator[Racks]:
    jobs, name = queues.jobs, f"{queues.name}-racks"
    if (await jobs.kube.get(f"{API}/topologies")).status != 200:
        pytest.skip("the cluster plays no topologies: run `make test-cluster`")
    racks = Racks(queues=queues, name=name, nodes=[f"{name}-{number}" for number in range(4)])
    resources = [{"name": "cpu", "nominalQuota": 100}]
    group = {"coveredResources": ["cpu"], "flavors": [{"name": name, "resources": resources}]}
    made = [
        body_of("Topology", name, spec={"levels": [{"nodeLabel": racks.level}, {"nodeLabel": HOST}]}),
        body_of("ResourceFlavor", name, spec={"nodeLabels": {"pool": name}, "topologyName": name}),
        body_of("ClusterQueue", name, spec={"namespaceSelector": {}, "resourceGroups": [group]}),
    ]
    async with _existing_nodes(racks), existing(jobs.kube, made):
        await queues.add_local("racks", of=name)
        yield racks


@asynccontextmanager
async def _existing_nodes(racks: Racks) -> AsyncIterator[None]:
    """Make nodes without kubelets, whose heartbeats come from this test, and delete them afterwards."""
    kube, made = racks.queues.jobs.kube, list(racks.nodes)
    try:
        for number, node in enumerate(made):
            labels = {"pool": racks.name, racks.level: f"r{number // 2}", HOST: node}
            body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node, "labels": labels}}
            (await kube.post(NODES, body)).ok()
        async with TaskGroup() as group:
            beats = group.create_task(racks.beat())
            yield
            beats.cancel()
    finally:
        for node in made:
            await kube.delete(f"{NODES}/{node}")


async def _submit(
    queues: Queues, name: str, replicas: int, slices: str = "", others: Sequence[Body] = (), **annotations: str
) -> str:
    """Submit a job whose pods no scheduler binds, and return its uid. `slices` is the level of slices of two pods."""
    found = task("exec sleep 600", replicas=replicas, schedulerName="nobody")
    found["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    requested = {f"{GROUP}/podset-{key}-topology": value for key, value in annotations.items()}
    if slices:
        requested |= {f"{GROUP}/podset-slice-required-topology": slices, f"{GROUP}/podset-slice-size": "2"}
    found["template"].setdefault("metadata", {})["annotations"] = requested
    return str((await queues.jobs.submit(queued(job(name, found, *others), "racks")))["uid"])


async def _placed(queues: Queues, uid: str, replicas: int) -> list[Body]:
    """The pods of a job by rank, once the scheduler may bind them."""

    def are_ready(pods: Sequence[Body]) -> bool:
        return len(pods) == replicas and not any(pod["spec"].get("schedulingGates") for pod in pods)

    pods = await queues.jobs.until_objects("pods", uid, are_ready)
    return sorted(pods, key=lambda pod: int(pod["metadata"]["labels"]["jobgate.dev/task-rank"]))


async def test_pods_get_the_nodes_of_their_topology_by_rank(racks: Racks) -> None:
    queues, jobs, nodes = racks.queues, racks.queues.jobs, list(racks.nodes)
    uid = await _submit(queues, "together", 3, required=racks.level)
    pods = await _placed(queues, uid, 3)
    hosts = [pod["spec"]["nodeSelector"][HOST] for pod in pods]
    assert hosts[0] == hosts[1] != hosts[2]
    assert set(hosts) in (set(nodes[:2]), set(nodes[2:]))
    assert {pod["spec"]["nodeSelector"]["pool"] for pod in pods} == {racks.name}
    for pod in pods:
        keys = [key for key in pod["metadata"]["annotations"] if "topology" in key]
        assert keys == [f"{GROUP}/podset-unconstrained-topology"]

    # A flavor with a topology assigns nodes also to a job that requests none.
    other = await _submit(queues, "anywhere", 2)
    others = [pod["spec"]["nodeSelector"][HOST] for pod in await _placed(queues, other, 2)]
    assert all((hosts + others).count(host) <= 2 for host in others)

    await _submit(queues, "large", 5, required=racks.level)
    assert "to fit" in (await jobs.pending("large", "WaitingForQuota"))["message"]
    await _submit(queues, "unknown", 1, preferred="no-level")
    assert "requested level" in (await jobs.pending("unknown", "NoMatchingFlavor"))["message"]
    for name in ("together", "anywhere", "large", "unknown"):
        await jobs.delete(name)
    await queues.until_no_workload()


async def test_slices_of_neighbours_in_rank_share_a_domain(racks: Racks) -> None:
    queues, jobs = racks.queues, racks.queues.jobs
    uid = await _submit(queues, "sliced", 6, slices=racks.level)
    topology = (await queues.workload(uid))["spec"]["podSets"][0]["topologyRequest"]
    assert (topology["podSetSliceRequiredTopology"], topology["podSetSliceSize"]) == (racks.level, 2)
    nodes = list(racks.nodes)
    pods = await _placed(queues, uid, 6)
    places = [nodes.index(pod["spec"]["nodeSelector"][HOST]) // 2 for pod in pods]
    assert places[::2] == places[1::2], "two neighbours are in different racks"
    assert set(places) == {0, 1}
    for pod in pods:
        assert not [key for key in pod["metadata"]["annotations"] if "slice" in key]
    await jobs.delete("sliced")
    await queues.until_no_workload()


@pytest.mark.parametrize("sliced", [False, True])
async def test_a_resumed_job_gets_nodes_only_for_the_replicas_that_have_not_ended(
    racks: Racks, *, sliced: bool
) -> None:
    queues, jobs = racks.queues, racks.queues.jobs
    uid = await _submit(queues, "halved", 4, slices=racks.level if sliced else "")
    await _placed(queues, uid, 4)
    await _succeed(queues, "halved", "worker-0")
    await jobs.pause("halved")
    await jobs.kube.gone(queues.path(uid))
    # Kueue admits the new Workload when it knows of the ended replica.
    await queues.stop("Hold", of=racks.name)
    await jobs.resume("halved")
    await queues.workload(uid, lambda body: body.get("status", {}).get("reclaimablePods"))
    await queues.stop("None", of=racks.name)
    pods = await _placed(queues, uid, 3)
    (assigned,) = (await queues.workload(uid))["status"]["admission"]["podSetAssignments"]
    topology = msgspec.convert(assigned["topologyAssignment"], TopologyAssignment)
    assert assigned["count"] == 3
    assert [pod["spec"]["nodeSelector"][HOST] for pod in pods] == [
        topology.domain_of(place)[HOST] for place in range(3)
    ]
    await jobs.delete("halved")
    await queues.until_no_workload()


async def test_a_job_of_which_a_task_has_ended_is_admitted_again(racks: Racks) -> None:
    queues, jobs = racks.queues, racks.queues.jobs
    uid = await _submit(queues, "without", 2, others=[requesting(kind="ps", cpu="500m", schedulerName="nobody")])
    await _placed(queues, uid, 3)
    await _succeed(queues, "without", "ps-0")
    await queues.workload(uid, lambda body: body["status"].get("reclaimablePods"))
    await queues.stop("HoldAndDrain", of=racks.name)
    await jobs.pending("without", "QueueStopped")
    await queues.stop("None", of=racks.name)
    await _placed(queues, uid, 2)
    await jobs.delete("without")
    await queues.until_no_workload()


async def _succeed(queues: Queues, name: str, replica: str) -> None:
    """Report that the pod of a replica has succeeded, as its kubelet does."""
    path = queues.jobs.objects("pods", f"{name}-{replica}") + "/status"
    (await queues.jobs.kube.patch(path, {"status": {"phase": "Succeeded"}})).ok()
    await queues.jobs.until_replica(name, lambda found: found["phase"] == "Succeeded", replica)


async def test_a_pod_gets_the_node_that_replaces_a_lost_one(racks: Racks) -> None:
    queues, jobs = racks.queues, racks.queues.jobs
    uid = await _submit(queues, "moved", 1, required=racks.level)
    [pod] = await _placed(queues, uid, 1)
    lost = pod["spec"]["nodeSelector"][HOST]
    racks.nodes.remove(lost)
    await racks.report(lost, ready=False)

    def is_elsewhere(pods: Sequence[Body]) -> bool:
        return [pod["spec"]["nodeSelector"][HOST] != lost for pod in pods] == [True]

    await jobs.until_objects("pods", uid, is_elsewhere)
    assert (await jobs.replica("moved"))["attempt"] == 2
    await jobs.delete("moved")
    await queues.until_no_workload()
