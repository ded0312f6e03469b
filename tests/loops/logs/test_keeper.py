"""A process keeps the logs of the pods that are on record, as far as the store, the limits and the node let it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import pytest
from prometheus_client import REGISTRY

from app.db import kept_logs, log_keepers, log_removal
from app.db.jobs import controller
from app.db.log_keepers import LogKeeperRow
from app.domain.kept_logs.codec import decode_chunk
from app.domain.kept_logs.keys import LogKey
from app.domain.kept_logs.records import GapReason, KeptLog, KeptLogState
from app.domain.kept_logs.sharing import owner_of
from app.domain.kubernetes import labels
from app.domain.plan import Rank
from app.domain.retention import FOR_EVER
from app.domain.status.records import Attempt
from app.domain.vocabulary import ReplicaPhase
from app.k8s.codec import POD as POD_CODEC
from app.k8s.resources import POD
from app.log_store import LogStore, open_store
from app.loops.jobs.evidence.whole_logs import WholeLogs
from app.loops.logs.keeper import LogKeeper
from app.loops.logs.limits import LogLimits
from tests.db.factories import decision, replica, stored
from tests.loops.harness import WITHIN, Harness
from tests.support.kept_logs import timed
from tests.support.waiting import until

KEY: Final = Rank("worker", 0)
NAME: Final = "train-worker-0"
QUICK: Final = LogLimits(flush_after=0.1, session=3.0)


def keeper(harness: Harness, store: LogStore, limits: LogLimits = QUICK) -> LogKeeper:
    return LogKeeper(
        harness.context.api,
        harness.db,
        store,
        harness.clock,
        installation=harness.installation,
        namespaces=[harness.namespace],
        limits=limits,
        retention=FOR_EVER,
    )


@asynccontextmanager
async def keeping(harness: Harness, store: LogStore, limits: LogLimits = QUICK) -> AsyncIterator[None]:
    """Keep logs while the block runs."""
    async with asyncio.TaskGroup() as group:
        running = group.create_task(keeper(harness, store, limits).run())
        try:
            yield
        finally:
            running.cancel()


async def running_pod(harness: Harness, *, is_recorded: bool = True) -> LogKey:
    """Make the pod of a job, whose container runs."""
    uid = await harness.submit(replicas=1)
    given = harness.labels(uid, **{labels.TASK: KEY.task, labels.TASK_RANK: "0", labels.ATTEMPT: "1"})
    pod = await harness.make_pod(NAME, labels=given, finalizers=[labels.EVIDENCE_FINALIZER])
    await harness.kubelet.run(NAME)
    await report(harness, {"running": {}})
    if is_recorded:
        await record(harness, uid, pod["metadata"]["uid"])
    return LogKey(uid, *KEY, 1, "main")


async def record(harness: Harness, uid: UUID, pod_uid: str) -> None:
    job = await stored(harness.db, uid)
    attempt = Attempt(number=1, pod_uid=pod_uid, phase=ReplicaPhase.RUNNING)
    write = job.write(decision(job.recorded.status, changed=[replica(*KEY, attempt)]), pod_names={KEY: NAME})
    assert not await controller.persist(harness.db, harness.leadership.lease, [write])


async def report(harness: Harness, state: dict[str, Any], *, run: int = 0, phase: str = "Running") -> None:
    """Report the state of the container in this run. The run before has ended."""
    container = {"name": "main", "image": "busybox", "imageID": "", "ready": False, "state": state}
    container |= {"restartCount": run, "containerID": f"test://{run}"}
    if run:
        container["lastState"] = {"terminated": {"exitCode": 1, "containerID": f"test://{run - 1}"}}
    status = {"phase": phase, "containerStatuses": [container]}
    (await harness.kube.patch(f"{harness.path}/pods/{NAME}/status", {"status": status})).ok()


async def finish(harness: Harness, *, run: int = 0) -> None:
    ended = {"terminated": {"exitCode": 0, "containerID": f"test://{run}"}}
    await report(harness, ended, run=run, phase="Succeeded")


async def log_when(harness: Harness, key: LogKey, state: KeptLogState, least: int = 0) -> KeptLog:
    """Return the log once it has this state and this number of bytes."""
    return await until(
        lambda: kept_logs.read(harness.db, key),
        lambda log: log.state is state and log.text_bytes >= least,
        what=f"the log is {state}",
        within=WITHIN,
    )


async def text_of(harness: Harness, store: LogStore, key: LogKey) -> list[bytes | GapReason]:
    """Return the chunks and gaps of a log."""
    found: list[bytes | GapReason] = []
    for chunk in await kept_logs.chunks_in_bytes(harness.db, key):
        if chunk.gap is not None:
            found.append(chunk.gap)
        else:
            assert chunk.object_name is not None
            found.append(decode_chunk(await store.get(chunk.object_name)).text)
    return found


async def may_release(harness: Harness, gate: WholeLogs) -> bool:
    pod = await harness.context.api.get(POD, NAME, harness.namespace, codec=POD_CODEC)
    return await gate.may_release(pod)


async def test_a_log_is_kept_while_it_is_written_and_to_its_end(harness: Harness, tmp_path: Path) -> None:
    store, gate = open_store(f"file://{tmp_path}/store"), WholeLogs(harness.db, harness.clock, 60.0)
    key = await running_pod(harness)
    harness.kubelet.logs[NAME] = timed(b"one", b"two")
    async with keeping(harness, store):
        await log_when(harness, key, KeptLogState.FOLLOWING, 8)
        assert not await may_release(harness, gate)
        harness.kubelet.logs[NAME] += timed(b"three", first=2)
        await finish(harness)
        await log_when(harness, key, KeptLogState.COMPLETE)
    assert b"".join(map(bytes, await text_of(harness, store, key))) == b"one\ntwo\nthree\n"  # type: ignore[arg-type]
    assert await may_release(harness, gate)
    assert await log_keepers.live(harness.db) == [], "it has withdrawn"


async def test_the_runs_of_a_container_have_logs_of_their_own(harness: Harness, tmp_path: Path) -> None:
    store = open_store(f"file://{tmp_path}/store")
    key = await running_pod(harness)
    async with keeping(harness, store):
        harness.kubelet.logs[NAME] = timed(b"before")
        await log_when(harness, key, KeptLogState.FOLLOWING, 7)
        await report(harness, {"running": {}}, run=1)
        await log_when(harness, key, KeptLogState.COMPLETE)
        harness.kubelet.logs[NAME] = timed(b"after", first=1)
        await finish(harness, run=1)
        await log_when(harness, key.of_run("main", 1), KeptLogState.COMPLETE)
    assert await text_of(harness, store, key) == [b"before\n"]
    assert (await text_of(harness, store, key.of_run("main", 1)))[-1:] == [b"after\n"]


async def test_runs_that_the_cluster_has_no_more_are_forgotten(harness: Harness, tmp_path: Path) -> None:
    """A sidecar can be restarted for weeks."""
    store, following = open_store(f"file://{tmp_path}/store"), keeper(harness, open_store(f"file://{tmp_path}/store"))
    key = await running_pod(harness)
    harness.kubelet.logs[NAME] = timed(b"again")
    async with asyncio.TaskGroup() as group:
        running = group.create_task(following.run())
        for run in range(1, 6):
            await log_when(harness, key.of_run("main", run - 1), KeptLogState.FOLLOWING, 6)
            await report(harness, {"running": {}}, run=run)
            await log_when(harness, key.of_run("main", run - 1), KeptLogState.COMPLETE)
        [pod] = following._logs.values()
        followed = set(pod._followers)
        running.cancel()
    assert followed <= {"test://3", "test://4", "test://5"}
    assert await text_of(harness, store, key) == [b"again\n"]


async def test_lines_that_the_node_has_rotated_away_are_a_gap(harness: Harness, tmp_path: Path) -> None:
    store = open_store(f"file://{tmp_path}/store")
    key = await running_pod(harness)
    harness.kubelet.logs[NAME] = timed(b"one")
    async with keeping(harness, store):
        await log_when(harness, key, KeptLogState.FOLLOWING, 4)
        harness.kubelet.logs[NAME] = timed(b"nine", first=8)
        await finish(harness)
        await log_when(harness, key, KeptLogState.COMPLETE)
    assert await text_of(harness, store, key) == [b"one\n", GapReason.ROTATED, b"nine\n"]


async def test_a_log_that_the_node_has_emptied_has_a_gap_at_its_end(harness: Harness, tmp_path: Path) -> None:
    store = open_store(f"file://{tmp_path}/store")
    key = await running_pod(harness)
    harness.kubelet.logs[NAME] = timed(b"one")
    async with keeping(harness, store):
        await log_when(harness, key, KeptLogState.FOLLOWING, 4)
        harness.kubelet.logs[NAME] = b""
        await finish(harness)
        await log_when(harness, key, KeptLogState.COMPLETE)
    assert await text_of(harness, store, key) == [b"one\n", GapReason.ROTATED]


async def test_a_log_beyond_a_limit_is_cut(harness: Harness, tmp_path: Path) -> None:
    store = open_store(f"file://{tmp_path}/store")
    key = await running_pod(harness)
    harness.kubelet.logs[NAME] = timed(b"one")
    async with keeping(harness, store, LogLimits(flush_after=0.1, session=3.0, job_bytes=6)):
        await log_when(harness, key, KeptLogState.FOLLOWING, 4)
        harness.kubelet.logs[NAME] += timed(b"two", first=1)
        log = await log_when(harness, key, KeptLogState.CUT)
    assert log.note == "the logs of the job have reached the limit of 6 bytes"
    assert await text_of(harness, store, key) == [b"one\n"]


async def test_a_pod_that_is_not_on_record_has_no_kept_log(harness: Harness, tmp_path: Path) -> None:
    """Every client that can create pods can give one the labels of the job of another team."""
    store = open_store(f"file://{tmp_path}/store")
    key = await running_pod(harness, is_recorded=False)
    harness.kubelet.logs[NAME] = timed(b"forged")
    async with keeping(harness, store):
        await until(lambda: log_keepers.live(harness.db), what="it has begun", within=WITHIN)
        await finish(harness)
        pod_uid = (await harness.pods())[NAME]["metadata"]["uid"]
        assert not await kept_logs.is_pod_of(harness.db, harness.namespace, pod_uid, key)
        assert await kept_logs.read(harness.db, key) is None


async def test_what_the_node_still_has_is_written_when_the_store_works_again(harness: Harness, tmp_path: Path) -> None:
    folder, gate = tmp_path / "store", WholeLogs(harness.db, harness.clock, 60.0)
    store = open_store(f"file://{folder}")
    folder.rmdir()
    folder.write_text("in the way")  # every write fails
    key = await running_pod(harness)
    harness.kubelet.logs[NAME] = timed(b"one", b"two")
    async with keeping(harness, store):
        await until(
            lambda: log_keepers.live(harness.db),
            lambda keepers: [keeper for keeper in keepers if keeper.store_error],
            what="the store fails",
            within=WITHIN,
        )
        await finish(harness)
        assert await may_release(harness, gate), "the job goes on"
        folder.unlink()
        folder.mkdir()
        await log_when(harness, key, KeptLogState.COMPLETE)
    assert await text_of(harness, store, key) == [b"one\ntwo\n"]


@pytest.mark.parametrize("reason", [GapReason.POD_GONE, GapReason.RESTARTED])
async def test_what_was_read_and_not_written_before_the_cluster_lost_it_is_a_gap(
    harness: Harness, tmp_path: Path, reason: GapReason
) -> None:
    """The last read reached the end of the log, but the store refused the chunk."""
    folder = tmp_path / "store"
    store = open_store(f"file://{folder}")
    folder.rmdir()
    folder.write_text("in the way")  # every write fails
    key = await running_pod(harness)
    harness.kubelet.logs[NAME] = timed(b"one")
    await finish(harness)
    async with keeping(harness, store):
        await until(
            lambda: log_keepers.live(harness.db),
            lambda keepers: [keeper for keeper in keepers if keeper.store_error],
            what="the store fails",
            within=WITHIN,
        )
        if reason is GapReason.RESTARTED:
            await report(harness, {"running": {}}, run=2)
        else:
            (await harness.kube.patch(f"{harness.path}/pods/{NAME}", {"metadata": {"finalizers": None}})).ok()
            await harness.kube.delete(f"{harness.path}/pods/{NAME}", {"gracePeriodSeconds": 0})
        folder.unlink()
        folder.mkdir()
        await log_when(harness, key, KeptLogState.COMPLETE)
    assert await text_of(harness, store, key) == [reason]


async def redact(harness: Harness, key: LogKey) -> None:
    async with harness.db.begin() as connection:
        assert not await log_removal.redact(connection, key.job_uid, harness.clock.now())


def objects(folder: Path) -> bytes:
    """Return the texts of all chunks in the store."""
    return b"".join(decode_chunk(file.read_bytes()).text for file in folder.rglob("*.zst"))


async def test_text_that_was_read_before_a_redaction_is_not_written_after_it(harness: Harness, tmp_path: Path) -> None:
    store = open_store(f"file://{tmp_path}/store")
    key = await running_pod(harness)
    harness.kubelet.logs[NAME] = timed(b"a secret")
    patient = LogLimits(flush_after=600.0, session=3.0)
    async with keeping(harness, store, patient):
        await until(_unwritten, lambda size: size > 0, what="the text is read", within=WITHIN)
        await redact(harness, key)
        await finish(harness)
        log = await log_when(harness, key, KeptLogState.COMPLETE)
    assert await text_of(harness, store, key) == [GapReason.REDACTED]
    refused = await log_removal.due_deletions(harness.db, 100)
    await store.delete(refused)
    assert objects(tmp_path / "store") == b""
    assert log.text_bytes == 0


def _unwritten() -> float:
    return REGISTRY.get_sample_value("jobgate_kept_log_unwritten_bytes") or 0.0


async def test_a_log_goes_on_after_what_was_printed_before_a_redaction(harness: Harness, tmp_path: Path) -> None:
    """The part of a line that was printed before is not kept, and neither is the rest of that line."""
    store = open_store(f"file://{tmp_path}/store")
    key = await running_pod(harness)
    harness.kubelet.logs[NAME] = timed(b"one")
    async with keeping(harness, store):
        await log_when(harness, key, KeptLogState.FOLLOWING, 4)
    harness.kubelet.logs[NAME] += timed(b"a secret", b"a sec", first=1)[:-1]
    async with harness.db.begin() as connection:
        assert await log_removal.redact(connection, key.job_uid, harness.clock.now()) == 1
    async with keeping(harness, store):
        await until(
            lambda: kept_logs.read(harness.db, key),
            lambda log: not log.passes_over,
            what="the follower has passed over it",
            within=WITHIN,
        )
        harness.kubelet.logs[NAME] += b"ret\n" + timed(b"after", first=3)
        await finish(harness)
        await log_when(harness, key, KeptLogState.COMPLETE)
    assert await text_of(harness, store, key) == [GapReason.REDACTED, GapReason.REDACTED, b"after\n"]
    [deleted] = await log_removal.due_deletions(harness.db, 100)
    await store.delete([deleted])
    assert objects(tmp_path / "store") == b"after\n"


async def test_a_pod_waits_for_the_process_that_keeps_its_logs(harness: Harness) -> None:
    """A process without a log to keep does not find out that the store fails."""
    gate = WholeLogs(harness.db, harness.clock, 60.0)
    await running_pod(harness)
    processes = ["one", "two"]
    owner = owner_of((await harness.pods())[NAME]["metadata"]["uid"], processes)
    for failing in processes:
        for process in processes:
            error = "the store is full" if process == failing else None
            await log_keepers.announce(harness.db, LogKeeperRow(process, error), 60.0)
        assert await may_release(harness, gate) == (failing == owner)


async def test_a_pod_is_released_when_its_logs_take_too_long(harness: Harness) -> None:
    gate = WholeLogs(harness.db, harness.clock, 60.0)
    await running_pod(harness)
    assert not await may_release(harness, gate)
    harness.clock.skip(59.0)
    assert not await may_release(harness, gate)
    harness.clock.skip(2.0)
    assert await may_release(harness, gate)
    assert await may_release(harness, WholeLogs(harness.db, harness.clock, None)), "no whole logs are kept"
