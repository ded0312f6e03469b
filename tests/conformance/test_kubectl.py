"""The everyday commands of a real kubectl."""

import asyncio
import json
import re
import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.node_support import Node
from tests.support.clusters import kubectl as command
from tests.support.clusters.kube import DEADLINE, Cluster, KubeClient
from tests.support.clusters.kubectl import Kubectl

NOT_FOUND = "there is no kubectl on PATH: install the one of a release of Kubernetes"
pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(command.find() is None, reason=NOT_FOUND),
]
CORDONED = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}
AGE = r"\d+s"


@pytest.fixture
def kubectl(cluster: Cluster, namespace: str, tmp_path: Path) -> Kubectl:
    found = command.find()
    assert found is not None
    return Kubectl(found, cluster, namespace, tmp_path)


@pytest.fixture
async def volume(api: KubeClient) -> AsyncIterator[str]:
    """The name of a volume for the test to make."""
    name = f"kubectl-{secrets.token_hex(5)}"
    yield name
    await api.delete(f"/api/v1/persistentvolumes/{name}")


def pod(name: str, node: str, script: str, **more: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "busybox", "command": ["sh", "-c", script]}
    spec = {"nodeName": node, "restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container]}
    metadata = {"name": name, "labels": {"app": name}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec | more}


def config_map(**data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": data}


def stateful_set(node: str, command: str = "sleep 600") -> dict[str, Any]:
    container = {"name": "main", "image": "busybox", "command": ["sh", "-c", command]}
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {
            "containers": [container],
            "nodeSelector": {"kubernetes.io/hostname": node},
            "tolerations": [CORDONED],
            "terminationGracePeriodSeconds": 1,
        },
    }
    selector = {"matchLabels": {"app": "web"}}
    spec = {"serviceName": "web", "replicas": 2, "selector": selector, "template": template}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "web"}, "spec": spec}


# For each kind its columns with `-o wide`, and the cells of the object below.
TABLES: dict[str, tuple[str, str]] = {
    "pods": (
        "NAME|READY|STATUS|RESTARTS|AGE|IP|NODE|NOMINATED NODE|READINESS GATES",
        rf"p|0/1|SchedulingGated|0|{AGE}|<none>|<none>|<none>|<none>",
    ),
    "services": (
        "NAME|TYPE|CLUSTER-IP|EXTERNAL-IP|PORT\\(S\\)|AGE|SELECTOR",
        rf"s|ClusterIP|None|<none>|80/TCP,53/UDP|{AGE}|a=b,c=d",
    ),
    "configmaps": ("NAME|DATA|AGE", rf"settings|2|{AGE}"),
    "secrets": ("NAME|TYPE|DATA|AGE", rf"sec|Opaque|1|{AGE}"),
    "serviceaccounts": ("NAME|AGE", rf"sa|{AGE}"),
    "resourcequotas": ("NAME|REQUEST|LIMIT|AGE", rf"q|cpu: 0/1, pods: \d/9|limits.cpu: 0/2|{AGE}"),
    "leases": ("NAME|HOLDER|AGE", rf"l|me|{AGE}"),
    "namespaces": ("NAME|STATUS|AGE", rf"test-\w+|Active|{AGE}"),
    "persistentvolumeclaims": (
        "NAME|STATUS|VOLUME|CAPACITY|ACCESS MODES|STORAGECLASS|VOLUMEATTRIBUTESCLASS|AGE|VOLUMEMODE",
        rf"c|Pending|nosuch|0|<unset>|{AGE}|Filesystem",
    ),
    "persistentvolumes": (
        r"NAME|CAPACITY|ACCESS MODES|RECLAIM POLICY|STATUS|CLAIM|STORAGECLASS|VOLUMEATTRIBUTESCLASS|REASON|AGE|\w+MODE",
        rf"kubectl-\w+|1Gi|RWO,RWX|Retain|\w+|other|<unset>|{AGE}|Filesystem",
    ),
    "statefulsets": ("NAME|READY|AGE|CONTAINERS|IMAGES", rf"web|0/0|{AGE}|main|busybox"),
    "controllerrevisions": ("NAME|CONTROLLER|REVISION|AGE", rf"web-\w+|statefulset.apps/web|1|{AGE}"),
    "events": (
        "LAST SEEN|TYPE|REASON|OBJECT|SUBOBJECT|SOURCE|MESSAGE|FIRST SEEN|COUNT|NAME",
        r"<unknown>|Normal|Tested|pod/p|spec.x|me, here|It works.|<unknown>|3|e",
    ),
}  # fmt: skip


def objects_of_all_kinds(namespace: str, volume: str) -> list[dict[str, Any]]:
    storage = {"accessModes": ["ReadWriteOnce"], "volumeName": "nosuch", "storageClassName": ""}
    claim = storage | {"resources": {"requests": {"storage": "1Gi"}}}
    ports = [{"name": "web", "port": 80}, {"name": "dns", "port": 53, "protocol": "UDP"}]
    offered = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce", "ReadWriteMany"],
        "storageClassName": "other",
        "hostPath": {"path": "/nosuch"},
    }
    waiting = pod("p", "", "true", schedulingGates=[{"name": "example.org/wait"}])
    del waiting["spec"]["nodeName"]
    empty_set = stateful_set("none")
    empty_set["spec"]["replicas"] = 0
    about = {"kind": "Pod", "name": "p", "namespace": namespace, "fieldPath": "spec.x", "apiVersion": "v1"}
    event = {"involvedObject": about, "type": "Normal", "reason": "Tested", "message": " It works. ", "count": 3}
    kinds: list[tuple[str, str, str, dict[str, Any]]] = [
        ("v1", "Service", "s", {"spec": {"clusterIP": "None", "selector": {"c": "d", "a": "b"}, "ports": ports}}),
        ("v1", "Secret", "sec", {"stringData": {"a": "b"}}),
        ("v1", "ServiceAccount", "sa", {}),
        ("v1", "ResourceQuota", "q", {"spec": {"hard": {"pods": "9", "cpu": "1", "limits.cpu": "2"}}}),
        ("coordination.k8s.io/v1", "Lease", "l", {"spec": {"holderIdentity": "me"}}),
        ("v1", "PersistentVolumeClaim", "c", {"spec": claim}),
        ("v1", "PersistentVolume", volume, {"spec": offered}),
        ("v1", "Event", "e", event | {"source": {"component": "me", "host": "here"}}),
    ]
    made = [
        {"apiVersion": version, "kind": kind, "metadata": {"name": name}} | rest for version, kind, name, rest in kinds
    ]
    return [waiting, config_map(a="1", b="2"), *made, empty_set]


async def test_get_shows_each_kind_as_a_real_cluster_does(
    kubectl: Kubectl, api: KubeClient, namespace: str, volume: str
) -> None:
    items = objects_of_all_kinds(namespace, volume)
    document = {"apiVersion": "v1", "kind": "List", "items": items}
    # A quota on cpu refuses pods that ask for none: the pod first.
    (await kubectl.run("create", "-f", "-", stdin=json.dumps(document))).ok()
    await api.eventually(
        f"/apis/apps/v1/namespaces/{namespace}/controllerrevisions", lambda found: bool(found["items"])
    )
    await api.eventually(
        f"/api/v1/namespaces/{namespace}/resourcequotas/q", lambda found: "hard" in found.get("status", {})
    )
    # A namespace has more of these than what was made here.
    named = {"namespaces": (namespace,), "persistentvolumes": (volume,), "events": ("e",), "serviceaccounts": ("sa",)}
    named["configmaps"] = ("settings",)
    wrong = {}
    for kind, (header, row) in TABLES.items():
        names = named.get(kind, ())
        shown = (await kubectl.run("get", kind, *names, "-o", "wide")).ok().splitlines()
        for expected, line in zip((header, row), shown, strict=False):
            cells = "|".join(re.split(r" {2,}", line.strip()))
            if not re.fullmatch(expected.replace("|", r"\|"), cells):
                wrong[kind] = (expected, cells)
    assert not wrong


async def test_nodes_and_how_they_are_cordoned(kubectl: Kubectl, node: Node) -> None:
    wide = "NAME STATUS ROLES AGE VERSION INTERNAL-IP EXTERNAL-IP OS-IMAGE KERNEL-VERSION CONTAINER-RUNTIME"
    shown = (await kubectl.run("get", "node", node.name, "-o", "wide")).ok()
    assert shown.splitlines()[0].split() == wide.split()

    async def status() -> str:
        return (await kubectl.run("get", "node", node.name, "--no-headers")).ok().split()[1]

    # The agent has registered it cordoned. The taint keeps the pods of other tests away while it is not.
    assert await status() == "Ready,SchedulingDisabled"
    (await kubectl.run("taint", "node", node.name, "mine=yes:NoSchedule")).ok()
    (await kubectl.run("uncordon", node.name)).ok()
    assert await status() == "Ready"
    (await kubectl.run("cordon", node.name)).ok()
    assert await status() == "Ready,SchedulingDisabled"
    (await kubectl.run("taint", "node", node.name, "mine-")).ok()
    assert "Unschedulable:      true" in (await kubectl.run("describe", "node", node.name)).ok()


async def test_a_list_is_taken_apart(kubectl: Kubectl) -> None:
    """The kind List is in no OpenAPI v3 document."""
    document = json.dumps({"apiVersion": "v1", "kind": "List", "items": [config_map(a="1")]})
    assert (await kubectl.run("apply", "-f", "-", stdin=document)).ok() == "configmap/settings created\n"
    exported = (await kubectl.run("get", "cm,sa", "-o", "yaml")).ok()
    (await kubectl.run("replace", "-f", "-", stdin=exported)).ok()


async def test_an_object_from_apply_to_delete(kubectl: Kubectl) -> None:
    async def run(*arguments: str, **data: str) -> str:
        return (await kubectl.run(*arguments, stdin=json.dumps(config_map(**data)))).ok()

    async def data() -> dict[str, str]:
        found: dict[str, str] = json.loads(await run("get", "cm", "settings", "-o", "json"))["data"]
        return found

    assert await run("apply", "-f", "-", kept="1", dropped="2") == "configmap/settings created\n"
    assert await run("apply", "-f", "-", kept="1", dropped="2") == "configmap/settings unchanged\n"
    difference = await kubectl.run("diff", "-f", "-", stdin=json.dumps(config_map(kept="1", new="3")))
    assert difference.status == 1, difference
    assert {'-  dropped: "2"', '+  new: "3"'} <= set(difference.out.splitlines())
    assert await run("apply", "-f", "-", kept="1", new="3") == "configmap/settings configured\n"
    assert await data() == {"kept": "1", "new": "3"}
    assert await run("patch", "cm", "settings", "-p", '{"data":{"more":"4"}}') == "configmap/settings patched\n"
    assert await run("label", "cm", "settings", "team=vision") == "configmap/settings labeled\n"
    assert await run("annotate", "cm", "settings", "note=x") == "configmap/settings annotated\n"
    assert await run("get", "cm", "-l", "team=vision", "-o", "name") == "configmap/settings\n"
    assert "team=vision" in await run("get", "cm", "settings", "--show-labels")
    assert await run("replace", "-f", "-", only="5") == "configmap/settings replaced\n"
    assert await data() == {"only": "5"}
    assert "only:\n----\n5" in await run("describe", "cm", "settings")
    assert 'configmap "settings" deleted' in await run("delete", "cm", "settings")
    assert "not found" in (await kubectl.run("get", "cm", "settings")).failed()


async def test_server_side_apply(kubectl: Kubectl, cluster: Cluster) -> None:
    answer = await kubectl.run("apply", "--server-side", "-f", "-", stdin=json.dumps(config_map(a="1")))
    if cluster.real:
        assert answer.ok() == "configmap/settings serverside-applied\n"
    else:
        assert "the embedded cluster has no server-side apply; apply without --server-side" in answer.failed()


async def test_unknown_fields_are_refused(kubectl: Kubectl) -> None:
    wrong = json.dumps(config_map() | {"datas": {}})
    for verb in ("create", "apply"):
        assert 'unknown field "datas"' in (await kubectl.run(verb, "-f", "-", stdin=wrong)).failed()


@pytest.mark.parametrize(
    ("arguments", "path", "expected"),
    [
        ("secret generic x --from-literal=a=b", "/secrets/x", {"data": {"a": "Yg=="}, "type": "Opaque"}),
        ("configmap x --from-literal=a=b", "/configmaps/x", {"data": {"a": "b"}}),
        ("serviceaccount x", "/serviceaccounts/x", {}),
        ("quota x --hard=cpu=1,pods=2", "/resourcequotas/x", {"spec": {"hard": {"cpu": "1", "pods": "2"}}}),
        ("service clusterip x --tcp=80:web", "/services/x", {}),
    ],
)
async def test_imperative_create(
    kubectl: Kubectl, api: KubeClient, arguments: str, path: str, expected: dict[str, Any]
) -> None:
    """client-go sends these in protobuf."""
    (await kubectl.run("create", *arguments.split())).ok()
    made = (await api.get(f"/api/v1/namespaces/{kubectl.namespace}{path}")).ok()
    assert made | expected == made
    if "service clusterip" in arguments:
        port = {"name": "80-web", "port": 80, "protocol": "TCP", "targetPort": "web"}
        assert (made["spec"]["ports"], made["spec"]["selector"]) == ([port], {"app": "x"})


async def test_a_pod_from_create_to_delete(kubectl: Kubectl, node: Node, cluster: Cluster) -> None:
    async def ok(*arguments: str, stdin: str = "") -> str:
        return (await kubectl.run(*arguments, stdin=stdin)).ok()

    watching = await kubectl.start("get", "pods", "--watch")
    assert watching.stdout is not None
    assert watching.stdin is not None
    script = "echo one; while [ ! -e done ]; do sleep 0.1; done; echo two"
    await ok("create", "-f", "-", stdin=json.dumps(pod("p", node.name, script)))
    await ok("wait", "--for=condition=Ready", "pod/p", "--timeout=60s")
    assert re.search(rf"^p +1/1 +Running +0 +{AGE}$", await ok("get", "pods"), re.MULTILINE)
    assert await ok("get", "pod", "p", "-o", "jsonpath={.status.phase}") == "Running"
    assert await ok("logs", "p") == "one\n"
    described = await ok("describe", "pod", "p")
    assert "Container started" in described
    assert f"Node:             {node.name}/" in described
    assert re.search(r"Normal +Started +Pod/p +Container started", await ok("events", "--for", "pod/p"))
    follows = await kubectl.start("logs", "--follow", "p")
    assert follows.stdout is not None
    async with asyncio.timeout(DEADLINE):
        assert await follows.stdout.readline() == b"one\n"
    if not cluster.real:
        refused = (await kubectl.run("exec", "p", "--", "ls")).failed()
        assert "the embedded cluster has no exec: containers are processes of the node's machine" in refused
        assert "the embedded cluster has no port-forward" in (await kubectl.run("port-forward", "p", "8080")).failed()
    assert "Metrics API not available" in (await kubectl.run("top", "pod")).failed()
    assert 'pod "p" deleted' in await ok("delete", "pod", "p")
    await follows.communicate()
    async with asyncio.timeout(DEADLINE):
        seen = [re.split(r" {2,}", (await watching.stdout.readline()).decode().strip()) for _ in range(2)]
    watching.kill()
    await watching.communicate()
    assert seen[0] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert (len(seen[1]), seen[1][0]) == (5, "p")


async def test_a_stateful_set_is_rolled_out_scaled_and_undone(kubectl: Kubectl, node: Node) -> None:
    async def ok(*arguments: str, stdin: str = "") -> str:
        return (await kubectl.run(*arguments, stdin=stdin)).ok()

    async def commands() -> set[str]:
        path = "{range .items[*]}{.spec.containers[0].command[2]}{'\\n'}{end}"
        return set((await ok("get", "pods", "-l", "app=web", "-o", f"jsonpath={path}")).split("\n")) - {""}

    await ok("apply", "-f", "-", stdin=json.dumps(stateful_set(node.name)))
    assert "roll" in await ok("rollout", "status", "sts/web", "--timeout=80s")
    # The apply merges lists by name, and the server keeps its defaults.
    await ok("apply", "-f", "-", stdin=json.dumps(stateful_set(node.name, "sleep 500")))
    await ok("rollout", "status", "sts/web", "--timeout=80s")
    assert await commands() == {"sleep 500"}
    assert re.search(r"^2 ", await ok("rollout", "history", "sts/web"), re.MULTILINE)
    await ok("rollout", "undo", "sts/web")
    await ok("rollout", "status", "sts/web", "--timeout=80s")
    assert await commands() == {"sleep 600"}
    assert await ok("scale", "sts/web", "--replicas=1") == "statefulset.apps/web scaled\n"
    await ok("wait", "--for=delete", "pod/web-1", "--timeout=60s")
    assert re.search(
        rf"^statefulset.apps/web +1/1 +{AGE}|^statefulset.apps/web +1/1 ", await ok("get", "all"), re.MULTILINE
    )
    assert 'statefulset.apps "web" deleted' in await ok("delete", "sts", "web")


async def test_drain_evicts_what_has_a_controller(
    kubectl: Kubectl, api: KubeClient, cluster: Cluster, tmp_path: Path
) -> None:
    node = Node(cluster, tmp_path / "node").start()
    try:
        (await kubectl.run("apply", "-f", "-", stdin=json.dumps(stateful_set(node.name)))).ok()
        (await kubectl.run("rollout", "status", "sts/web", "--timeout=80s")).ok()
        (await kubectl.run("create", "-f", "-", stdin=json.dumps(pod("bare", node.name, "sleep 600")))).ok()
        # Its successors would come back at once: the set tolerates a cordoned node.
        (await kubectl.run("delete", "sts", "web", "--cascade=orphan")).ok()
        refused = (await kubectl.run("drain", node.name, "--timeout=60s")).failed()
        assert "declare no controller (use --force to override)" in refused
        drained = (await kubectl.run("drain", node.name, "--force", "--timeout=60s")).ok()
        assert "pod/bare evicted" in drained
        assert f"node/{node.name} drained" in drained
    finally:
        await node.remove(api)


async def test_what_the_api_says_of_itself(kubectl: Kubectl, minor: int) -> None:
    async def ok(*arguments: str) -> list[str]:
        return (await kubectl.run(*arguments)).ok().splitlines()

    assert await ok("auth", "can-i", "create", "pods") == ["yes"]
    assert any(line.startswith("Resources ") for line in await ok("auth", "can-i", "--list"))
    assert any(line.startswith("Username ") for line in await ok("auth", "whoami"))
    assert [line.split() for line in await ok("api-resources", "--api-group=apps") if "statefulsets" in line] == [
        ["statefulsets", "sts", "apps/v1", "true", "StatefulSet"]
    ]
    explained = await ok("explain", "statefulset.spec.template.spec.containers")
    assert "FIELD: containers <[]Container>" in explained
    assert any(line.split()[:2] == ["livenessProbe", "<Probe>"] for line in explained)
    assert any(line.startswith(f"Server Version: v1.{minor}.") for line in await ok("version"))
    assert "v1" in await ok("api-versions")
