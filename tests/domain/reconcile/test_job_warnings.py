"""The warnings in the status of a job: those since its submission, and those of the cluster."""

from dataclasses import replace

from app.domain.plan import JobWarning
from app.domain.status.records import MOST_WARNINGS
from app.domain.vocabulary import JobPhase, WarningSource
from tests.support.plans import a_plan, a_pod, a_record, a_replica, decide, next_record, running_status

OWN = JobWarning(source=WarningSource.JOBGATE, pointer="/spec", message="no effect")
PLAN = a_plan({"worker": 1})


def of_cluster(number: int = 0) -> JobWarning:
    return JobWarning(source=WarningSource.CLUSTER, task="worker", message=f"odd {number}")


def test_warnings_stay_when_the_controller_restarts_and_at_the_end_of_the_job() -> None:
    recorded = a_record(running_status(warnings=(OWN,)), a_replica())
    first = decide(PLAN, recorded, a_pod(), warnings=(of_cluster(),))
    assert first.status.warnings == (OWN, of_cluster())
    recorded = next_record(recorded, first)
    # A new controller knows none of them; then the cluster repeats one, and has another.
    assert decide(PLAN, recorded, a_pod()).status.warnings == first.status.warnings
    again = decide(PLAN, recorded, a_pod(), warnings=(of_cluster(), of_cluster(1)))
    assert again.status.warnings == (OWN, of_cluster(), of_cluster(1))
    ended = a_record(replace(again.status, phase=JobPhase.CANCELLED), a_replica())
    assert decide(PLAN, ended, a_pod()).status.warnings == again.status.warnings


def test_the_warnings_of_the_cluster_are_bounded() -> None:
    recorded = a_record(running_status(warnings=(OWN, *map(of_cluster, range(15)))), a_replica())
    found = decide(PLAN, recorded, a_pod(), warnings=tuple(map(of_cluster, range(10, 90)))).status.warnings
    assert found == (OWN, *map(of_cluster, range(MOST_WARNINGS)))
