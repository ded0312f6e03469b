"""How each API is used: the PodGroup, and the reference of the pods to it."""

from collections.abc import Collection
from typing import Any

import msgspec
import pytest

from app.domain.kubernetes.objects import Pod
from app.domain.manifests.gangs import group_manifest, group_of, has_own_minimum, with_gang_apis
from app.domain.manifests.rendered import objects_of
from app.domain.plan import GangApi, GangPlan, JobPlan, Manifest, Ranks
from app.k8s.resources import POD_GROUPS
from tests.support.plans import a_plan

VERSIONS = [resource.api_version for resource in POD_GROUPS]
EVERY = (GangApi.KUBERNETES, GangApi.VOLCANO, GangApi.SCHEDULER_PLUGINS, GangApi.TENSORSTACK)
NAME = "jobgate-u-2"


def plan(served: Collection[str] | None, apis: tuple[GangApi, ...] = EVERY, **gang: Any) -> JobPlan:
    """Three workers, of which the job needs two."""
    wanted = GangPlan(members=Ranks({"worker": range(2)}), apis=apis, **gang)
    return with_gang_apis(a_plan({"worker": 3}, gang=wanted), served)


def rendered(plan: JobPlan) -> tuple[list[Manifest], list[Manifest]]:
    """The PodGroups and the pods of a job."""
    objects = list(objects_of(plan, "anchor-uid"))
    return [one for one in objects if one["kind"] == "PodGroup"], [one for one in objects if one["kind"] == "Pod"]


@pytest.mark.parametrize(
    ("version", "spec", "reference"),
    [
        *(
            (
                f"scheduling.k8s.io/{version}",
                {"schedulingPolicy": {"gang": {"minCount": 2}}, "priorityClassName": "high"},
                ("spec", "schedulingGroup", {"podGroupName": NAME}),
            )
            for version in ("v1beta1", "v1alpha2")
        ),
        (
            "scheduling.volcano.sh/v1beta1",
            {"minMember": 2, "queue": "research", "priorityClassName": "high"},
            ("metadata", "annotations", {"scheduling.k8s.io/group-name": NAME}),
        ),
        (
            "scheduling.x-k8s.io/v1alpha1",
            {"minMember": 2},
            ("metadata", "labels", {"scheduling.x-k8s.io/pod-group": NAME}),
        ),
    ],
)
def test_the_podgroup_and_its_pods(version: str, spec: Manifest, reference: tuple[str, str, Manifest]) -> None:
    (group,), (*members, other) = rendered(plan([version], queue="research", priority_class="high"))
    assert (group["apiVersion"], group["metadata"]["name"], group["spec"]) == (version, NAME, spec)
    assert group["metadata"]["ownerReferences"][0]["uid"] == "anchor-uid"
    part, field, value = reference
    assert [member[part][field].items() >= value.items() for member in members] == [True, True]
    assert [group_of(msgspec.convert(pod, Pod)) for pod in (*members, other)] == [NAME, NAME, ""]
    assert not (other[part].get(field) or {}).keys() & value.keys()


def test_a_pod_that_volcano_places_by_itself_names_the_queue() -> None:
    (_,), (*members, other) = rendered(plan(["scheduling.volcano.sh/v1beta1"], queue="research"))
    queue = "scheduling.volcano.sh/queue-name"
    assert [pod["metadata"]["annotations"].get(queue) for pod in (*members, other)] == [None, None, "research"]
    (_,), (*_, other) = rendered(plan(["scheduling.k8s.io/v1beta1"], queue="research"))
    assert "annotations" not in other["metadata"]


def test_the_podgroup_of_tensorstack() -> None:
    (group,), pods = rendered(plan(["scheduler.tensorstack.dev/v1beta1"], queue="q", priority=7, labels={"a": "b"}))
    assert (group["metadata"]["name"], group["spec"]) == ("job", {"minMember": 2, "queue": "q", "priority": 7})
    assert group["metadata"]["labels"]["a"] == "b"
    assert [group_of(msgspec.convert(pod, Pod)) for pod in pods] == ["", "", ""]


@pytest.mark.parametrize(
    ("served", "version"),
    [
        (VERSIONS, "scheduling.k8s.io/v1beta1"),
        (VERSIONS[1:], "scheduling.k8s.io/v1alpha2"),
        (("scheduling.x-k8s.io/v1alpha1", "scheduling.volcano.sh/v1beta1"), "scheduling.volcano.sh/v1beta1"),
        ((), None),
        (None, None),
    ],
)
def test_the_first_api_that_is_served_is_used(served: Collection[str] | None, version: str | None) -> None:
    groups, pods = rendered(plan(served))
    assert [group["apiVersion"] for group in groups] == ([version] if version else [])
    assert sum(bool(group_of(msgspec.convert(pod, Pod))) for pod in pods) == (2 if version else 0)


def test_what_a_manifest_requests_is_shown_if_nothing_is_known() -> None:
    requested: dict[str, Any] = {"api": GangApi.TENSORSTACK, "api_version": "scheduler.tensorstack.dev/v1beta1"}
    assert len(rendered(plan(None, **requested))[0]) == 1
    assert rendered(plan((), **requested))[0] == []


def test_the_client_knows_the_path_of_every_version() -> None:
    assert [group["apiVersion"] for version in VERSIONS for group in rendered(plan([version]))[0]] == VERSIONS


@pytest.mark.parametrize("version", VERSIONS)
def test_a_podgroup_has_the_minimum_of_its_job_or_another_one(version: str) -> None:
    of_two = group_manifest(plan([version]), None)
    of_three = group_manifest(with_gang_apis(gang_of_three(), [version]), None)
    assert of_two is not None
    assert of_three is not None
    assert [has_own_minimum(plan([version]), group) for group in (of_two, of_three, {})] == [True, False, False]


def gang_of_three() -> JobPlan:
    return a_plan({"worker": 3}, gang=GangPlan(members=Ranks({"worker": range(3)}), apis=EVERY))
