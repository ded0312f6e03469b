"""DIJob by its golden files: tests/data/di_job/<case>/manifest.yaml and what becomes of it.

The cases but `everything` and `defaults` are upstream's own: its proposal, its samples and the jobs of its
end-to-end tests.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from app.domain.kinds.di_job import DIJobKind
from app.domain.kinds.envelope import postable
from app.domain.kinds.job_kind import Given, Limits, Site
from app.domain.manifests.rendered import objects_of, pod_bytes
from app.domain.plan import JobIdentity, JobPlan, Manifest, Rank
from tests.support.plans import GIVEN, reserved
from tests.support.plugins.golden import Golden, load_manifest

KIND = DIJobKind()
DATA = Path(__file__).parents[3] / "data" / "di_job"
load = partial(load_manifest, DATA)
CASES = sorted(path.name for path in DATA.iterdir())
SITE = Site(server_url="http://jobgate.example:8080", schedulers={"volcano": "volcano-here"})


def accept(manifest: Manifest, stored: Manifest | None = None, limits: Limits | None = None) -> Manifest:
    return KIND.accept(manifest, limits or Limits(), replace(GIVEN, stored=stored)).manifest


def identity(manifest: Manifest) -> JobIdentity:
    return JobIdentity(
        uid="1c3e5a7f-0000-4000-8000-00000000feed",
        kind="DIJob",
        api_version="diengine.opendilab.org/v2alpha1",
        namespace="research",
        name=manifest["metadata"]["name"],
        generation=1,
        installation="test-installation",
        credential="of-this-job-alone",
    )


def plan_of(accepted: Manifest, site: Site = SITE) -> JobPlan:
    return KIND.plan(KIND.read(accepted), identity(accepted), resumed=False, site=site)


def environment(plan: JobPlan, task: str, rank: int, container: int = 0) -> dict[str, str]:
    env = plan.replicas[Rank(task, rank)].template["spec"]["containers"][container]["env"]
    found = {variable["name"]: variable["value"] for variable in env}
    assert len(found) == len(env), "a variable is set twice"
    return found


@pytest.mark.parametrize("case", CASES)
def test_the_stored_manifest(case: str, golden: Golden) -> None:
    accepted = accept(load(case))
    golden(DATA / case / "accepted.yaml", accepted)
    assert accept(postable(accepted)) == accepted
    assert accept(postable(accepted), stored=accepted) == accepted


@pytest.mark.parametrize("case", CASES)
def test_the_rendered_objects(case: str, golden: Golden) -> None:
    plan = plan_of(accept(load(case)))
    golden(DATA / case / "objects.yaml", list(objects_of(plan, "00000000-0000-4000-8000-0000000a11c0")))
    golden(DATA / case / "plan.json", summary(plan))
    assert max(pod_bytes(plan).values()) < Limits().max_rendered_pod_bytes


def summary(plan: JobPlan) -> dict[str, Any]:
    """What of a plan its objects do not show."""
    return {
        "rules": [
            {"name": rule.name, "outcome": rule.outcome, "when": rule.quantifier, "ranks": sorted(map(str, rule.ranks))}
            for rule in plan.rules
        ],
        "cleanUp": plan.clean_up,
        "restarts": {name: [one.policy, one.limit, one.scope] for name, one in plan.restarts.items()},
        "deadlines": [plan.active_deadline, plan.pending_deadline, plan.ttl_after_finished],
        "globalRanks": {str(key): replica.global_rank for key, replica in plan.replicas.items()},
        "elastic": sorted(plan.elastic),
        "reserved": [f"{kind}/{name}" for kind, name in reserved(plan)],
        "missingScheduler": plan.missing_scheduler,
    }


def test_every_pod_has_the_list_of_every_task() -> None:
    plan = plan_of(accept(load("seed")))
    lists = {
        key: {name: value for name, value in environment(plan, *key).items() if name.endswith("_NODES")}
        for key in plan.replicas
    }
    first = lists[Rank("learner", 0)]
    assert set(first) == {"DI_NODES", "DI_LEARNER_NODES", "DI_EVALUATOR_NODES", "DI_COLLECTOR_NODES"}
    assert all(found == first for found in lists.values())
    assert first["DI_COLLECTOR_NODES"] == (
        "job-with-tasks-collector-0.di-job-with-tasks.research.svc.cluster.local,"
        "job-with-tasks-collector-1.di-job-with-tasks.research.svc.cluster.local"
    )


def test_tasks_of_type_none_have_lists_of_their_own() -> None:
    found = environment(plan_of(accept(load("everything"))), "judge", 0)
    assert found["DI_JUDGE_NODES"].count(",") == 0
    assert found["DI_BIG_LEAGUE_NODES"].count(",") == 1


@pytest.mark.parametrize("case", CASES)
def test_the_rank_of_a_pod_is_its_place_among_the_nodes(case: str) -> None:
    plan = plan_of(accept(load(case)))
    for key, replica in plan.replicas.items():
        found = environment(plan, *key)
        own = f"{replica.pod_name}.{replica.subdomain}.research.svc.cluster.local"
        assert found["DI_NODES"].split(",")[int(found["DI_RANK"])] == own


def test_a_free_global_rank_is_empty_in_the_list_of_nodes() -> None:
    stored = accept(load("seed"))
    grown = KIND.resize(KIND.read(stored), {"learner": 2}).manifest
    shrunk = KIND.resize(KIND.read(grown), {"collector": 1}).manifest
    nodes = environment(plan_of(shrunk), "learner", 1)
    assert nodes["DI_RANK"] == "4"
    assert [bool(node) for node in nodes["DI_NODES"].split(",")] == [True, True, True, False, True]


def test_all_containers_get_the_variables_which_a_template_cannot_replace() -> None:
    plan = plan_of(accept(load("everything")))
    main, metrics = environment(plan, "learner", 0, 0), environment(plan, "learner", 0, 1)
    assert main["DI_RANK"] == "0"
    assert main["SELF"] == "$(DI_JOB_ID)/$(DI_RANK)"
    assert {**main, "SELF": None} == {**metrics, "SELF": None}
    assert metrics["DI_SERVER_URL"] == "http://jobgate.example:8080"
    assert metrics["DI_SERVER_TOKEN"] == "of-this-job-alone"
    assert "env" not in plan.replicas[Rank("learner", 0)].template["spec"]["initContainers"][0]


@pytest.mark.parametrize(
    ("schedulers", "becomes", "missing"),
    [({}, "volcano", None), ({"volcano": "here"}, "here", None), ({"volcano": None}, None, "volcano")],
)
def test_a_templates_own_scheduler_is_mapped(
    schedulers: dict[str, str | None], becomes: str | None, missing: str | None
) -> None:
    plan = plan_of(accept(load("everything")), Site(schedulers=schedulers))
    assert plan.replicas[Rank("learner", 0)].template["spec"].get("schedulerName") == becomes
    assert plan.missing_scheduler == missing


@pytest.mark.parametrize(("given", "kept"), [({}, 3), ({"backoffLimit": None}, None), ({"backoffLimit": 0}, 0)])
def test_an_absent_backoff_limit_is_three_and_null_is_none(given: dict[str, Any], kept: int | None) -> None:
    manifest = load("serial")
    del manifest["spec"]["backoffLimit"]
    manifest["spec"] |= given
    accepted = accept(manifest)
    assert accepted["spec"]["backoffLimit"] == kept
    assert {restart.limit for restart in plan_of(accepted).restarts.values()} == {kept}
    assert accept(postable(accepted))["spec"]["backoffLimit"] == kept


def test_a_type_left_out_is_none_and_a_typed_task_is_named_after_it() -> None:
    tasks = accept(load("everything"))["spec"]["tasks"]
    assert [(task["name"], task["type"]) for task in tasks] == [
        ("learner", "learner"),
        ("big-league", "none"),
        ("judge", "none"),
    ]


def test_tasks_without_stored_ranks_get_new_ones() -> None:
    accepted = accept(load("serial"), stored=accept(load("normal")))
    assert accepted["assigned"]["ranks"] == {"serial": [0]}


def test_random_names_are_not_drawn() -> None:
    def refuse() -> str:
        raise AssertionError

    assert KIND.accept(load("seed"), Limits(), Given(suffix=refuse)).manifest
