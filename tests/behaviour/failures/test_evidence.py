"""The evidence of an attempt is in PostgreSQL before its pod is replaced or cleaned up."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.behaviour.client import Jobs
from tests.behaviour.conftest import OtherGateway
from tests.behaviour.manifests import container, job, task, until_marked
from tests.support.clusters.cluster import require_faults

KEPT = 64 * 1024


def attempt(replica: dict[str, Any], number: int = 1) -> dict[str, Any]:
    found: dict[str, Any] = next(item for item in replica["attempts"] if item["number"] == number)
    return found


def of(found: dict[str, Any], name: str) -> dict[str, Any]:
    container: dict[str, Any] = next(item for item in found["containers"] if item["name"] == name)
    return container


async def test_log_tail_and_exit_code_survive_the_clean_up(jobs: Jobs) -> None:
    job_ = job("tidy", task("echo last words; exit 5"), cleanUpPolicy="All")
    await jobs.submit(job_)
    await jobs.until("tidy", "Failed")
    await jobs.until_pod_gone("tidy-worker-0")
    replica = await jobs.replica("tidy")
    assert (replica["phase"], replica["exitCode"]) == ("Failed", 5)
    assert attempt(replica)["evidence"] == "Captured"
    stored = await jobs.log("tidy")
    assert (stored.text, stored.headers["Jobgate-Log-Source"]) == ("last words\n", "stored")
    assert stored.headers["Jobgate-Log-Truncated"] == "false"


async def test_a_long_log_keeps_its_last_bytes(jobs: Jobs) -> None:
    script = (
        "i=0; while test $i -lt 3000; do echo $i 0123456789012345678901234567890123456789; i=$((i+1)); done; exit 1"
    )
    await jobs.submit(job("long", task(script), cleanUpPolicy="All"))
    await jobs.until("long", "Failed")
    await jobs.until_pod_gone("long-worker-0")
    stored = await jobs.log("long")
    assert len(stored.content) == KEPT
    assert stored.headers["Jobgate-Log-Truncated"] == "true"
    assert stored.text.splitlines()[-1].startswith("2999 ")


async def test_bytes_that_are_no_text_are_kept_as_they_are(jobs: Jobs) -> None:
    await jobs.submit(job("bytes", task(r"printf 'a\377\000b\n'; exit 1"), cleanUpPolicy="All"))
    await jobs.until("bytes", "Failed")
    await jobs.until_pod_gone("bytes-worker-0")
    assert (await jobs.log("bytes")).content == b"a\xff\x00b\n"


async def test_a_signal_is_told_beside_its_exit_code(jobs: Jobs) -> None:
    await jobs.submit(job("killed", task("kill -KILL $$$$")))
    await jobs.until("killed", "Failed")
    replica = await jobs.replica("killed")
    assert replica["exitCode"] == 137
    assert (of(replica, "main")["exitCode"], of(replica, "main")["signal"]) == (137, 9)


async def test_out_of_memory_has_its_reason(jobs: Jobs) -> None:
    play: list[dict[str, Any]] = [
        {"phase": "Running"},
        {"log": "allocating"},
        {"after": 0.2, "terminated": {"container": "main", "exitCode": 137, "reason": "OOMKilled"}},
    ]
    await jobs.submit(job("hungry", task(play=play, policy="OnFailure", limit=1)))
    replica = await jobs.until_replica("hungry", lambda replica: replica["attempt"] == 2)
    first = attempt(replica)
    assert (first["reason"], first["exitCode"], first["evidence"]) == ("OOMKilled", 137, "Captured")
    assert of(first, "main")["reason"] == "OOMKilled"
    assert (await jobs.log("hungry", attempt="1")).text == "allocating\n"


async def test_the_termination_message_is_kept(jobs: Jobs) -> None:
    main = container("echo noise; echo loss is NaN >&2; exit 2", terminationMessagePolicy="FallbackToLogsOnError")
    await jobs.submit(job("told", task(containers=[main])))
    await jobs.until("told", "Failed")
    replica = await jobs.replica("told")
    assert "loss is NaN" in replica["message"]
    assert "loss is NaN" in of(replica, "main")["message"]


async def test_every_container_keeps_its_own_words(jobs: Jobs) -> None:
    first = container("echo prepared", "prepare")
    mains = [container("echo one; exit 4", "one"), container("echo two; exit 0", "two")]
    await jobs.submit(job("many", task(containers=mains, initContainers=[first]), cleanUpPolicy="All"))
    await jobs.until("many", "Failed")
    await jobs.until_pod_gone("many-worker-0")
    replica = await jobs.replica("many")
    assert replica["exitCode"] == 4
    codes = {item["name"]: (item["exitCode"], item["init"]) for item in replica["containers"]}
    assert codes == {"prepare": (0, True), "one": (4, False), "two": (0, False)}
    texts = {name: (await jobs.log("many", container=name)).text for name in ("prepare", "one", "two")}
    assert texts == {"prepare": "prepared\n", "one": "one\n", "two": "two\n"}


async def test_a_failed_init_container_is_the_reason(jobs: Jobs) -> None:
    first = container("echo no data >&2; exit 6", "fetch")
    await jobs.submit(job("empty", task(initContainers=[first]), cleanUpPolicy="All"))
    await jobs.until("empty", "Failed")
    replica = await jobs.replica("empty")
    assert replica["exitCode"] == 6
    assert "fetch" in replica["message"]
    shown = await jobs.log("empty")
    assert (shown.text, shown.headers["Jobgate-Log-Container"]) == ("no data\n", "fetch")
    assert "(init container fetch, exit code 6, Error): no data" in (await jobs.status("empty"))["message"]


@pytest_asyncio.fixture
async def slow(other_gateway: OtherGateway) -> AsyncIterator[Jobs]:
    """A client of a gateway that restarts a failed replica after an hour."""
    async with other_gateway(JOBGATE_RESTART_BACKOFF="3600") as client:
        yield client


async def test_the_log_of_a_crash_is_shown_during_the_back_off_and_after_it(slow: Jobs) -> None:
    await slow.submit(job("crash", task("echo last words; exit 5", policy="OnFailure", limit=3)))
    await slow.until_replica("crash", lambda found: found["attempt"] == 2)

    async def shown() -> tuple[str, str]:
        answer = await slow.log("crash")
        return answer.text, answer.headers["Jobgate-Log-Attempt"]

    assert await shown() == ("last words\n", "1")
    assert (await slow.log("crash", merged="true")).text == "worker[0] last words\n"
    await slow.cancel("crash")
    await slow.until("crash", "Cancelled")
    assert await shown() == ("last words\n", "1")
    await slow.delete("crash")
    assert await shown() == ("last words\n", "1")


async def test_the_last_events_about_a_pod_outlive_it(jobs: Jobs) -> None:
    play: list[dict[str, Any]] = [
        {"phase": "Running"},
        {"event": {"reason": "GpuFellOff", "message": "Xid 79", "type": "Warning"}},
        {"after": 2, "terminated": {"exitCode": 1}},
    ]
    await jobs.submit(job("events", task(play=play), cleanUpPolicy="All"))
    await jobs.until("events", "Failed")
    await jobs.until_pod_gone("events-worker-0")
    items = (await jobs.read("events", "events"))["items"]
    stored = [item for item in items if item["reason"] == "GpuFellOff"]
    assert [(item["message"], item["type"], item["task"], item["rank"]) for item in stored] == [
        ("Xid 79", "Warning", "worker", 0)
    ]


async def test_a_pod_is_deleted_only_after_its_log_was_read_and_loses_only_our_finalizer(
    jobs: Jobs, tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    await jobs.submit(job("held", task(until_marked(mark, "echo words; exit 1")), cleanUpPolicy="All"))
    await jobs.until("held", "Running")
    patch = {"metadata": {"finalizers": ["jobgate.dev/evidence", "example.com/mine"]}}
    (await jobs.kube.patch(jobs.objects("pods", "held-worker-0"), patch)).ok()
    mark.touch()

    def is_let_go(pod: dict[str, Any]) -> bool:
        return bool(pod["metadata"].get("deletionTimestamp")) and pod["metadata"]["finalizers"] == ["example.com/mine"]

    await jobs.until_pod("held-worker-0", is_let_go)
    assert attempt(await jobs.replica("held"))["evidence"] == "Captured"
    assert (await jobs.log("held")).text == "words\n"
    (await jobs.kube.patch(jobs.objects("pods", "held-worker-0"), {"metadata": {"finalizers": None}})).ok()
    await jobs.until_pod_gone("held-worker-0")


@pytest.fixture
async def faulty(jobs: Jobs) -> AsyncIterator[Jobs]:
    require_faults(jobs.kube.cluster)
    yield jobs
    await jobs.no_faults()


UNREADABLE = {"verb": "get", "resource": "pods", "subresource": "log", "status": 500}


@pytest.mark.parametrize("policy", ["replaced", "cleaned up"])
async def test_nothing_is_replaced_or_cleaned_up_before_the_log_could_be_read(faulty: Jobs, policy: str) -> None:
    limit, clean_up = (1, "None") if policy == "replaced" else (0, "All")
    script = "test $(rank) = 0 && echo words && exit 1"
    manifest = job("patient", task(script, policy="OnFailure", limit=limit), cleanUpPolicy=clean_up)
    await faulty.fault(**UNREADABLE)
    await faulty.submit(manifest)
    await faulty.until_hit(2)
    replica = await faulty.replica("patient")
    assert (replica["attempt"], replica["exitCode"], attempt(replica)["evidence"]) == (1, 1, "None")
    pod = await faulty.pod("patient-worker-0")
    assert "deletionTimestamp" not in pod["metadata"]
    assert pod["metadata"]["finalizers"] == ["jobgate.dev/evidence"]
    await faulty.no_faults()
    await faulty.until("patient", "Failed")
    await faulty.until_replica("patient", lambda found: attempt(found)["evidence"] == "Captured")
    assert (await faulty.log("patient", attempt="1")).text == "words\n"
    assert (await faulty.replica("patient"))["restartCount"] == limit


@pytest_asyncio.fixture
async def hasty(other_gateway: OtherGateway) -> AsyncIterator[Jobs]:
    """A client of a gateway that soon gives a log up."""
    async with other_gateway(JOBGATE_EVIDENCE_DEADLINE="3") as client:
        yield client


@pytest.mark.usefixtures("faulty")
async def test_a_log_that_cannot_be_read_in_time_is_given_up_with_the_reason(hasty: Jobs) -> None:
    await hasty.fault(**UNREADABLE, message="the kubelet is away")
    await hasty.submit(job("mute", task("echo words; exit 1"), cleanUpPolicy="All"))
    await hasty.until("mute", "Failed")
    await hasty.until_pod_gone("mute-worker-0")
    [ended] = (await hasty.replica("mute"))["attempts"]
    assert (ended["evidence"], ended["exitCode"]) == ("Unavailable", 1)
    assert "the kubelet is away" in ended["evidenceReason"]
