"""Plans that the controller keeps: whose credential they have, and when they are made anew."""

from typing import Any
from uuid import uuid4

from app.db.jobs import edits
from app.db.postgres.engine import Database
from app.domain.access.actors import Actor
from app.domain.access.credentials import credential_of
from app.domain.planning import Planner
from app.loops.jobs.plan_cache import PlanCache
from tests.db.factories import NOW, new_job, stored, submitted
from tests.support.gateways.gateway import manifest

KEY = b"a key"


DEADLINE = "jobgate.dev/active-deadline-seconds"


def accepted(**annotations: str) -> Any:
    document = manifest("train")
    document["metadata"]["annotations"] = annotations
    return Planner(installation="i").draft(document, "team-a", str).manifest


async def test_an_edit_of_annotations_makes_another_plan_of_the_same_generation(database_url: str) -> None:
    db = await Database.open(database_url)
    (uid,) = await submitted(db, new_job(manifest=accepted()))
    plans = PlanCache(Planner(installation="i"), KEY)
    before = plans.plan(await stored(db, uid))
    edited = accepted(**{DEADLINE: "60"})
    await edits.edit(
        db, uid, edits.JobEdit(namespace="team-a", manifest=edited, labels={}, actor=Actor("alice"), at=NOW)
    )
    after = plans.plan(await stored(db, uid))
    await db.close()
    assert (before.active_deadline, after.active_deadline) == (None, 60)
    assert (before.identity.generation, after.identity.generation) == (1, 1)


async def test_only_the_plan_of_the_controller_has_the_credential(database_url: str) -> None:
    db = await Database.open(database_url)
    accepted_job = Planner(installation="i").draft(manifest("train"), "team-a", str).accepted
    (uid,) = await submitted(db, new_job(manifest=accepted_job.manifest))
    job = await stored(db, uid)
    await db.close()
    plans = PlanCache(Planner(installation="i"), KEY)
    assert plans.plan(job).identity.credential == credential_of(KEY, str(uid))
    assert plans.plan(job) is plans.plan(job)
    assert Planner(installation="i").plan(accepted_job, str(uuid4())).identity.credential == ""
