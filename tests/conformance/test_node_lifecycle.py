"""Containers start, end, come back and are stopped as a kubelet does it."""

import asyncio
import re
import time
from pathlib import Path
from typing import Any

import pytest

from devcluster.node.agent import NodeAgent
from devcluster.node.network import addresses
from devcluster.node.settings import NodeSettings
from tests.conformance.node_support import Node, Pods, condition, events, shell, state, status_of
from tests.support.clusters.kube import Cluster, KubeClient

pytestmark = pytest.mark.conformance


async def test_a_pod_runs_to_success_and_its_log_is_served(pods: Pods) -> None:
    created = await pods.create("p", shell("echo one; echo two >&2; echo three"))
    pod = await pods.ended("p")
    status = pod["status"]
    assert (status["phase"], status["hostIP"], status["qosClass"]) == ("Succeeded", "127.0.0.1", "BestEffort")
    assert status["podIP"].startswith(("127.", "198.18.", "198.19."))
    assert status["podIPs"] == [{"ip": status["podIP"]}]
    ended = state(pod)["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (0, "Completed")
    assert condition(pod, "Ready") | {"status": "False", "reason": "PodCompleted"} == condition(pod, "Ready")
    assert sorted((await pods.log("p")).split()) == ["one", "three", "two"]
    assert await events(pods, created, "Started") == ["Container started"]


@pytest.mark.parametrize(("script", "code"), [("exit 3", 3), ("kill -9 $$$$", 137), ("kill -TERM $$$$; sleep 1", 143)])
async def test_exit_codes_and_signals(pods: Pods, script: str, code: int) -> None:
    await pods.create("p", shell(script))
    pod = await pods.ended("p")
    assert pod["status"]["phase"] == "Failed"
    assert state(pod)["terminated"] | {"exitCode": code, "reason": "Error"} == state(pod)["terminated"]


async def test_logs_by_tail_limit_time_and_instance(pods: Pods) -> None:
    counting = (
        'n=$(cat /keep/n 2>/dev/null || echo 0); echo $((n+1)) > /keep/n; echo "run $n a"; echo "run $n b"; [ $n = 1 ]'
    )
    mount = {"name": "keep", "mountPath": "/keep"}
    volumes = [{"name": "keep", "emptyDir": {}}]
    await pods.create("p", shell(counting, volumeMounts=[mount]), restartPolicy="OnFailure", volumes=volumes)
    pod = await pods.ended("p")
    assert status_of(pod)["restartCount"] == 1
    assert status_of(pod)["lastState"]["terminated"]["exitCode"] == 1
    assert await pods.log("p") == "run 1 a\nrun 1 b\n"
    assert await pods.log("p", previous="true") == "run 0 a\nrun 0 b\n"
    assert await pods.log("p", tailLines="1") == "run 1 b\n"
    assert await pods.log("p", limitBytes="3") == "run"
    stamped = await pods.log("p", timestamps="true", tailLines="1")
    assert stamped.endswith("Z run 1 b\n")
    assert len(stamped.split()[0]) == len("2026-01-02T03:04:05.000000000Z")
    assert await pods.log("p", sinceTime="2999-01-01T00:00:00Z") == ""


async def test_following_a_log_ends_with_the_container(pods: Pods) -> None:
    await pods.create("p", shell("for i in 1 2 3; do echo $i; sleep 0.2; done"))
    await pods.begun("p")
    assert await pods.log("p", follow="true") == "1\n2\n3\n"


async def test_a_failing_container_backs_off(pods: Pods) -> None:
    created = await pods.create("p", shell("exit 1"), restartPolicy="Always")
    pod = await pods.until("p", lambda pod: state(pod).get("waiting", {}).get("reason") == "CrashLoopBackOff")
    assert pod["status"]["phase"] == "Running"
    assert status_of(pod)["lastState"]["terminated"]["exitCode"] == 1
    assert re.match(r"back-off \d+s restarting failed container=main pod=p_", state(pod)["waiting"]["message"])
    assert (await events(pods, created, "BackOff"))[0].startswith("Back-off restarting failed container main in pod p_")
    await pods.until("p", lambda pod: status_of(pod)["restartCount"] >= 2)
    await pods.delete("p")
    await pods.gone("p")


async def test_a_command_that_does_not_exist(pods: Pods) -> None:
    await pods.create("p", {"name": "main", "image": "busybox", "command": ["no-such-command"]})
    pod = await pods.ended("p")
    ended = state(pod)["terminated"]
    assert (ended["reason"], ended["exitCode"]) == ("StartError", 128)
    assert 'exec: "no-such-command": executable file not found in $PATH' in ended["message"]


@pytest.mark.parametrize(
    "container",
    [
        {"image": "registry.example/none:1"},
        {"image": "registry.example/none:1", "command": [], "args": ["train"]},
        {"image": "registry.example/none:1", "command": ["true"]},
        {"image": "jobgate:1"},  # mapped, but with nothing to run
    ],
)
async def test_a_container_with_an_unknown_image_or_nothing_to_run_waits(pods: Pods, container: dict[str, Any]) -> None:
    await pods.create("p", {"name": "main", **container})
    reason: dict[str, Any] = {}

    def backing_off(pod: dict[str, Any]) -> bool:
        reason.update(state(pod).get("waiting", {}))
        return reason.get("reason") == "ImagePullBackOff"

    pod = await pods.until("p", backing_off)
    assert pod["status"]["phase"] == "Pending"
    assert "the embedded node has no images" in reason["message"]
    assert "waiting to start: trying and failing to pull image" in str(
        (await pods.api.get(f"{pods.base}/pods/p/log")).body
    )
    await pods.delete("p")
    await pods.gone("p")


async def test_init_containers_and_sidecars(pods: Pods) -> None:
    mounts: dict[str, Any] = {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    inits = [
        shell("sleep 0.1; echo 1 >> /v/order", "first", **mounts),
        shell(
            "echo side >> /v/order; trap 'echo bye; exit 0' TERM; touch /v/up; while :; do sleep 0.05; done",
            "side",
            restartPolicy="Always",
            startupProbe={"exec": {"command": ["test", "-f", "/v/up"]}, "periodSeconds": 1},
            **mounts,
        ),
        shell("echo 2 >> /v/order", "second", **mounts),
    ]
    await pods.create(
        "p", shell("cat /v/order", **mounts), initContainers=inits, volumes=[{"name": "v", "emptyDir": {}}]
    )
    pod = await pods.ended("p")
    assert pod["status"]["phase"] == "Succeeded"
    assert await pods.log("p", container="main") == "1\nside\n2\n"
    # A pod ends with its main container; its sidecars are stopped afterwards.
    await pods.logged("p", "bye\n", container="side")
    assert [s["name"] for s in pod["status"]["initContainerStatuses"]] == ["first", "side", "second"]
    assert condition(pod, "Initialized")["status"] == "True"


async def test_a_failed_init_container_fails_the_pod(pods: Pods) -> None:
    await pods.create("p", shell("echo never"), initContainers=[shell("exit 7", "init")])
    pod = await pods.ended("p")
    assert pod["status"]["phase"] == "Failed"
    assert state(pod, "init")["terminated"]["exitCode"] == 7
    assert state(pod)["waiting"]["reason"] == "PodInitializing"
    assert condition(pod, "Initialized")["reason"] == "ContainersNotInitialized"


async def test_deletion_is_graceful(pods: Pods) -> None:
    hooks: dict[str, Any] = {"lifecycle": {"preStop": {"exec": {"command": ["sh", "-c", "echo pre > /v/pre"]}}}}
    mounts: dict[str, Any] = {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    script = "trap 'echo last words; cat /v/pre > /dev/termination-log; exit 5' TERM; while :; do sleep 0.05; done"
    volumes = [{"name": "v", "emptyDir": {}}]
    finalizer = {"metadata": {"finalizers": ["jobgate.dev/evidence"]}}
    await pods.create("p", shell(script, **hooks, **mounts), volumes=volumes)
    (await pods.api.patch(f"{pods.base}/pods/p", finalizer)).ok()
    await pods.running("p")
    await pods.delete("p")
    pod = await pods.ended("p")
    ended = state(pod)["terminated"]
    assert (pod["status"]["phase"], ended["exitCode"], ended["message"]) == ("Failed", 5, "pre\n")
    # The finalizer holds the object; its log is still there to be captured.
    assert "last words\n" in await pods.log("p")
    (await pods.api.patch(f"{pods.base}/pods/p", {"metadata": {"finalizers": None}})).ok()
    await pods.gone("p")


async def test_the_grace_period_ends_in_sigkill(pods: Pods) -> None:
    stubborn = shell("trap '' TERM; echo begun; while :; do sleep 0.05; done")
    await pods.create("p", stubborn, terminationGracePeriodSeconds=1)
    (await pods.api.patch(f"{pods.base}/pods/p", {"metadata": {"finalizers": ["jobgate.dev/evidence"]}})).ok()
    await pods.logged("p", "begun")
    begun = time.monotonic()
    await pods.delete("p")
    pod = await pods.ended("p")
    assert state(pod)["terminated"]["exitCode"] == 137
    assert 0.8 < time.monotonic() - begun < 25  # far from the default of thirty
    (await pods.api.patch(f"{pods.base}/pods/p", {"metadata": {"finalizers": None}})).ok()
    await pods.gone("p")


async def test_the_active_deadline(pods: Pods) -> None:
    await pods.create("p", shell("sleep 60"), activeDeadlineSeconds=1, terminationGracePeriodSeconds=1)
    pod = await pods.ended("p")
    assert (pod["status"]["phase"], pod["status"]["reason"]) == ("Failed", "DeadlineExceeded")
    assert "terminated" in state(pod)


async def test_probes(pods: Pods, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    server = shell(
        f"while ! test -e {mark}; do sleep 0.05; done; touch /v/ready; sleep 60",
        readinessProbe={"exec": {"command": ["test", "-f", "/v/ready"]}, "periodSeconds": 1},
        volumeMounts=[{"name": "v", "mountPath": "/v"}],
    )
    created = await pods.create("p", server, volumes=[{"name": "v", "emptyDir": {}}], terminationGracePeriodSeconds=1)
    pod = await pods.running("p")
    assert (status_of(pod)["ready"], condition(pod, "Ready")["status"]) == (False, "False")
    assert (await events(pods, created, "Unhealthy"))[0].startswith("Readiness probe failed:")
    mark.touch()
    pod = await pods.until("p", lambda pod: status_of(pod)["ready"])
    assert condition(pod, "Ready")["status"] == "True"


async def test_a_failed_liveness_probe_restarts(pods: Pods) -> None:
    probe = {"tcpSocket": {"port": 1}, "periodSeconds": 1, "failureThreshold": 1}
    main = shell("sleep 60", livenessProbe=probe)
    created = await pods.create("p", main, restartPolicy="Always", terminationGracePeriodSeconds=10)
    pod = await pods.until("p", lambda pod: status_of(pod).get("restartCount", 0) >= 1)
    assert status_of(pod)["lastState"]["terminated"]["exitCode"] == 143
    assert "Container main failed liveness probe, will be restarted" in await events(pods, created, "Killing")
    await pods.delete("p", gracePeriodSeconds=0)
    await pods.gone("p")


async def test_the_last_words_of_a_failure(pods: Pods) -> None:
    await pods.create("p", shell("echo why; exit 1", terminationMessagePolicy="FallbackToLogsOnError"))
    assert state(await pods.ended("p"))["terminated"]["message"] == "why\n"


async def test_a_pod_that_does_not_fit_is_refused_by_the_node(pods: Pods) -> None:
    created = await pods.create("p", shell("true", resources={"requests": {"cpu": "100"}}))
    pod = await pods.ended("p")
    words = "Pod was rejected: Node didn't have enough resource: cpu, requested: 100000, used: 0, capacity: 8000"
    assert (pod["status"]["phase"], pod["status"]["reason"], pod["status"]["message"]) == ("Failed", "OutOfcpu", words)
    assert await events(pods, created, "OutOfcpu") == [words]
    assert "containerStatuses" not in pod["status"]


async def test_many_pods_at_once(pods: Pods) -> None:
    names = [f"p{i}" for i in range(20)]
    await asyncio.gather(*(pods.create(name, shell("echo hi")) for name in names))
    ended = await asyncio.gather(*(pods.ended(name) for name in names))
    assert {pod["status"]["phase"] for pod in ended} == {"Succeeded"}
    assert len({pod["status"]["podIP"] for pod in ended}) == len(names)


async def test_ended_pods_give_their_addresses_back(
    cluster: Cluster, api: KubeClient, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node runs more pods than it has addresses, but not at the same time."""
    monkeypatch.setattr(addresses, "LAST_NUMBER", 2)
    node = Node(cluster, tmp_path / "node")
    agent = NodeAgent(cluster.kubeconfig, node.name, NodeSettings(data_dir=node.data_dir, schedulable=False))
    pods = Pods(api, namespace, node)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(agent.run())
        await agent.ready.wait()
        names = [(await pods.create(f"p-{number}", shell("true")))["metadata"]["name"] for number in range(2)]
        ended = [await pods.ended(name) for name in names]
        await pods.create("late", shell("true"))
        ended.append(await pods.ended("late"))
        registered = (await api.get(f"/api/v1/nodes/{node.name}")).ok()
        running.cancel()
    await node.remove(api)
    assert all(pod["status"]["podIP"] != addresses.SHARED for pod in ended)
    assert registered["status"]["allocatable"]["pods"] == "2"
