"""When a wait is over, for every phase of every resource."""

import pytest

from app.domain.vocabulary import JobPhase
from jobgate.client import types
from jobgate.client.phases import Ending, Goal, ending_of, is_reached, is_settled


@pytest.mark.parametrize("phase", list(JobPhase))
def test_a_job_has_ended_in_exactly_the_terminal_phases(phase: JobPhase) -> None:
    assert (ending_of(phase.value) is not None) == phase.is_terminal


@pytest.mark.parametrize(
    ("phase", "ending"),
    [
        ("Succeeded", Ending.SUCCEEDED),
        ("Failed", Ending.FAILED),
        ("TimedOut", Ending.FAILED),
        ("Cancelled", Ending.CANCELLED),
        ("Ready", Ending.SUCCEEDED),
        ("Syncing", None),
        ("", None),
    ],
)
def test_endings(phase: str, ending: Ending | None) -> None:
    assert ending_of(phase) is ending


@pytest.mark.parametrize(
    ("goal", "phase", "settled", "reached"),
    [
        (Goal.RUNNING, "Pending", False, False),
        (Goal.RUNNING, "Restarting", False, False),
        (Goal.RUNNING, "Running", True, True),
        (Goal.RUNNING, "Scaling", True, True),
        (Goal.RUNNING, "Succeeded", True, True),
        (Goal.RUNNING, "Failed", True, False),
        (Goal.SUCCEEDED, "Running", False, False),
        (Goal.SUCCEEDED, "Succeeded", True, True),
        (Goal.SUCCEEDED, "Cancelled", True, False),
        (Goal.DONE, "Running", False, False),
        (Goal.DONE, "TimedOut", True, True),
        (Goal.DONE, "Ready", True, True),
    ],
)
def test_a_wait_ends_when_the_goal_is_reached_or_impossible(
    goal: Goal, phase: str, *, settled: bool, reached: bool
) -> None:
    assert is_settled(goal, phase) is settled
    assert is_reached(goal, phase) is reached


@pytest.mark.parametrize("goal", list(Goal))
def test_a_deletion_ends_every_wait(goal: Goal) -> None:
    assert is_settled(goal, "Mount", is_deleted=True)


def test_the_generated_phases_are_those_of_the_gateway() -> None:
    assert {phase.value for phase in types.JobPhase} == {phase.value for phase in JobPhase}
