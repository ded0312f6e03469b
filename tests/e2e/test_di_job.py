"""DIJob's examples, ours and upstream's own end-to-end jobs."""

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_stories import named, play
from tests.e2e.user import User

SHIPPED = Path(__file__).parents[1] / "data" / "di_job"


async def submit(user: User, case: str) -> str:
    text = (SHIPPED / case / "manifest.yaml").read_text(encoding="utf-8")
    posted = await user.http.post(user.jobs, content=text, headers={"Content-Type": "application/yaml"})
    assert posted.status_code == 201, posted.text
    name: str = posted.json()["name"]
    return name


async def test_collectors_teach_a_learner_over_tcp(user: User) -> None:
    told = await play(user, named("corridor"))
    assert any(line.endswith("| learnt: the way is >>>>>>>>>>>>>>>") for line in told)
    assert any(line.endswith("| good enough") for line in told)
    native = (await user.read("/corridor"))["nativeStatus"]
    assert (native["phase"], native["replicas"], native["restarts"]) == ("Succeeded", 4, 0)


async def test_a_job_resizes_itself_with_its_own_token(user: User) -> None:
    told = await play(user, named("growing"))
    assert any("| pi is about 3." in line for line in told)
    native = (await user.read("/growing"))["nativeStatus"]
    assert (native["replicas"], native["restarts"], native["reschedules"]) == (3, 0, 2)
    assert native["profilings"]["collectors"] == 3
    records: list[dict[str, Any]] = (await user.read("/growing/scale-records"))["items"]
    assert {(record["task"], record["actor"]) for record in records} == {("collector", "job/growing")}


@pytest.mark.parametrize("case", ["normal", "without_name"])
async def test_upstreams_jobs_run_as_posted(user: User, case: str) -> None:
    name = await submit(user, case)
    await user.ended(name)
    assert (await user.read(f"/{name}"))["nativeStatus"]["phase"] == "Succeeded"
    service = f"di-{name}.{user.namespace}.svc.cluster.local"
    everybody, collectors = (await user.call("GET", f"/{name}/logs?task=collector&rank=1")).text.split()
    assert collectors == ",".join(f"{name}-collector-{rank}.{service}" for rank in range(2))
    assert everybody == f"{name}-learner-0.{service},{name}-evaluator-0.{service},{collectors}"
