"""What is carried out has the job's own credential; what is only shown has none."""

from uuid import uuid4

from app.db.engine import Database
from app.domain.credentials import credential_of
from app.domain.dialects.base import Site
from app.loops.plans import PlanCache
from app.services.planning import Planner
from tests.db.factories import new_job, stored, submitted
from tests.support.gateway import manifest

KEY = b"a key"


async def test_only_a_plan_that_is_carried_out_has_the_credential(database_url: str) -> None:
    db = await Database.open(database_url)
    document = Planner(installation="i").draft(manifest("train"), "team-a", str).manifest
    (uid,) = await submitted(db, new_job(manifest=document))
    job = await stored(db, uid)
    await db.close()
    plans = PlanCache("i", KEY, Site())
    assert plans.plan(job).identity.credential == credential_of(KEY, str(uid))
    assert plans.plan(job) is plans.plan(job)
    assert Planner(installation="i").plan(document, str(uuid4())).identity.credential == ""
