"""Reads of many replicas leave the event loop to other callers, as decision 0043 asks."""

from collections.abc import Hashable

import pytest

from app.db.installation.leases import Lease
from app.db.jobs import controller, replicas
from app.db.jobs.replicas import ReplicaFilter
from app.db.postgres.engine import Database
from app.domain.status.records import JobStatus
from app.domain.vocabulary import JobPhase
from app.fairness.share import CURRENT, FairShares
from app.fairness.slices import Slices
from tests.db.factories import decision, new_job, replica, stored, submitted
from tests.fairness.test_fair_memory import Client


async def test_a_read_of_many_replicas_takes_slices_of_its_caller(
    db: Database, lease: Lease, monkeypatch: pytest.MonkeyPatch
) -> None:
    [uid] = await submitted(db, new_job(names=()))
    many = [replica("worker", rank) for rank in range(120)]
    job = await stored(db, uid)
    await controller.persist(db, lease, [job.write(decision(JobStatus(phase=JobPhase.RUNNING), changed=many))])
    slices: list[Hashable] = []

    async def take(_: Slices, key: Hashable) -> None:
        slices.append(key)

    monkeypatch.setattr(Slices, "next", take)
    token = CURRENT.set(FairShares().share("ann", None, Client()))
    try:
        assert len(await replicas.of(db, uid)) == 120
        of_all, slices[:] = list(slices), []
        assert len(await replicas.page(db, uid, ReplicaFilter(), start=0, limit=100)) == 100
    finally:
        CURRENT.reset(token)
    assert (of_all, slices) == (["ann"] * 2, ["ann"] * 2)
