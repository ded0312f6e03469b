"""GenericJob by its golden files: tests/data/generic_job/<case>/manifest.yaml and what becomes of it."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from app.domain.kinds.generic_job.spec import GenericJobSpec
from app.domain.kinds.job_kind import Limits, Site
from app.domain.kinds.registry import find
from app.domain.manifests.rendered import objects_of, pod_bytes
from app.domain.plan import JobIdentity, JobPlan, Manifest, QueuePlan
from tests.support.plans import GIVEN
from tests.support.plugins.golden import Golden, load_manifest

DATA = Path(__file__).parents[3] / "data" / "generic_job"
load = partial(load_manifest, DATA)
CASES = sorted(path.name for path in DATA.iterdir())
SITE = Site(schedulers={"t9k-scheduler": "t9k-scheduler-here"})


def identity(manifest: Manifest) -> JobIdentity:
    return JobIdentity(
        uid="1c3e5a7f-0000-4000-8000-00000000feed",
        kind="GenericJob",
        api_version="batch.tensorstack.dev/v1beta1",
        namespace="research",
        name=manifest["metadata"]["name"],
        generation=1,
        installation="test-installation",
    )


def plan_of(manifest: Manifest, *, resumed: bool = False, site: Site = SITE) -> JobPlan:
    kind = find(manifest["apiVersion"], manifest["kind"])
    accepted = kind.accept(manifest, Limits(), GIVEN).manifest
    return kind.plan(kind.read(accepted), identity(accepted), resumed=resumed, site=site)


def test_specs_share_their_default_models() -> None:
    spec = load("simple")["spec"]
    one, other = GenericJobSpec.model_validate(spec), GenericJobSpec.model_validate(spec)
    assert one.run_mode is other.run_mode


def test_a_queue_of_the_own_scheduler_may_be_one_of_kueue() -> None:
    manifest = load("scheduler")
    plan = plan_of(manifest)
    assert (plan.queue, plan.priority) == (QueuePlan(name="default", of_own_scheduler=True), 10)
    manifest["spec"]["scheduler"]["t9kScheduler"]["queue"] = "Research_1"
    assert plan_of(manifest).queue is None


@pytest.mark.parametrize("case", CASES)
def test_the_stored_manifest(case: str, golden: Golden) -> None:
    manifest = load(case)
    kind = find(manifest["apiVersion"], manifest["kind"])
    accepted = kind.accept(manifest, Limits(), GIVEN).manifest
    golden(DATA / case / "accepted.yaml", accepted)
    assert kind.accept(accepted, Limits(), GIVEN).manifest == accepted


@pytest.mark.parametrize("case", CASES)
def test_the_rendered_objects(case: str, golden: Golden) -> None:
    plan = plan_of(load(case), resumed=case == "resume")
    golden(DATA / case / "objects.yaml", list(objects_of(plan, "00000000-0000-4000-8000-0000000a11c0")))
    golden(DATA / case / "plan.json", summary(plan))
    assert max(pod_bytes(plan).values()) < Limits().max_rendered_pod_bytes


def summary(plan: JobPlan) -> dict[str, Any]:
    """What of a plan its objects do not show."""
    return {
        "rules": [
            {"name": rule.name, "outcome": rule.outcome, "ranks": sorted(map(str, rule.ranks))} for rule in plan.rules
        ],
        "failsWhenSuccessIsImpossible": plan.fails_when_success_is_impossible,
        "suspendsRules": plan.suspends_rules,
        "paused": plan.paused,
        "cleanUp": plan.clean_up,
        "restarts": {name: [restart.policy, restart.limit] for name, restart in plan.restarts.items()},
        "deadlines": [plan.active_deadline, plan.pending_deadline, plan.ttl_after_finished],
        "globalRanks": {str(key): replica.global_rank for key, replica in plan.replicas.items()},
        "scheduler": plan.gang.scheduler if plan.gang else None,
    }


def with_pod_spec(**changes: Any) -> Manifest:
    manifest = load("simple")
    manifest["spec"]["replicaSpecs"][0]["template"]["spec"] |= changes
    return manifest


def pod_specs(plan: JobPlan) -> list[Manifest]:
    return [manifest["spec"] for manifest in objects_of(plan) if manifest["kind"] == "Pod"]


def test_a_scheduler_that_this_cluster_lacks_leaves_its_default() -> None:
    plan = plan_of(load("scheduler"), site=Site())
    assert plan.gang is not None
    assert plan.gang.scheduler == ""
    assert all("schedulerName" not in spec for spec in pod_specs(plan))


@pytest.mark.parametrize(
    ("schedulers", "becomes"),
    [({}, "volcano"), ({"volcano": "gang"}, "gang"), ({"volcano": None}, None), ({"other": "x"}, "volcano")],
)
def test_a_templates_own_scheduler_is_mapped_too(schedulers: dict[str, str | None], becomes: str | None) -> None:
    plan = plan_of(with_pod_spec(schedulerName="volcano"), site=Site(schedulers=schedulers))
    assert {spec.get("schedulerName") for spec in pod_specs(plan)} == {becomes}


def test_host_names() -> None:
    dotted = load("simple")
    dotted["metadata"]["name"] = "a.b"
    assert pod_specs(plan_of(dotted))[0]["hostname"] == "a-b-worker-0"
    own = pod_specs(plan_of(with_pod_spec(hostname="me", subdomain="team")))[0]
    assert (own["hostname"], own["subdomain"]) == ("me", "team")


def test_resume_specs_count_only_once_resumed() -> None:
    fresh, resumed = (plan_of(load("resume"), resumed=again) for again in (False, True))
    assert pod_specs(fresh)[0]["containers"][0]["command"] == ["start"]
    assert pod_specs(resumed)[0]["containers"][0]["command"] == ["restart"]


def test_replicas_without_ranks_in_their_texts_share_one_spec() -> None:
    first, second = plan_of(load("simple")).replicas.values()
    assert first.template["spec"] is second.template["spec"]
