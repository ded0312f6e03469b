"""Jobs beyond the limit of live pods of their namespace wait, and start in their order when there is room."""

from pathlib import Path

import pytest

from tests.behaviour.conftest import OtherGateway
from tests.behaviour.manifests import Body, job, task, until_marked

pytestmark = pytest.mark.timeout(600)

TWO_PODS = {"JOBGATE_MAX_LIVE_PODS_PER_NAMESPACE": "2", "JOBGATE_MAX_WAITING_JOBS_PER_NAMESPACE": "10"}
CODE = "WaitingForPodLimit"


def of_pods(name: str, script: str, *, pods: int = 1, priority: int = 0) -> Body:
    return job(name, task(script, replicas=pods), scheduler={"t9kScheduler": {"queue": "q", "priority": priority}})


async def test_five_jobs_share_the_room_for_two_pods(other_gateway: OtherGateway, tmp_path: Path) -> None:
    marks = {name: tmp_path / name for name in ("first", "second", "large")}
    async with other_gateway(**TWO_PODS) as jobs:
        for name in ("first", "second"):
            await jobs.submit(of_pods(name, until_marked(marks[name], "exit 0")))
            await jobs.until(name, "Running")
        large = await jobs.submit(of_pods("large", until_marked(marks["large"], "exit 0"), pods=2))
        await jobs.submit(of_pods("small", "exit 0"))
        await jobs.pending("small", CODE)
        await jobs.submit(of_pods("urgent", "exit 0", priority=9))
        reason = await jobs.pending("urgent", CODE)
        assert reason["message"].endswith("have 2 of 2 pods; it is the next job to get room")

        marks["first"].touch()
        await jobs.until("urgent", "Succeeded")
        # There is room for the small job, but the large one is before it.
        status = await jobs.until_status("small", lambda found: found["message"].endswith("before it: large"))
        assert (status["phase"], status["reason"]) == ("Queued", CODE)
        assert (
            "have 1 of 2 pods"
            in (await jobs.until_status("large", lambda found: "1 of 2" in found["message"]))["message"]
        )
        assert await jobs.of_job("pods", large["uid"]) == []
        await jobs.pause("small")
        await jobs.until("small", "Paused")
        await jobs.resume("small")
        await jobs.pending("small", CODE)

        marks["second"].touch()
        await jobs.until("large", "Running")
        assert (await jobs.status("small"))["reason"] == CODE
        marks["large"].touch()
        for name in ("first", "second", "large", "small"):
            await jobs.until(name, "Succeeded")
