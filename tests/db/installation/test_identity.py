"""A database has one identity, belongs to one cluster, and knows the mark that it has put there."""

import asyncio
from uuid import uuid4

import pytest

from app.db.installation import identity as installation
from app.db.installation import leases
from app.db.installation.leases import Lease
from app.db.postgres.engine import Database
from app.db.postgres.errors import LeaseLost
from tests.db.factories import NOW


async def test_an_installation_is_made_once_and_bound_once(db: Database, lease: Lease) -> None:
    made = await asyncio.gather(*(installation.get_or_create(db, uuid4(), NOW) for _ in range(8)))
    assert len({each.id for each in made}) == 1
    assert made[0].cluster_uid is None
    assert (await installation.bind_cluster(db, lease, "cluster-1")).cluster_uid == "cluster-1"
    assert (await installation.bind_cluster(db, lease, "cluster-2")).cluster_uid == "cluster-1"
    await leases.release(db, lease)
    with pytest.raises(LeaseLost):
        await installation.bind_cluster(db, lease, "cluster-3")


async def test_the_mark_on_the_cluster_is_known_after_any_number_of_terms_that_fail_to_replace_it(
    db: Database, lease: Lease
) -> None:
    await installation.get_or_create(db, uuid4(), NOW)
    await installation.add_mark(db, lease, "recorded")
    for number in range(40):
        await installation.add_mark(db, lease, f"term-{number}", recorded="recorded")
    made = await installation.read(db)
    assert made.marks[:3] == ["term-39", "recorded", "term-38"]
    assert len(made.marks) == 16
    made = await installation.add_mark(db, lease, "term-40", recorded="of a copy")
    assert made.marks[:2] == ["term-40", "term-39"]
