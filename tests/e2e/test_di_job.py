"""The examples of DIJob, and the jobs of upstream's end-to-end tests."""

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_stories import named, play
from tests.e2e.user import User
from tests.support.clusters.kube import KubeClient

SHIPPED = Path(__file__).parents[1] / "data" / "di_job"


async def submit(user: User, case: str) -> str:
    text = (SHIPPED / case / "manifest.yaml").read_text(encoding="utf-8")
    posted = await user.http.post(user.jobs, content=text, headers={"Content-Type": "application/yaml"})
    assert posted.status_code == 201, posted.text
    name: str = posted.json()["name"]
    return name


async def test_collectors_teach_a_learner_over_tcp(user: User) -> None:
    printed = await play(user, named("corridor"))
    assert any(line.endswith("| learnt: the way is >>>>>>>>>>>>>>>") for line in printed)
    assert any(line.endswith("| good enough") for line in printed)
    native = (await user.read("/corridor"))["nativeStatus"]
    assert (native["phase"], native["replicas"], native["restarts"]) == ("Succeeded", 4, 0)


async def test_a_job_resizes_itself_with_its_own_token(user: User) -> None:
    printed = await play(user, named("growing"))
    assert any("| pi is about 3." in line for line in printed)
    native = (await user.read("/growing"))["nativeStatus"]
    assert (native["replicas"], native["restarts"], native["reschedules"]) == (3, 0, 2)
    assert native["profilings"]["collectors"] == 3
    records: list[dict[str, Any]] = (await user.read("/growing/scale-records"))["items"]
    assert {(record["task"], record["actor"]) for record in records} == {("collector", "job/growing")}


@pytest.mark.parametrize("case", ["normal", "without_name"])
async def test_upstream_jobs_run_unchanged(user: User, case: str) -> None:
    name = await submit(user, case)
    await user.ended(name)
    assert (await user.read(f"/{name}"))["nativeStatus"]["phase"] == "Succeeded"
    service = f"di-{name}.{user.namespace}.svc.cluster.local"
    everybody, collectors = (await user.call("GET", f"/{name}/logs?task=collector&rank=1")).text.split()
    assert collectors == ",".join(f"{name}-collector-{rank}.{service}" for rank in range(2))
    assert everybody == f"{name}-learner-0.{service},{name}-evaluator-0.{service},{collectors}"


async def test_an_edit_of_the_tasks_resizes_the_job(user: User, api: KubeClient) -> None:
    name = await submit(user, "normal_sleep")
    await user.until(name, "Running")
    tasks = (await user.read(f"/{name}"))["spec"]["tasks"]
    for task in tasks:
        task["replicas"] = {"learner": 1, "evaluator": 2, "collector": 1}[task["name"]]
    headers = {"Content-Type": "application/merge-patch+json"}
    await user.call("PATCH", f"/{name}", status=202, json={"spec": {"tasks": tasks}}, headers=headers)

    def ranks(listed: dict[str, Any]) -> dict[str, str]:
        """Return the global rank of each pod, by its name."""
        found = (pod["metadata"] for pod in listed["items"])
        return {metadata["name"]: metadata["annotations"]["diengine/rank"] for metadata in found}

    wanted = {"learner-0": "0", "evaluator-0": "1", "evaluator-1": "3", "collector-0": "2"}
    await api.eventually(
        f"/api/v1/namespaces/{user.namespace}/pods",
        lambda listed: ranks(listed) == {f"{name}-{pod}": rank for pod, rank in wanted.items()},
    )
    await user.call("POST", f"/{name}/cancel", status=202)
