"""What is said of a gang scheduler that this cluster does not have, in full."""

from dataclasses import replace

import pytest

from app.domain.plan import GangApi, GangPlan
from app.domain.reconcile.conditions import job_conditions
from app.domain.status.records import Condition
from app.domain.vocabulary import ConditionType
from tests.support.plans import T0, a_plan, at, running_status

API = "scheduler.tensorstack.dev/v1beta1 PodGroup"
QUEUED, KUBERNETES = GangApi.TENSORSTACK, GangApi.KUBERNETES


def said(scheduler: str, *before: Condition, api: GangApi | None, now: float = 0) -> list[Condition]:
    status = running_status(conditions=before)
    gang = GangPlan(members=frozenset(), apis=(KUBERNETES, QUEUED), scheduler=scheduler, api=api)
    found = job_conditions(status, a_plan(gang=gang), {}, at(now))
    return [condition for condition in found if condition.type is ConditionType.SCHEDULER_UNAVAILABLE]


@pytest.mark.parametrize(
    ("scheduler", "api", "reason", "message"),
    [
        ("", None, "NoSuchApi", f"this cluster has no {API}: the default scheduler places each replica by itself"),
        (
            "",
            QUEUED,
            "NoScheduler",
            f"no scheduler is configured for {API}: the default one places each replica by itself",
        ),
        (
            "",
            KUBERNETES,
            "NoScheduler",
            f"no scheduler is configured for {API}: the default one places the replicas together, without a queue",
        ),
        ("volcano", None, "NoSuchApi", f"this cluster has no {API}: volcano places each replica by itself"),
    ],
)
def test_each_missing_part_of_gang_scheduling_has_its_own_reason(
    scheduler: str, api: GangApi | None, reason: str, message: str
) -> None:
    [condition] = said(scheduler, api=api)
    assert (condition.status, condition.reason, condition.message) == ("True", reason, message)


def test_there_is_no_condition_if_the_scheduler_is_available() -> None:
    assert said("volcano", api=QUEUED) == []


def test_a_gang_that_requests_no_queue_lacks_nothing() -> None:
    gang = GangPlan(members=frozenset(), apis=(KUBERNETES,))
    assert job_conditions(running_status(), a_plan(gang=gang), {}, at(0)) == job_conditions(
        running_status(), a_plan(), {}, at(0)
    )


def test_the_message_follows_the_cause_and_the_time_stays() -> None:
    [before] = said("", api=None)
    [after] = said("", before, api=QUEUED, now=9)
    assert (after.reason, after.last_transition_at) == ("NoScheduler", T0)


def test_the_condition_turns_false_when_the_scheduler_is_available_again() -> None:
    [before] = said("volcano", api=None)
    [after] = said("volcano", before, api=QUEUED, now=9)
    assert (after.status, after.reason, after.last_transition_at) == ("False", "SchedulerFound", at(9))
    assert said("volcano", replace(after), api=QUEUED, now=10) == [after]
