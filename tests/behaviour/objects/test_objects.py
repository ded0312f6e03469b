"""The objects of a job in the cluster: names, labels, owners, finalizers, Services and variables in the pod."""

import json
from typing import Any

from tests.behaviour.client import Jobs
from tests.behaviour.manifests import FOREVER, container, job, task

PORT = {"ports": [{"name": "rpc", "port": 2222}]}


def owner(uid: str, anchor: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": f"jobgate-{uid}",
            "uid": anchor["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": False,
        }
    ]


def common_labels(uid: str, name: str, installation: str) -> dict[str, str]:
    return {
        "jobgate.dev/installation": installation,
        "jobgate.dev/job-uid": uid,
        "jobgate.dev/kind": "GenericJob",
        "app.kubernetes.io/managed-by": "jobgate",
        "app.kubernetes.io/part-of": "jobgate",
        "app.kubernetes.io/instance": name,
    }


def upstream_labels(name: str, replica: str) -> dict[str, str]:
    return {
        "genericjob": name,
        "genericjob-replica": replica,
        "tensorstack.dev/component": "genericjob",
        "tensorstack.dev/component-type": "user",
        "tensorstack.dev/owner-name": name,
    }


async def test_every_object_has_its_name_labels_owner_and_finalizer(jobs: Jobs) -> None:
    tasks = [task(kind="ps"), task(replicas=2, labels={"team": "blue"})]
    uid = (await jobs.submit(job("train", *tasks, service=PORT)))["uid"]
    await jobs.until("train", "Running")

    [anchor] = await jobs.of_job("configmaps", uid)
    assert anchor["metadata"]["name"] == f"jobgate-{uid}"
    assert anchor["metadata"]["annotations"]["jobgate.dev/generation"] == "1"
    assert anchor["data"]["name"] == "train"
    assert "sleep" not in json.dumps(anchor["data"])
    installation = anchor["metadata"]["labels"]["jobgate.dev/installation"]
    common = common_labels(uid, "train", installation)
    assert anchor["metadata"]["labels"] == common

    names = ["train-ps-0", "train-worker-0", "train-worker-1"]
    assert await jobs.names("pods", uid) == names
    assert await jobs.names("services", uid) == names
    for number, pod in enumerate(sorted(await jobs.of_job("pods", uid), key=lambda pod: pod["metadata"]["name"])):
        metadata: dict[str, Any] = pod["metadata"]
        _, kind, rank = str(metadata["name"]).split("-")
        assert metadata["ownerReferences"] == owner(uid, anchor)
        assert metadata["finalizers"] == ["jobgate.dev/evidence"]
        assert metadata["labels"] == common | upstream_labels("train", metadata["name"]) | {
            "jobgate.dev/task": kind,
            "jobgate.dev/task-rank": rank,
            "jobgate.dev/global-rank": str(number),
            "jobgate.dev/attempt": "1",
            "app.kubernetes.io/component": kind,
        } | ({"team": "blue"} if kind == "worker" else {})
        assert pod["spec"]["hostname"] == metadata["name"]
        assert pod["spec"]["restartPolicy"] == "Never"
    for service in await jobs.of_job("services", uid):
        name = service["metadata"]["name"]
        assert service["metadata"]["ownerReferences"] == owner(uid, anchor)
        assert service["metadata"]["labels"] == common | upstream_labels("train", name)
        assert service["spec"]["clusterIP"] == "None"
        assert service["spec"]["publishNotReadyAddresses"] is True
        assert service["spec"]["selector"] == {"genericjob-replica": name, "jobgate.dev/job-uid": uid}
        assert [(port["name"], port["port"]) for port in service["spec"]["ports"]] == [("rpc", 2222)]


async def test_without_ports_there_are_no_services(jobs: Jobs) -> None:
    uid = (await jobs.submit(job("alone")))["uid"]
    await jobs.until("alone", "Running")
    assert await jobs.names("services", uid) == []


async def test_a_service_that_translates_ports_has_an_address(jobs: Jobs) -> None:
    ports = {"ports": [{"port": 80, "targetPort": 8080}]}
    uid = (await jobs.submit(job("web", service=ports)))["uid"]
    [service] = await jobs.until_objects("services", uid, bool)
    assert service["spec"]["clusterIP"] != "None"


async def test_the_end_is_written_on_the_anchor(jobs: Jobs) -> None:
    uid = (await jobs.submit(job("brief", task("true"))))["uid"]
    await jobs.until("brief", "Succeeded")

    def end_is_written(anchors: Any) -> bool:
        return bool(anchors) and anchors[0]["metadata"]["annotations"].get("jobgate.dev/terminal-phase") == "Succeeded"

    await jobs.until_objects("configmaps", uid, end_is_written)


async def test_variables_are_filled_in_where_the_pod_runs(jobs: Jobs) -> None:
    words = "$(type),$(rank),$(replicas[worker]),$(service.ps[0].host),$(service.port[rpc])"
    main = container('echo "command $0"; echo "args $1"; echo "env $WORDS $(unknown)"; exec sleep 600')
    main["command"] += [words]
    main["args"] = ["$(type)-$(rank)"]
    main["env"] = [{"name": "WORDS", "value": f"{words} $(HOME_OF_NOBODY)"}]
    side = container(f"echo side {words}; {FOREVER}", "side")
    await jobs.submit(job("vars", task(kind="ps"), task(replicas=2, containers=[main, side]), service=PORT))
    await jobs.until("vars", "Running")
    expected = "worker,1,2,vars-ps-0,2222"
    where = {"task": "worker", "rank": "1"}
    lines = (await jobs.until_log("vars", f"env {expected} $(HOME_OF_NOBODY)", **where)).splitlines()
    assert f"command {expected}" in lines
    assert "args worker-1" in lines
    await jobs.until_log("vars", f"side {expected}\n", container="side", **where)


async def test_what_a_dry_run_shows_is_what_is_made(jobs: Jobs) -> None:
    manifest = job("plain", task(replicas=2), service=PORT)
    answer = await jobs.http.post(f"/api/v1/namespaces/{jobs.namespace}/jobs", params={"dryRun": "All"}, json=manifest)
    assert answer.status_code == 200, answer.text
    promised = {(item["kind"], item["metadata"]["name"]) for item in answer.json()["manifests"]}
    uid = (await jobs.submit(manifest))["uid"]
    await jobs.until("plain", "Running")
    kinds = {"Pod": "pods", "Service": "services", "ConfigMap": "configmaps"}
    made = {(kind, name) for kind, plural in kinds.items() for name in await jobs.names(plural, uid)}
    # A dry run has another uid, and so other names of the objects that are named by it.
    by_uid = {"ConfigMap", "PodGroup"}
    assert {pair for pair in promised if pair[0] not in by_uid} == {pair for pair in made if pair[0] not in by_uid}


async def test_a_sidecar_runs_beside_the_job_and_does_not_hold_it_up(jobs: Jobs) -> None:
    side = container("trap 'exit 0' TERM; while true; do sleep 0.1; done", "side", restartPolicy="Always")
    await jobs.submit(job("sided", task("exit 0", initContainers=[side])))
    await jobs.until("sided", "Succeeded")
    replica = await jobs.replica("sided")
    assert replica["exitCode"] == 0
    assert {entry["name"] for entry in replica["containers"]} == {"side", "main"}
