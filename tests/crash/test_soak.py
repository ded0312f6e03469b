"""A minute of the soak test: jobs are submitted, polled and deleted while processes are killed.

No check depends on the speed of the machine.
`python -m bench soak` runs the same load for longer, at higher rates.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from app.embedded_postgres.server import EmbeddedPostgres
from app.loops.maintenance.sweeper import FEED_ROWS_KEPT
from bench.measuring.client import NoCompiler
from bench.soak import judgement
from bench.soak.gateway import Victim
from bench.soak.load import SoakRates, compile_load
from bench.soak.processes import WORKER
from bench.soak.run import SoakPlan, Surroundings, soak
from bench.soak.tables import unexplained
from tests.support.clusters.kube import Cluster
from tests.support.postgres import FORGETFUL

# More than the limits of all steps together, so that the step that hangs fails and names itself.
pytestmark = [pytest.mark.crash, pytest.mark.slow, pytest.mark.timeout(5400)]

# The second worker lives through two intervals, long enough to be warm.
PLAN = SoakPlan(
    rates=SoakRates(submissions=20, polls=100, submitters=4, pollers=8, live=60, pods_every=20),
    seconds=81,
    kill_every=18,
)


async def test_nothing_is_lost_or_duplicated_and_descriptors_and_tables_stay_bounded(
    busy_cluster: Cluster, postgres_directory: Path, tmp_path: Path, prove: Callable[[str], None]
) -> None:
    try:
        load = compile_load(tmp_path)
    except NoCompiler as error:
        pytest.skip(str(error))
    async with EmbeddedPostgres(postgres_directory, settings=FORGETFUL) as postgres:
        result = await soak(PLAN, Surroundings(folder=tmp_path, load=load, postgres=postgres, cluster=busy_cluster))
    assert result.kills == {Victim.WORKER: 1, Victim.CONTROLLER: 1, Victim.GATEWAY: 1}
    assert judgement.losses(result.load, result.inventory) == []
    assert result.inventory.pods > 0

    roles = {one.role: one for one in judgement.courses(result.samples, result.load.seconds)}
    assert roles[WORKER].descriptors.growth_base > 0, "no worker lived long enough to be judged"
    assert judgement.growth_of_descriptors(list(roles.values())) == []
    jobs, pods, without_pod = result.load.submitted, result.inventory.pods, result.inventory.without_pod
    assert unexplained(result.end, jobs=jobs, pods=pods, without_pod=without_pod, live=PLAN.rates.live) == []
    assert result.a_day_later["idempotency_keys"].rows == 0
    assert result.a_day_later["job_events"].rows <= FEED_ROWS_KEPT
    prove(
        f"soak: kills {sum(result.kills.values())}, jobs {jobs}, polls {result.load.poll.done}, "
        f"repeated requests {result.load.submit.retries + result.load.delete.retries}, pods {pods}, "
        "losses 0, doubles 0"
    )
