"""What docs/elasticity.md promises of a job whose size changes while it runs."""

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import pytest

from tests.behaviour.client import Body, Jobs
from tests.behaviour.manifests import job, until_marked
from tests.behaviour.scaling.elastic import GRACE, leaves, leaves_when_marked, of_rank, python, shell, training_job


async def started(jobs: Jobs, name: str, script: str, trainers: int = 1, entrypoint: str = "") -> str:
    """A job that runs with so many trainers; its uid."""
    uid: str = (await jobs.submit(training_job(name, entrypoint or shell(script))))["uid"]
    await jobs.until(name, "Running")
    if trainers > 1:
        await jobs.scale(name, trainers)
        assert (await jobs.until_settled(name))["outcome"] == "Reached"
        await jobs.until(name, "Running")
    return uid


async def ready_to_leave(jobs: Jobs, name: str, *ranks: int) -> None:
    """Wait until these trainers have set their traps: one that is asked before has no last words."""
    for rank in ranks:
        await jobs.until_log(name, "hello", task="trainer", rank=str(rank))


async def phases(jobs: Jobs, name: str) -> list[str]:
    """The phases of the job, one after the other."""
    found = [row["phase"] for row in await jobs.history(name) if row["task"] is None]
    return [phase for phase, before in zip(found, [None, *found], strict=False) if phase != before]


async def native_records(jobs: Jobs, name: str) -> list[Body]:
    records: list[Body] = (await jobs.job(name))["nativeStatus"]["scale_records"]["ScaleRecords"]
    return records


def is_leaving(pod: Body) -> bool:
    return "deletionTimestamp" in pod["metadata"]


async def test_growth_leaves_the_pods_that_are_there_alone(jobs: Jobs) -> None:
    uid = await started(jobs, "grows", leaves())
    before = await jobs.pod_uids(uid)
    answer = await jobs.scale("grows", 3, reason="the queue is long")
    assert (answer["scaling"]["trainer"], answer["generation"]) == ({"replicas": 3, "min": 1, "max": 4}, 2)
    record = await jobs.until_settled("grows")
    await jobs.until("grows", "Running")
    after = await jobs.pod_uids(uid)
    assert set(after) - set(before) == {"grows-trainer-1", "grows-trainer-2"}
    assert before.items() <= after.items()
    assert (await phases(jobs, "grows"))[-3:] == ["Running", "Scaling", "Running"]
    requested, settled = (datetime.fromisoformat(record.pop(key)) for key in ("requestedAt", "settledAt"))
    assert requested < settled
    assert record == {
        "seq": 1,
        "task": "trainer",
        "fromReplicas": 1,
        "toReplicas": 3,
        "actor": "anonymous",
        "actorId": "anonymous",
        "reason": "the queue is long",
        "outcome": "Reached",
        "message": "3 replicas are running or done",
    }
    [native] = await native_records(jobs, "grows")
    assert (native["additional"], native["status"]) == (2, "True")
    assert {replica["attempt"] for replica in (await jobs.replicas("grows")).values()} == {1}


@pytest.mark.parametrize("code", [0, 3])
async def test_the_highest_ranks_leave_in_their_grace_period_and_that_is_no_failure(
    code: int, jobs: Jobs, tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    uid = await started(jobs, "shrinks", leaves_when_marked(mark, f"exit {code}"), trainers=3)
    before = await jobs.pod_uids(uid)
    await ready_to_leave(jobs, "shrinks", 1, 2)
    await jobs.scale("shrinks", 1)
    for rank in (1, 2):
        pod = await jobs.until_pod(f"shrinks-trainer-{rank}", is_leaving)
        assert pod["metadata"]["deletionGracePeriodSeconds"] == GRACE
    status = await jobs.until("shrinks", "Scaling")
    assert sum(status["aggregate"].values()) == 2, "who leaves is in no aggregate"
    assert (await native_records(jobs, "shrinks"))[-1]["status"] == "Unknown"
    mark.touch()
    record = await jobs.until_settled("shrinks", 2)
    assert (record["outcome"], record["fromReplicas"], record["toReplicas"]) == ("Reached", 3, 1)
    await jobs.until("shrinks", "Running")
    for rank in (1, 2):
        await jobs.until_pod_gone(f"shrinks-trainer-{rank}")
        replica = await jobs.until_replica("shrinks", captured, f"trainer-{rank}")
        assert (replica["leaving"], replica["exitCode"], replica["restartCount"]) == (True, code, 0)
        [attempt] = replica["attempts"]
        assert (attempt["outcome"], attempt["exitCode"]) == ("Stopped", code)
        log = await jobs.log("shrinks", task="trainer", rank=str(rank), attempt="1")
        assert log.text == f"hello from shrinks-trainer-{rank}\nlast words\n"
        assert log.headers["Jobgate-Log-Source"] == "stored"
    after = await jobs.pod_uids(uid)
    assert after == {name: before[name] for name in ("shrinks-master-0", "shrinks-trainer-0")}
    assert (await jobs.replica("shrinks", "trainer-0"))["leaving"] is False


def captured(replica: Body) -> bool:
    return bool(replica["attempts"][-1]["evidence"] == "Captured")


WATCH = """
import json, os, pathlib, time
path = pathlib.Path(os.environ["JOBGATE_HOSTS_FILE"])
printed = None
while True:
    first = json.loads(path.read_text())
    lines = path.with_name("trainer.hosts").read_text().splitlines()
    if first != printed and first == json.loads(path.read_text()):
        printed = first
        print(json.dumps([first["generation"], first["hosts"]["trainer"], lines]), flush=True)
    time.sleep(0.1)
"""


async def test_the_list_of_hosts_is_current_before_new_pods_are_and_running_ones_see_it(jobs: Jobs) -> None:
    sizes = {1: 1, 2: 3, 3: 2}
    uid = (await jobs.submit(training_job("told", python(WATCH))))["uid"]
    await jobs.until("told", "Running")
    await jobs.until_log("told", "[1,", task="trainer", rank="0")

    await jobs.scale("told", sizes[2])
    await jobs.until_objects("pods", uid, lambda pods: len(pods) > 2)
    listed = (await jobs.kube.get(jobs.objects("configmaps", "told-hosts"))).ok()
    assert json.loads(listed["data"]["hosts.json"])["generation"] == 2, "no new pod comes before the list"
    for rank in (0, 1, 2):
        await jobs.until_log("told", "[2,", task="trainer", rank=str(rank))

    await jobs.scale("told", sizes[3])
    path = jobs.objects("configmaps", "told-hosts")
    await jobs.kube.eventually(path, lambda found: json.loads(found["data"]["hosts.json"])["generation"] == 3)
    for rank, first in ((0, 1), (1, 2)):
        log = await jobs.until_log("told", "[3,", task="trainer", rank=str(rank))
        seen = [json.loads(line) for line in log.splitlines()]
        assert [generation for generation, _, _ in seen] == list(range(first, 4))
        for generation, hosts, lines in seen:
            names = [f"told-trainer-{other}.told.{jobs.namespace}.svc" for other in range(sizes[generation])]
            assert (hosts, lines) == (names, [f"# generation {generation}", *names])


async def test_a_rank_that_comes_back_goes_on_counting_its_attempts(jobs: Jobs) -> None:
    await started(jobs, "again", leaves("exit 3"), trainers=2)
    await ready_to_leave(jobs, "again", 1)
    await jobs.scale("again", 1)
    assert (await jobs.until_settled("again", 2))["outcome"] == "Reached"
    await jobs.scale("again", 2)
    assert (await jobs.until_settled("again", 3))["outcome"] == "Reached"
    replica = await jobs.until_replica("again", lambda found: found["phase"] == "Running", "trainer-1")
    assert (replica["attempt"], replica["leaving"], replica["restartCount"], replica["disruptions"]) == (2, False, 0, 0)
    assert [attempt["outcome"] for attempt in replica["attempts"]] == ["Stopped", None]
    first = await jobs.log("again", task="trainer", rank="1", attempt="1")
    assert (first.text, first.headers["Jobgate-Log-Source"]) == ("hello from again-trainer-1\nlast words\n", "stored")
    second = await jobs.until_log("again", "hello", task="trainer", rank="1", attempt="2")
    assert second == "hello from again-trainer-1\n"
    assert (await jobs.job("again"))["nativeStatus"]["phase"] == "Running"


async def test_a_rank_whose_work_was_done_when_it_left_is_still_done(jobs: Jobs) -> None:
    uid = await started(jobs, "spent", of_rank({1: "exit 0"}, leaves()), trainers=2)
    await jobs.until_replica("spent", lambda found: found["phase"] == "Succeeded", "trainer-1")
    before = await jobs.pod_uids(uid)
    for seq, size in ((2, 1), (3, 2)):
        await jobs.scale("spent", size)
        assert (await jobs.until_settled("spent", seq))["outcome"] == "Reached"
    replica = await jobs.replica("spent", "trainer-1")
    assert (replica["phase"], replica["attempt"], replica["leaving"]) == ("Succeeded", 1, False)
    assert (await jobs.pod_uids(uid))["spent-trainer-0"] == before["spent-trainer-0"]


async def test_a_job_that_has_never_run_is_resized_as_it_begins(jobs: Jobs) -> None:
    await hard_limit(jobs, 0)
    await jobs.submit(training_job("early", shell(leaves())))
    await jobs.pending("early", "QuotaExceeded")
    await jobs.scale("early", 2)
    await jobs.until_replicas("early", lambda found: "trainer-1" in found)
    await hard_limit(jobs, 5)
    await jobs.until_status("early", lambda status: status["aggregate"]["running"] == 3)
    await jobs.until("early", "Running")
    assert "Scaling" not in await phases(jobs, "early")


async def test_growth_that_a_quota_refuses_harms_nobody_and_comes_when_it_may(jobs: Jobs) -> None:
    await hard_limit(jobs, 3)
    uid = await started(jobs, "frugal", leaves())
    before = await jobs.pod_uids(uid)
    await jobs.scale("frugal", 3)
    record = await jobs.until_settled("frugal")
    assert record["outcome"] == "Refused"
    assert record["message"].startswith("QuotaExceeded: ")
    assert "exceeded quota: pods" in record["message"]
    # Both are asked for at once, and the quota lets in the one that comes first.
    await jobs.until_replicas("frugal", lambda found: phases_of(found, "trainer-1", "trainer-2").count("Running") == 1)
    reason = await jobs.pending("frugal", "QuotaExceeded")
    assert "exceeded quota: pods" in reason["message"]
    assert (await jobs.status("frugal"))["phase"] == "Scaling"
    [native] = await native_records(jobs, "frugal")
    assert (native["status"], native["reason"]) == ("False", record["message"])

    await jobs.scale("frugal", 2)
    assert (await jobs.until_settled("frugal", 2))["outcome"] == "Reached"
    await jobs.until("frugal", "Running")

    # Kubernetes counts pods that are gone, and new ones, with a delay, in which it can let in one too many.
    await jobs.kube.eventually(f"{jobs.objects('resourcequotas')}/pods", lambda found: uses(found, 3))
    await jobs.scale("frugal", 3)
    assert (await jobs.until_settled("frugal", 3))["outcome"] == "Refused"
    await hard_limit(jobs, 5)
    await jobs.until_replicas("frugal", lambda found: phases_of(found, "trainer-1", "trainer-2") == ["Running"] * 2)
    status = await jobs.until("frugal", "Running")
    assert status["pendingReasons"] == []
    assert before.items() <= (await jobs.pod_uids(uid)).items()


def phases_of(found: Mapping[str, Body], *replicas: str) -> list[str]:
    return [found[replica]["phase"] for replica in replicas if replica in found]


def uses(quota: Body, pods: int) -> bool:
    return bool(quota["status"].get("used") == {"pods": str(pods)})


async def hard_limit(jobs: Jobs, pods: int) -> None:
    quotas, hard = jobs.objects("resourcequotas"), {"hard": {"pods": str(pods)}}
    answer = await jobs.kube.patch(f"{quotas}/pods", {"spec": hard})
    if answer.status == 404:
        (await jobs.kube.post(quotas, {"metadata": {"name": "pods"}, "spec": hard})).ok()
    await jobs.kube.eventually(f"{quotas}/pods", lambda found: found["status"].get("hard") == hard["hard"])


async def test_of_two_requests_in_a_row_the_last_one_wins(jobs: Jobs) -> None:
    uid = await started(jobs, "fickle", leaves())
    await jobs.scale("fickle", 4)
    await jobs.scale("fickle", 2)
    await jobs.scale("fickle", 2)
    assert (await jobs.until_settled("fickle", 2))["outcome"] == "Reached"
    first, second = await jobs.scale_records("fickle")
    assert first["outcome"] in ("Replaced", "Reached")
    assert [(one["fromReplicas"], one["toReplicas"]) for one in (first, second)] == [(1, 4), (4, 2)]
    await jobs.until("fickle", "Running")
    wanted = ["fickle-master-0", "fickle-trainer-0", "fickle-trainer-1"]
    await jobs.until_objects("pods", uid, lambda pods: sorted(pod["metadata"]["name"] for pod in pods) == wanted)

    for size in (0, 5):
        refused = await jobs.http.post(jobs.path("fickle", "scale"), json={"replicas": size})
        assert refused.status_code == 422, refused.text
        [error] = refused.json()["errors"]
        assert (error["pointer"], error["code"], error["accepted"]) == ("/replicas", "OutOfRange", "1 to 4")
    assert len(await jobs.scale_records("fickle")) == 2


async def test_a_kind_of_one_size_says_so(jobs: Jobs) -> None:
    await jobs.submit(job("rigid"))
    refused = await jobs.http.post(jobs.path("rigid", "scale"), json={"replicas": 2})
    assert (refused.status_code, refused.json()["code"]) == (409, "ScaleNotSupported")


async def held(jobs: Jobs, name: str, mark: Path, otherwise: str) -> str:
    """A job whose second trainer is on its way out, and takes its time until the test makes this file."""
    uid = await started(jobs, name, of_rank({1: leaves_when_marked(mark)}, otherwise), trainers=2)
    await ready_to_leave(jobs, name, 1)
    await jobs.scale(name, 1)
    await jobs.until_pod(f"{name}-trainer-1", is_leaving)
    return uid


@pytest.mark.parametrize("end", ["cancel", "delete"])
async def test_a_job_is_cancelled_when_those_who_leave_are_gone_too(end: str, jobs: Jobs, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    uid = await held(jobs, "ends", mark, leaves())
    await (jobs.cancel("ends") if end == "cancel" else jobs.delete("ends"))
    [last] = await jobs.until_objects("pods", uid, lambda pods: len(pods) == 1)
    assert last["metadata"]["name"] == "ends-trainer-1"
    status = (await jobs.read_uid(uid, "status"))["status"]
    assert (status["phase"] == "Cancelled", status["reason"]) == (False, "Cancelling")
    mark.touch()
    await jobs.until("ends", "Cancelled")
    assert all(pod["status"]["phase"] == "Succeeded" for pod in await jobs.of_job("pods", uid)), "nobody runs any more"
    await jobs.until_objects("pods", uid, lambda pods: not pods)
    up, down = (await jobs.read_uid(uid, "scale-records"))["items"]
    assert (up["outcome"], down["outcome"] in ("Reached", "JobEnded")) == ("Reached", True)
    if end == "delete":
        for kind in ("configmaps", "services"):
            await jobs.until_objects(kind, uid, lambda found: not found)


async def test_a_job_whose_trainers_are_done_does_not_wait_for_those_who_leave(jobs: Jobs, tmp_path: Path) -> None:
    mark, done = tmp_path / "mark", tmp_path / "done"
    uid = await held(jobs, "done", mark, until_marked(done, "exit 0"))
    done.touch()
    status = await jobs.until("done", "Succeeded")
    assert status["aggregate"]["succeeded"] == 1
    assert (await jobs.until_settled("done", 2))["outcome"] in ("Reached", "JobEnded")
    mark.touch()
    await jobs.until_pod_gone("done-trainer-1")
    await jobs.until_released(uid)
    assert (await jobs.status("done"))["phase"] == "Succeeded"
    replica = await jobs.until_replica("done", captured, "trainer-1")
    assert (replica["leaving"], replica["attempts"][0]["outcome"]) == (True, "Stopped")
