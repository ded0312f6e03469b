"""Kueue's admission: what it reserves and what it reports."""

import os

import pytest

from tests.support.clusters.kube import KubeClient
from tests.support.clusters.kueue import JOB_UID, Json, Queues, condition, holds, pod_set, workload

pytestmark = pytest.mark.conformance

TAINT = {"key": "example.com/t", "value": "v", "effect": "NoSchedule"}
TOLERATION = {"key": "example.com/t", "operator": "Exists"}


def requesting(count: int = 1, **resources: str) -> Json:
    body = pod_set(count=count)
    body["template"]["spec"]["containers"][0]["resources"] = {"requests": resources}
    return body


async def test_the_reasons_of_a_workload_without_quota(queues: Queues) -> None:
    await queues.add_flavor("f")
    await queues.add_flavor("tainted", nodeTaints=[TAINT])
    await queues.add_flavor("labelled", nodeLabels={"zone": "a"})
    await queues.add_queue("q", {"f": {"cpu": "4"}})
    await queues.add_queue("two", {"tainted": {"cpu": "4"}, "labelled": {"cpu": "4"}})
    await queues.add_queue("stopped", {"f": {"cpu": "4"}}, stopPolicy="Hold")
    await queues.add_queue("flavorless", {"unknown": {"cpu": "4"}})
    await queues.add_queue("elsewhere", {"f": {"cpu": "4"}}, namespaceSelector={"matchLabels": {"team": "other"}})
    await queues.add_local_queue("nowhere", "nothing")
    await queues.add_local_queue("held", "q", stopPolicy="Hold")
    await queues.submit("runs", "q", pod_set(cpu="500m"))
    await queues.submit("runs-too", "two", pod_set())
    await queues.admitted("runs")
    await queues.admitted("runs-too")
    f, tainted, labelled = (queues.wide(name) for name in ("f", "tainted", "labelled"))
    intolerant = f"untolerated taint {{example.com/t v NoSchedule <nil>}} in flavor {tainted}"
    not_there = f"flavor {labelled} doesn't match node affinity, {intolerant}"
    zones = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": zones}}

    def beyond(flavor: str, amount: int) -> str:
        request = f"previously considered podsets requests (0) + current podset request ({amount})"
        return f"insufficient quota for cpu in flavor {flavor}, {request} > maximum capacity (4)"

    def unassigned(why: str, name: str = "main") -> str:
        return f"couldn't assign flavors to pod set {name}: {why}"

    cases: dict[str, tuple[str, list[Json], str, str]] = {
        "no-local": ("none", [], "Inadmissible", "LocalQueue none doesn't exist"),
        "no-cluster": ("nowhere", [], "Inadmissible", f"ClusterQueue {queues.wide('nothing')} doesn't exist"),
        "stopped": ("stopped", [], "Inadmissible", f"ClusterQueue {queues.wide('stopped')} is inactive"),
        "flavorless": ("flavorless", [], "Inadmissible", f"ClusterQueue {queues.wide('flavorless')} is inactive"),
        "held": ("held", [], "Inadmissible", "LocalQueue held is inactive"),
        "selector": ("elsewhere", [], "Pending", "workload namespace doesn't match ClusterQueue selector"),
        "lack": (
            "q",
            [pod_set(cpu="4")],
            "Pending",
            unassigned(f"insufficient unused quota for cpu in flavor {f}, 500m more needed"),
        ),
        "maximum": ("q", [pod_set(count=5)], "Pending", unassigned(beyond(f, 5))),
        "uncovered": (
            "q",
            [requesting(cpu="1", memory="1Gi")],
            "Pending",
            unassigned("resource memory unavailable in ClusterQueue"),
        ),
        "zone": ("two", [pod_set(nodeSelector={"zone": "b"})], "Pending", unassigned(not_there)),
        "affinity": ("two", [pod_set(affinity=affinity)], "Pending", unassigned(not_there)),
        "both": (
            "two",
            [pod_set(cpu="9", tolerations=[TOLERATION])],
            "Pending",
            unassigned(f"{beyond(labelled, 9)}, {beyond(tainted, 9)}"),
        ),
        "second": (
            "two",
            [pod_set("a"), pod_set("b", 3)],
            "Pending",
            unassigned(f"insufficient unused quota for cpu in flavor {labelled}, 1 more needed, {intolerant}", "b"),
        ),
    }
    for name, (queue, pod_sets, _, _) in cases.items():
        await queues.submit(name, queue, *pod_sets)
    for name, (_, _, reason, message) in cases.items():
        found = await queues.pending(name, message, reason)
        assert not condition(found, "Admitted"), name
        assert ("resourceRequests" in found["status"]) == (reason == "Pending"), name


async def test_the_assignment_of_an_admitted_workload(queues: Queues) -> None:
    gpu = "example.com/gpu"
    await queues.add_flavor("tainted", nodeTaints=[TAINT])
    await queues.add_flavor("labelled", nodeLabels={"zone": "a"})
    await queues.add_flavor("f")
    await queues.add_queue("two", {"tainted": {"cpu": "4"}, "labelled": {"cpu": "8"}})
    await queues.add_queue("all", {"f": {"cpu": "4", "memory": "8Gi", "pods": "9", gpu: "2"}})
    tainted, labelled, f = (queues.wide(name) for name in ("tainted", "labelled", "f"))
    large = requesting(2, **{"cpu": "250m", "memory": "1000Mi", gpu: "1"})
    bare = pod_set()
    del bare["template"]["spec"]["containers"][0]["resources"]
    limited = pod_set()
    limited["template"]["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "100m"}}
    whole = pod_set(resources={"requests": {"cpu": "2"}})
    cases: dict[str, tuple[str, list[Json], list[Json]]] = {
        "next-flavor": ("two", [pod_set()], [{"flavors": {"cpu": labelled}, "resourceUsage": {"cpu": "1"}}]),
        "tolerant": (
            "two",
            [pod_set(tolerations=[TOLERATION])],
            [{"flavors": {"cpu": tainted}, "resourceUsage": {"cpu": "1"}}],
        ),
        "other-label": (
            "two",
            [pod_set(nodeSelector={"disk": "ssd"})],
            [{"flavors": {"cpu": labelled}, "resourceUsage": {"cpu": "1"}}],
        ),
        "several": (
            "two",
            [pod_set("a"), pod_set("b", 2, "500m")],
            [{"flavors": {"cpu": labelled}, "resourceUsage": {"cpu": "1"}}] * 2,
        ),
        "limits": ("two", [limited], [{"flavors": {"cpu": labelled}, "resourceUsage": {"cpu": "100m"}}]),
        "whole": ("two", [whole], [{"flavors": {"cpu": labelled}, "resourceUsage": {"cpu": "2"}}]),
        "none": ("two", [bare], [{}]),
        "units": (
            "all",
            [large],
            [
                {
                    "flavors": {"cpu": f, "memory": f, "pods": f, gpu: f},
                    "resourceUsage": {"cpu": "500m", "memory": "2000Mi", "pods": "2", gpu: "2"},
                }
            ],
        ),
    }
    for name, (queue, pod_sets, _) in cases.items():
        await queues.submit(name, queue, *pod_sets)
    for name, (queue, pod_sets, assigned) in cases.items():
        found = (await queues.admitted(name))["status"]
        named = [
            {"name": given["name"], "count": given["count"], **expected}
            for given, expected in zip(pod_sets, assigned, strict=True)
        ]
        assert found["admission"] == {"clusterQueue": queues.wide(queue), "podSetAssignments": named}, name
        assert "resourceRequests" not in found
        reserved, admitted = (condition({"status": found}, kind) for kind in ("QuotaReserved", "Admitted"))
        assert (reserved["reason"], reserved["message"]) == (
            "QuotaReserved",
            f"Quota reserved in ClusterQueue {queues.wide(queue)}",
        )
        assert (admitted["reason"], admitted["message"]) == ("Admitted", "The workload is admitted")


async def test_the_status_of_queues(api: KubeClient, queue: Queues) -> None:
    await queue.add_local_queue("nowhere", "nothing")
    await queue.add_local_queue("held", "q", stopPolicy="Hold")
    await queue.add_queue("flavorless", {"unknown": {"cpu": "4"}})
    await queue.add_queue("stopped", {"f": {"cpu": "4"}}, stopPolicy="Hold")
    await queue.submit("first", "q", pod_set(count=3))
    await queue.admitted("first")
    for name in ("second", "third"):
        await queue.submit(name, "q", pod_set(cpu="2"))
    await queue.submit("beside", "held")
    counts = {"pendingWorkloads": 2, "reservingWorkloads": 1, "admittedWorkloads": 1}
    resources = [{"name": "cpu", "total": "3"}]
    expected = counts | {"flavorsUsage": [{"name": queue.wide("f"), "resources": resources}]}
    await api.eventually(f"{queue.local_queues}/q", lambda obj: obj.get("status", {}).items() >= expected.items())
    resources[0] |= {"borrowed": "0"}
    await api.eventually(queue.cluster_queue("q"), lambda obj: obj.get("status", {}).items() >= expected.items())
    unusable = "Can't submit new workloads to clusterQueue"
    for path, status, reason, message in (
        (queue.cluster_queue("q"), "True", "Ready", "Can admit new workloads"),
        (queue.cluster_queue("stopped"), "False", "Stopped", "Can't admit new workloads: is stopped."),
        (
            queue.cluster_queue("flavorless"),
            "False",
            "FlavorNotFound",
            f"Can't admit new workloads: references missing ResourceFlavor(s): {queue.wide('unknown')}.",
        ),
        (f"{queue.local_queues}/q", "True", "Ready", "Can submit new workloads to localQueue"),
        (f"{queue.local_queues}/held", "False", "Stopped", "LocalQueue is stopped"),
        (f"{queue.local_queues}/stopped", "False", "ClusterQueueIsInactive", unusable),
        (f"{queue.local_queues}/nowhere", "False", "ClusterQueueDoesNotExist", unusable),
    ):
        found = await api.eventually(path, holds("Active", status, reason))
        assert condition(found, "Active")["message"] == message
    await queue.finish("first")
    await queue.admitted("second")
    await queue.admitted("third")
    await api.eventually(f"{queue.local_queues}/q", lambda obj: obj["status"]["admittedWorkloads"] == 2)


async def test_strict_order(queue: Queues) -> None:
    await queue.add_queue("strict", {"f": {"cpu": "4"}}, queueingStrategy="StrictFIFO")
    await queue.submit("runs", "strict", pod_set(cpu="3"), priority=9)
    await queue.admitted("runs")
    await queue.submit("large", "strict", pod_set(cpu="2"), priority=5)
    await queue.reaches("large", holds("QuotaReserved", "False", "Pending"))
    await queue.submit("small", "strict", pod_set(cpu="1"))
    await queue.finish("runs")
    await queue.admitted("large")
    found = await queue.admitted("small")
    times = [condition(obj, "QuotaReserved")["lastTransitionTime"] for obj in (await queue.get("large"), found)]
    assert times == sorted(times)


async def test_the_order_of_the_queue(queue: Queues) -> None:
    await queue.submit("runs", "q", pod_set(cpu="4"), priority=9)
    await queue.admitted("runs")
    for name, cpu, priority in (("low", "4", 1), ("high", "4", 3), ("small", "500m", 2)):
        await queue.submit(name, "q", pod_set(cpu=cpu), priority=priority)
        await queue.reaches(name, holds("QuotaReserved", "False", "Pending"))
    await queue.finish("runs")
    await queue.admitted("high")
    for name in ("small", "low"):
        assert holds("QuotaReserved", "False")(await queue.get(name))
    await queue.finish("high")
    await queue.admitted("small")
    await queue.finish("small")
    await queue.admitted("low")


async def test_a_deactivated_workload_neither_runs_nor_queues(queue: Queues) -> None:
    await queue.submit("runs", "q", pod_set(cpu="3"))
    await queue.admitted("runs")
    await queue.submit("waits", "q", pod_set(cpu="3"))
    await queue.submit("born-inactive", "q", active=False)
    await queue.reaches("waits", holds("QuotaReserved", "False"))
    for name in ("waits", "runs"):
        await queue.edit(name, active=False)
    for name in ("runs", "waits", "born-inactive"):
        found = await queue.reaches(name, holds("Evicted", reason="Deactivated"))
        assert queue.message(found, "Evicted") == "The workload is deactivated"
    # Its quota is free before its owner has stopped its pods.
    await queue.submit("other", "q", pod_set(cpu="4"))
    await queue.admitted("other")
    assert (await queue.get("runs"))["status"]["admission"]
    await queue.give_back("runs")
    await queue.finish("other")
    for name in ("runs", "waits", "born-inactive"):
        assert not holds("QuotaReserved")(await queue.get(name))
        await queue.edit(name, active=True)
        found = await queue.admitted(name)
        assert holds("Evicted", "False", "QuotaReserved")(found)
        assert queue.message(found, "Evicted") == "Previously: The workload is deactivated"
        await queue.finish(name)


async def test_queues_that_come_and_go(api: KubeClient, queue: Queues) -> None:
    await queue.submit("runs", "q", pod_set(cpu="4"))
    await queue.admitted("runs")
    await queue.submit("waits", "q")
    await queue.submit("early", "late")
    await queue.pending("early", "LocalQueue late doesn't exist", "Inadmissible")
    await queue.reaches("waits", holds("QuotaReserved", "False", "Pending"))
    (await api.delete(f"{queue.local_queues}/q")).ok()
    await queue.pending("waits", "LocalQueue q doesn't exist", "Inadmissible")
    assert holds("Admitted")(await queue.get("runs"))
    used = [{"name": queue.wide("f"), "resources": [{"name": "cpu", "total": "4", "borrowed": "0"}]}]
    await api.eventually(queue.cluster_queue("q"), lambda obj: obj["status"]["flavorsUsage"] == used)
    await queue.add_local_queue("late", "q")
    resources = [{"name": "cpu", "nominalQuota": "6"}]
    groups = [{"coveredResources": ["cpu"], "flavors": [{"name": queue.wide("f"), "resources": resources}]}]
    (await api.patch(queue.cluster_queue("q"), {"spec": {"resourceGroups": groups}})).ok()
    await queue.admitted("early")
    await queue.add_local_queue("q", "q")
    await queue.admitted("waits")


@pytest.mark.parametrize("kind", ["ClusterQueue", "LocalQueue"])
async def test_a_queue_that_stops(api: KubeClient, queue: Queues, kind: str) -> None:
    path = queue.cluster_queue("q") if kind == "ClusterQueue" else f"{queue.local_queues}/q"
    name = queue.wide("q") if kind == "ClusterQueue" else "q"
    await queue.submit("runs", "q", pod_set(cpu="4"))
    await queue.admitted("runs")
    await queue.submit("waits", "q")
    await queue.reaches("waits", holds("QuotaReserved", "False", "Pending"))
    (await api.patch(path, {"spec": {"stopPolicy": "Hold"}})).ok()
    await queue.submit("late", "q")
    await queue.pending("late", f"{kind} {name} is inactive", "Inadmissible")
    assert not condition(await queue.get("runs"), "Evicted")
    (await api.patch(path, {"spec": {"stopPolicy": "HoldAndDrain"}})).ok()
    drained = await queue.reaches("runs", holds("Evicted", reason=f"{kind}Stopped"))
    assert queue.message(drained, "Evicted") == f"The {kind} is stopped"
    assert drained["status"]["admission"]
    await queue.give_back("runs", requeued=False)
    await queue.pending("runs", f"{kind} {name} is inactive", "Inadmissible")
    for other in ("waits", "late"):
        await queue.edit(other, active=False)
    (await api.patch(path, {"spec": {"stopPolicy": "None"}})).ok()
    restarted = await queue.reaches("runs", holds("Requeued", reason=f"{kind}Restarted"))
    assert queue.message(restarted, "Requeued") == f"The {kind} was restarted after being stopped"
    await queue.admitted("runs")


async def test_pods_that_are_not_needed_any_more_give_their_quota_back(api: KubeClient, queue: Queues) -> None:
    await queue.submit("runs", "q", pod_set(count=4))
    await queue.admitted("runs")
    await queue.submit("waits", "q", pod_set(cpu="2"))
    await queue.reaches("waits", holds("QuotaReserved", "False", "Pending"))

    async def reclaim(count: int, name: str = "main") -> tuple[int, str]:
        pods = [{"name": name, "count": count}]
        answer = await queue.write_status("runs", lambda status: status.update(reclaimablePods=pods))
        return answer.status, str(answer.body.get("message", ""))

    refusal = 'admission webhook "vworkload.kb.io" denied the request: status.reclaimablePods'
    code, message = await reclaim(5)
    assert (code, message) == (403, f"{refusal}[main].count: Invalid value: 5: should be less or equal to 4")
    code, message = await reclaim(1, "other")
    assert (code, message) == (403, f'{refusal}[other].name: Unsupported value: "other": supported values: "main"')
    assert (await reclaim(2))[0] == 200
    await queue.admitted("waits")
    code, message = await reclaim(1)
    # Kueue 0.15 writes "then".
    words = f"{refusal}[main].count: Invalid value: 1: cannot be less than 2"
    assert (code, message.replace("then", "than")) == (403, words)
    used = [{"name": queue.wide("f"), "resources": [{"name": "cpu", "total": "4"}]}]
    await api.eventually(f"{queue.local_queues}/q", lambda obj: obj["status"]["flavorsUsage"] == used)


async def test_pods_that_are_not_needed_before_the_admission_get_no_quota(api: KubeClient, queue: Queues) -> None:
    await queue.submit("runs", "q", pod_set(cpu="2"))
    await queue.admitted("runs")
    await queue.submit("waits", "q", pod_set(count=3))
    await queue.reaches("waits", holds("QuotaReserved", "False", "Pending"))
    pods = [{"name": "main", "count": 1}]
    assert (await queue.write_status("waits", lambda status: status.update(reclaimablePods=pods))).status == 200
    admitted = await queue.admitted("waits")
    assert admitted["status"]["admission"]["podSetAssignments"][0]["count"] == 2
    used = [{"name": queue.wide("f"), "resources": [{"name": "cpu", "total": "4"}]}]
    await api.eventually(f"{queue.local_queues}/q", lambda obj: obj["status"]["flavorsUsage"] == used)


async def test_a_workload_holds_its_quota_until_it_is_gone(api: KubeClient, queue: Queues) -> None:
    body = workload("leaves", "q", pod_set(cpu="3"))
    body["metadata"]["finalizers"] = ["example.com/pods"]
    (await api.post(queue.workloads, body)).ok()
    await queue.admitted("leaves")
    (await api.delete(f"{queue.workloads}/leaves")).ok()
    await queue.submit("waits", "q", pod_set(cpu="2"))
    await queue.reaches("waits", holds("QuotaReserved", "False", "Pending"))
    assert holds("Admitted")(await queue.get("leaves"))
    (await api.patch(f"{queue.workloads}/leaves", {"metadata": {"finalizers": None}})).ok()
    await queue.admitted("waits")


async def test_a_workload_whose_job_is_gone_is_finished(api: KubeClient, queue: Queues) -> None:
    """The label of a job without a reference to an owner says so."""
    orphan = workload("orphan", "q")
    orphan["metadata"]["labels"] = {JOB_UID: "the-uid"}
    (await api.post(queue.workloads, orphan)).ok()
    if "0.15" in os.environ.get("KUEUE", ""):
        pytest.skip("Kueue 0.15 does not care about the owner of a Workload")
    # It may be admitted before.
    found = await queue.reaches("orphan", holds("Finished", reason="OwnerNotFound"))
    assert queue.message(found, "Finished") == "The workload's owner no longer exists"
    await queue.submit("other", "q", pod_set(cpu="4"))
    await queue.admitted("other")


async def test_the_visibility_api_tells_the_places_of_pending_workloads(api: KubeClient, queue: Queues) -> None:
    visible = "/apis/visibility.kueue.x-k8s.io/v1beta2"
    if (await api.get(visible)).status != 200:
        pytest.skip("the cluster does not serve Kueue's visibility API")
    await queue.submit("first", "q", pod_set(cpu="4"), priority=9)
    await queue.admitted("first")
    await queue.submit("low", "q", pod_set(cpu="3"), priority=1)
    await queue.submit("high", "q", pod_set(cpu="2"), priority=5)
    path = f"{visible}/clusterqueues/{queue.wide('q')}/pendingworkloads"
    found = await api.eventually(path, lambda body: len(body["items"]) == 2)
    assert [item["metadata"]["name"] for item in found["items"]] == ["high", "low"]
    for position, item in enumerate(found["items"]):
        assert (item["positionInClusterQueue"], item["positionInLocalQueue"]) == (position, position)
        assert (item["localQueueName"], item["metadata"]["namespace"]) == ("q", queue.namespace)
    assert (await api.get(f"{visible}/clusterqueues/none/pendingworkloads")).refused(404, "NotFound")
