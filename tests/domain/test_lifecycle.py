"""One replica's life: what its pod's end means, what budgets allow, and that a recorded end stays."""

from typing import Any

import pytest

from app.domain.lifecycle import NODE_LOST_WARNING, Budget, settle, track
from app.domain.plan import Rank, RestartPlan
from app.domain.status.observed import ObservedPod
from app.domain.status.records import Attempt, Replica
from app.domain.timing import Timing
from app.domain.vocabulary import BudgetScope, Evidence, Outcome, ReplicaPhase, RestartPolicy, StopReason
from tests.support.plans import T0, W0, W1, a_pod, a_replica, an_attempt, at, ended, restarting

P = ReplicaPhase
NONE: frozenset[str] = frozenset()


@pytest.mark.parametrize(
    ("attempt", "pod", "outcome", "phase", "reason"),
    [
        ({}, a_pod(), None, P.RUNNING, None),
        ({}, a_pod(phase=P.SUCCEEDED), Outcome.SUCCEEDED, P.SUCCEEDED, None),
        ({}, a_pod(phase=P.FAILED, exit_code=1, reason="Error"), Outcome.FAILED, P.FAILED, "Error"),
        ({}, a_pod(phase=P.FAILED, disruption="Evicted"), Outcome.DISRUPTED, P.DELETED, "Evicted"),
        ({}, a_pod(phase=P.FAILED, deletion_deadline=T0), Outcome.DISRUPTED, P.DELETED, "PodDeleted"),
        ({}, a_pod(phase=P.SUCCEEDED, deletion_deadline=T0), Outcome.SUCCEEDED, P.SUCCEEDED, None),
        ({}, a_pod(phase=P.CREATING, ended=True, deletion_deadline=T0), Outcome.DISRUPTED, P.DELETED, "PodDeleted"),
        ({"stopping": StopReason.PAUSE}, a_pod(phase=P.FAILED), Outcome.STOPPED, P.DELETED, "Paused"),
        ({"stopping": StopReason.PAUSE}, a_pod(phase=P.SUCCEEDED), Outcome.STOPPED, P.DELETED, "Paused"),
        ({"stopping": StopReason.PAUSE}, a_pod(deletion_deadline=T0), None, P.RUNNING, None),
        ({"message": NODE_LOST_WARNING, "reason": "NodeLost"}, a_pod(phase=P.UNKNOWN), None, P.UNKNOWN, "NodeLost"),
        (
            {"message": NODE_LOST_WARNING},
            a_pod(phase=P.UNKNOWN, ended=True, deletion_deadline=T0),
            Outcome.DISRUPTED,
            P.DELETED,
            "NodeLost",
        ),
    ],
)
def test_what_a_pod_says_of_its_attempt(
    attempt: dict[str, Any], pod: ObservedPod, outcome: Outcome | None, phase: ReplicaPhase, reason: str | None
) -> None:
    found = track(a_replica(attempt=an_attempt(**attempt)), [pod], NONE).attempt
    assert (found.outcome, found.phase, found.reason) == (outcome, phase, reason)


@pytest.mark.parametrize("outcome", Outcome)
@pytest.mark.parametrize("phase", [P.SUCCEEDED, P.FAILED, P.RUNNING])
def test_a_recorded_end_never_changes(outcome: Outcome, phase: ReplicaPhase) -> None:
    replica = ended(W0, outcome)
    assert track(replica, [a_pod(phase=phase, exit_code=9)], frozenset({"worker0-1"})) == replica


@pytest.mark.parametrize(
    ("attempt", "gone", "outcome", "reason"),
    [
        ({}, NONE, None, None),
        ({}, {"worker0-1"}, Outcome.DISRUPTED, "PodVanished"),
        ({"stopping": StopReason.CANCEL}, {"worker0-1"}, Outcome.STOPPED, "Cancelled"),
        ({"message": NODE_LOST_WARNING}, {"worker0-1"}, Outcome.DISRUPTED, "NodeLost"),
        ({"seen": False}, {"worker0-1"}, None, None),
    ],
)
def test_a_pod_out_of_view_has_vanished_only_when_that_was_confirmed(
    attempt: dict[str, Any], gone: set[str], outcome: Outcome | None, reason: str | None
) -> None:
    found = track(a_replica(attempt=an_attempt(**attempt)), [], frozenset(gone)).attempt
    assert (found.outcome, found.reason) == (outcome, reason)
    assert (found.evidence is Evidence.UNAVAILABLE) is (outcome is not None)


def test_an_attempt_keeps_to_the_pod_it_recorded() -> None:
    other = a_pod(uid="other", phase=P.FAILED)
    assert track(a_replica(), [other], NONE) == a_replica()
    assert track(a_replica(), [a_pod(attempt=2, phase=P.FAILED)], NONE) == a_replica()
    unseen = a_replica(attempt=an_attempt(seen=False))
    assert track(unseen, [other], NONE).attempt.pod_uid == "other"


def test_a_create_that_arrives_after_it_was_given_up_is_known_by_its_pod() -> None:
    given_up = Attempt(number=1, outcome=Outcome.STOPPED, evidence=Evidence.UNAVAILABLE, phase=P.DELETED)
    found = track(a_replica(attempt=given_up), [a_pod()], NONE).attempt
    assert (found.pod_uid, found.outcome, found.phase) == ("worker0-1", Outcome.STOPPED, P.DELETED)


@pytest.mark.parametrize(
    ("policy", "limit", "outcome", "restarts", "settled"),
    [
        (RestartPolicy.NEVER, 5, Outcome.FAILED, 0, True),
        (RestartPolicy.NEVER, 5, Outcome.SUCCEEDED, 0, True),
        (RestartPolicy.ON_FAILURE, 0, Outcome.FAILED, 0, True),
        (RestartPolicy.ON_FAILURE, 2, Outcome.FAILED, 0, False),
        (RestartPolicy.ON_FAILURE, 2, Outcome.FAILED, 1, False),
        (RestartPolicy.ON_FAILURE, 2, Outcome.FAILED, 2, True),
        (RestartPolicy.ON_FAILURE, None, Outcome.FAILED, 999, False),
        (RestartPolicy.ON_FAILURE, 2, Outcome.SUCCEEDED, 0, True),
        (RestartPolicy.ALWAYS, 2, Outcome.SUCCEEDED, 1, False),
        (RestartPolicy.ALWAYS, 2, Outcome.SUCCEEDED, 2, True),
        (RestartPolicy.ALWAYS, 0, Outcome.SUCCEEDED, 0, True),
        (RestartPolicy.ALWAYS, None, Outcome.FAILED, 999, False),
        (RestartPolicy.ALWAYS, 2, Outcome.STOPPED, 2, False),
        (RestartPolicy.NEVER, 0, Outcome.DISRUPTED, 0, False),
    ],
)
def test_policies_and_limits(
    policy: RestartPolicy, limit: int | None, outcome: Outcome, restarts: int, *, settled: bool
) -> None:
    replica = ended(W0, outcome, settled=False, restarts=restarts)
    plan = restarting(limit, policy)
    assert settle(replica, plan, Budget([replica]), Timing()).settled is settled


@pytest.mark.parametrize(("disruptions", "settled"), [(0, False), (2, False), (3, True)])
def test_disruptions_have_a_limit_of_their_own(disruptions: int, *, settled: bool) -> None:
    replica = ended(W0, Outcome.DISRUPTED, settled=False, disruptions=disruptions, restarts=7)
    plan = restarting(0, RestartPolicy.NEVER)
    assert settle(replica, plan, Budget([replica]), Timing(disruption_limit=3)).settled is settled


PS0 = Rank("ps", 0)


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        (BudgetScope.REPLICA, [False, False, False]),
        (BudgetScope.JOB, [False, True, True]),
    ],
)
def test_a_shared_budget_is_spent_in_rank_order(scope: BudgetScope, expected: list[bool]) -> None:
    replicas = [ended(key, Outcome.FAILED, settled=False) for key in (W0, W1, PS0)]
    assert _settled(replicas, restarting(1, scope=scope)) == expected


def _settled(replicas: list[Replica], plan: RestartPlan) -> list[bool]:
    budget = Budget(replicas)
    return [settle(replica, plan, budget, Timing()).settled for replica in replicas]


@pytest.mark.parametrize(("earlier", "seconds"), [(0, 10), (1, 20), (5, 320), (6, 360), (10_000, 360)])
def test_back_off_doubles_up_to_its_end(earlier: int, seconds: float) -> None:
    assert T0 + Timing().backoff(earlier) == at(seconds)


@pytest.mark.parametrize(("earlier", "seconds"), [(0, 0), (1, 10), (2, 20)])
def test_the_first_disruption_is_mended_at_once(earlier: int, seconds: float) -> None:
    assert T0 + Timing().disruption_backoff(earlier) == at(seconds)
