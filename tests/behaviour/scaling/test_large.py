"""More replicas than one reconcile has actions for, and unusual bytes in a status, which stop no other job."""

from typing import Any

import pytest

from tests.behaviour.client import Jobs
from tests.behaviour.manifests import job, task

MANY = 60  # a pass acts on fifty pods at most


@pytest.mark.timeout(600)
async def test_a_job_larger_than_a_pass_comes_up_and_goes_whole(jobs: Jobs) -> None:
    play: list[dict[str, Any]] = [{"phase": "Running"}]
    uid = (await jobs.submit(job("wide", task(play=play, replicas=MANY))))["uid"]
    await jobs.until_status("wide", lambda status: status["aggregate"]["running"] == MANY, within=240)
    await jobs.until("wide", "Running")
    pods = await jobs.of_job("pods", uid)
    ranks = sorted(int(pod["metadata"]["labels"]["jobgate.dev/task-rank"]) for pod in pods)
    assert ranks == list(range(MANY))
    assert {item["attempt"] for item in (await jobs.replicas("wide")).values()} == {1}
    await jobs.delete("wide")
    for kind in ("pods", "configmaps"):
        await jobs.until_objects(kind, uid, lambda found: not found)
    assert (await jobs.read_uid(uid))["status"]["aggregate"]["deleted"] == MANY


async def test_nul_in_a_status_is_cleaned_and_stops_nobody(jobs: Jobs) -> None:
    play: list[dict[str, Any]] = [
        {"phase": "Running"},
        {"log": {"base64": "YQD/Ygo="}},
        {"status": {"reason": "Odd\u0000Reason", "message": "before\u0000after"}},
        {"after": 0.3, "terminated": {"exitCode": 1, "message": "last\u0000words"}},
    ]
    await jobs.submit(job("odd", task(play=play), cleanUpPolicy="All"))
    await jobs.submit(job("other", task("exit 0")))
    await jobs.until("odd", "Failed")
    await jobs.until("other", "Succeeded")
    await jobs.until_pod_gone("odd-worker-0")
    replica = await jobs.replica("odd")
    assert "\u0000" not in str(replica)
    assert "before" in replica["message"]
    assert "after" in replica["message"]
    assert (await jobs.log("odd")).content == b"a\x00\xffb\n"
