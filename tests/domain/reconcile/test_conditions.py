"""What is said of a gang scheduler that this cluster does not have, in full."""

from dataclasses import replace

import pytest

from app.domain.plan import GangPlan
from app.domain.reconcile.conditions import job_conditions
from app.domain.status.records import Condition
from app.domain.vocabulary import ConditionType
from tests.support.plans import T0, a_plan, at, running_status

API = "g/v1 PodGroup"


def gang(scheduler: str) -> GangPlan:
    return GangPlan(api_version="g/v1", kind="PodGroup", name="job", spec={}, labels={}, scheduler_name=scheduler)


def said(scheduler: str, *before: Condition, available: bool, now: float = 0) -> list[Condition]:
    status = running_status(conditions=before)
    found = job_conditions(status, a_plan(gang=gang(scheduler)), {}, at(now), gang_available=available)
    return [condition for condition in found if condition.type is ConditionType.SCHEDULER_UNAVAILABLE]


@pytest.mark.parametrize(
    ("scheduler", "available", "reason", "message"),
    [
        ("", False, "NoSuchApi", f"this cluster has no {API}: the default scheduler places each replica by itself"),
        (
            "",
            True,
            "NoScheduler",
            f"no scheduler is configured for {API}: the default one places each replica by itself",
        ),
        ("volcano", False, "NoSuchApi", f"this cluster has no {API}: volcano places each replica by itself"),
    ],
)
def test_each_missing_part_of_gang_scheduling_has_its_own_reason(
    scheduler: str, *, available: bool, reason: str, message: str
) -> None:
    [condition] = said(scheduler, available=available)
    assert (condition.status, condition.reason, condition.message) == ("True", reason, message)


def test_there_is_no_condition_if_the_scheduler_is_available() -> None:
    assert said("volcano", available=True) == []


def test_the_message_follows_the_cause_and_the_time_stays() -> None:
    [before] = said("", available=False)
    [after] = said("", before, available=True, now=9)
    assert (after.reason, after.last_transition_at) == ("NoScheduler", T0)


def test_the_condition_turns_false_when_the_scheduler_is_available_again() -> None:
    [before] = said("volcano", available=False)
    [after] = said("volcano", before, available=True, now=9)
    assert (after.status, after.reason, after.last_transition_at) == ("False", "SchedulerFound", at(9))
    assert said("volcano", replace(after), available=True, now=10) == [after]
