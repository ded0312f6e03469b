"""Logs without a pod are completed, expired ones removed, and objects that no chunk has are deleted."""

import os
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from typing_extensions import override

from app.db import kept_logs, log_removal
from app.db.postgres.engine import Database
from app.domain.kept_logs.keys import LogKey, chunk_name
from app.domain.kept_logs.records import GapReason, KeptLogState
from app.domain.kubernetes import labels
from app.domain.kubernetes.objects import ContainerState, ContainerStatus, Metadata, Pod, PodStatus, Running
from app.domain.retention import Retention
from app.log_store import LogStore, open_store
from app.loops.logs.context import LogContext, UnwrittenText
from app.loops.logs.limits import LogLimits
from app.loops.logs.membership import Membership
from app.loops.logs.slots import ReadSlots
from app.loops.logs.store_health import StoreHealth
from app.loops.logs.upkeep import Upkeep
from tests.loops.harness import SkippingClock
from tests.support.kept_logs import finish, keep, timed

HERE = "here"


class AloneMembership(Membership):
    """The membership of the only process."""

    @override
    def owns(self, key: str) -> bool:
        return bool(key)


def upkeep_of(db: Database, store: LogStore, clock: SkippingClock, pods: Iterable[Pod] = ()) -> Upkeep:
    health, limits, no_api = StoreHealth(store, HERE), LogLimits(), Any
    context = LogContext(
        api=no_api,  # type: ignore[arg-type]
        db=db,
        clock=clock,
        installation=HERE,
        limits=limits,
        retention=Retention(kept_for=timedelta(days=30)),
        store=health,
        slots=ReadSlots(1),
        unwritten=UnwrittenText(limits.memory, clock),
    )
    alone = AloneMembership(db, seconds=1.0, store_error=lambda: None, on_change=lambda: None)
    return Upkeep(context, store, alone, lambda: pods)


def a_key(job: UUID | None = None) -> LogKey:
    return LogKey(job or uuid4(), "worker", 0, 1, "main")


def pod_of(key: LogKey) -> Pod:
    """Return a pod whose container runs."""
    found = {labels.JOB_UID: str(key.job_uid), labels.TASK: "worker", labels.TASK_RANK: "0", labels.ATTEMPT: "1"}
    status = ContainerStatus(name="main", state=ContainerState(running=Running()), container_id="test://0")
    return Pod(metadata=Metadata(labels=found), status=PodStatus(container_statuses=(status,)))


async def names(store: LogStore) -> list[str]:
    return sorted([item.name async for page in store.list("") for item in page])


async def test_a_log_whose_pod_is_gone_for_a_while_is_complete_with_a_gap(db: Database, tmp_path: Path) -> None:
    store = open_store(f"file://{tmp_path}/store")
    gone, followed = a_key(), a_key()
    for key in (gone, followed):
        await keep(db, store, key, timed(b"one"))
    upkeep = upkeep_of(db, store, SkippingClock(), [pod_of(followed)])
    await upkeep.once()
    assert [(await kept_logs.read(db, key)).state for key in (gone, followed)] == [KeptLogState.FOLLOWING] * 2  # type: ignore[union-attr]
    await upkeep.once()
    states = [(await kept_logs.read(db, key)).state for key in (gone, followed)]  # type: ignore[union-attr]
    assert states == [KeptLogState.COMPLETE, KeptLogState.FOLLOWING]
    assert [chunk.gap for chunk in await kept_logs.chunks_in_bytes(db, gone)] == [None, GapReason.POD_GONE]


async def test_expired_logs_lose_their_objects(db: Database, tmp_path: Path) -> None:
    store, clock = open_store(f"file://{tmp_path}/store"), SkippingClock()
    key, upkeep = a_key(), upkeep_of(db, store, clock)
    await finish(db, await keep(db, store, key, timed(b"one"), timed(b"two", first=1)))
    assert len(await names(store)) == 2
    await upkeep.once()
    assert await kept_logs.read(db, key) is None
    assert (await names(store), await log_removal.due_deletions(db, 10)) == ([], [])


async def test_objects_of_writes_that_no_chunk_has_are_deleted_once_they_are_old(db: Database, tmp_path: Path) -> None:
    store, clock = open_store(f"file://{tmp_path}/store"), SkippingClock()
    upkeep, key = upkeep_of(db, store, clock), a_key()
    await finish(db, await keep(db, store, key, timed(b"one"), installation=HERE))
    [known] = await names(store)
    unknown = [chunk_name(HERE, key, 0, "overtaken"), f"{HERE}/probes/1"]
    # Of another installation, and an export in the same folder.
    foreign = [chunk_name("elsewhere", key, 0, "n"), f"{HERE}/2026-01-02/0123456789ab.jsonl.zst"]
    for name in unknown + foreign:
        await store.put(name, b"")
    # What a process that was killed while it wrote has left. No list shows it.
    cut_off = [tmp_path / "store" / f"{chunk_name(HERE, key, place, 'n')}#1" for place in (0, 9)]
    for file in cut_off:
        file.write_bytes(b"a secret")
    clock.skip(7200)  # the clock of the store is far behind
    await upkeep.sweep()
    assert await names(store) == sorted([known, *unknown, *foreign]), "their rows can be on the way"
    for name in unknown + foreign:
        make_old(tmp_path / "store" / name)
    make_old(cut_off[0])
    await upkeep.sweep()
    assert await names(store) == sorted([known, *foreign])
    assert [file.exists() for file in cut_off] == [False, True]


def make_old(file: Path) -> None:
    at = file.stat().st_mtime - 3601
    os.utime(file, (at, at))


async def test_a_process_sweeps_in_its_first_day(db: Database, tmp_path: Path) -> None:
    """The objects of jobs whose records are deleted go only this way."""
    store, clock = open_store(f"file://{tmp_path}/store"), SkippingClock()
    upkeep = upkeep_of(db, store, clock)
    name = chunk_name(HERE, a_key(), 0, "n")
    await store.put(name, b"")
    make_old(tmp_path / "store" / name)
    clock.skip(3601)
    await upkeep.once()
    assert await names(store) == []
