"""When a job has ended: which rule decides, and what follows when none can."""

from dataclasses import replace

import pytest

from app.domain.plan import FinishRule
from app.domain.reconcile.rules import evaluate
from app.domain.vocabulary import JobPhase, Outcome, Quantifier, Reason, RuleOutcome
from tests.support.plans import W0, W1, a_plan, a_replica, by_rank, ended, failure, success

ANY, REST = Quantifier.ANY, Quantifier.REST
RUNNING, SUCCEEDED, FAILED, DISRUPTED = None, Outcome.SUCCEEDED, Outcome.FAILED, Outcome.DISRUPTED


def end(*names: str) -> FinishRule:
    return replace(failure(*names), outcome=RuleOutcome.END)


@pytest.mark.parametrize(
    ("rules", "worker0", "worker1", "expected"),
    [
        ([success("worker0")], SUCCEEDED, RUNNING, (JobPhase.SUCCEEDED, Reason.RULE_FULFILLED)),
        ([success("worker0", "worker1")], SUCCEEDED, RUNNING, None),
        ([success("worker0", "worker1")], SUCCEEDED, SUCCEEDED, (JobPhase.SUCCEEDED, Reason.RULE_FULFILLED)),
        ([success("worker0", "worker1", quantifier=ANY)], RUNNING, SUCCEEDED, (JobPhase.SUCCEEDED, "RuleFulfilled")),
        ([failure("worker0", "worker1", quantifier=ANY)], RUNNING, FAILED, (JobPhase.FAILED, "RuleFulfilled")),
        ([success("worker0", "worker1", quantifier=REST)], SUCCEEDED, RUNNING, None),
        ([success("worker0", "worker1", quantifier=REST)], FAILED, RUNNING, None),
        ([success("worker0", "worker1", quantifier=REST)], FAILED, SUCCEEDED, (JobPhase.SUCCEEDED, "RuleFulfilled")),
        ([success("worker0", "worker1", quantifier=REST)], FAILED, FAILED, (JobPhase.FAILED, "SuccessImpossible")),
        ([end("worker0")], SUCCEEDED, RUNNING, (JobPhase.FAILED, Reason.RULE_FULFILLED)),
        ([end("worker0")], FAILED, RUNNING, (JobPhase.FAILED, Reason.RULE_FULFILLED)),
        ([end("worker0")], RUNNING, FAILED, None),
        ([failure("worker0", "worker1")], FAILED, RUNNING, None),
        ([failure("worker0", "worker1")], FAILED, DISRUPTED, (JobPhase.FAILED, Reason.RULE_FULFILLED)),
        ([success("worker0"), failure("worker1")], SUCCEEDED, FAILED, (JobPhase.SUCCEEDED, "RuleFulfilled")),
        ([failure("worker1"), success("worker0")], SUCCEEDED, FAILED, (JobPhase.FAILED, "RuleFulfilled")),
        ([success("worker0"), failure("worker1")], RUNNING, RUNNING, None),
        ([success("worker0", "worker1")], FAILED, RUNNING, (JobPhase.FAILED, Reason.SUCCESS_IMPOSSIBLE)),
        ([success("worker0"), success("worker1")], FAILED, RUNNING, None),
        ([success("worker0", "worker1", quantifier=ANY)], FAILED, RUNNING, None),
        ([success("worker0", "worker1", quantifier=ANY)], FAILED, FAILED, (JobPhase.FAILED, "SuccessImpossible")),
        ([success("worker9")], SUCCEEDED, RUNNING, None),
        ([success("worker9")], SUCCEEDED, FAILED, (JobPhase.FAILED, Reason.NO_RULE_FULFILLED)),
        ([], SUCCEEDED, SUCCEEDED, (JobPhase.FAILED, Reason.NO_RULE_FULFILLED)),
        ([], SUCCEEDED, RUNNING, None),
        ([failure("worker0")], SUCCEEDED, FAILED, (JobPhase.FAILED, Reason.NO_RULE_FULFILLED)),
    ],
)
def test_the_first_rule_that_holds_decides(
    rules: list[FinishRule],
    worker0: Outcome | None,
    worker1: Outcome | None,
    expected: tuple[JobPhase, str] | None,
) -> None:
    replicas = by_rank(*(ended(key, end) if end else a_replica(key) for key, end in ((W0, worker0), (W1, worker1))))
    found = evaluate(a_plan(rules=rules), replicas)
    assert (found and (found.phase, found.reason)) == expected


@pytest.mark.parametrize("quantifier", Quantifier)
def test_a_rule_without_ranks_never_holds_and_makes_success_impossible(quantifier: Quantifier) -> None:
    replicas = by_rank(a_replica(W0), a_replica(W1))
    found = evaluate(a_plan(rules=[success(quantifier=quantifier)]), replicas)
    assert found is not None
    assert found.reason == Reason.SUCCESS_IMPOSSIBLE


def test_impossible_success_ends_a_job_also_if_it_has_failure_rules() -> None:
    replicas = by_rank(ended(W0, FAILED), a_replica(W1))
    rules = [success("worker0"), failure("worker1")]
    found = evaluate(a_plan(rules=rules), replicas)
    assert found is not None
    assert (found.phase, found.reason) == (JobPhase.FAILED, Reason.SUCCESS_IMPOSSIBLE)
    # The kinds whose upstream controllers define all ends have no such rule.
    assert evaluate(a_plan(rules=rules, fails_when_success_is_impossible=False), replicas) is None


def test_a_declared_rule_comes_before_impossible_success() -> None:
    replicas = by_rank(ended(W0, FAILED), a_replica(W1))
    found = evaluate(a_plan(rules=[success("worker0"), failure("worker0", name="failureRules[0]")]), replicas)
    assert found is not None
    assert found.reason == Reason.RULE_FULFILLED


@pytest.mark.parametrize("outcome", [Outcome.SUCCEEDED, Outcome.FAILED, Outcome.DISRUPTED, Outcome.STOPPED])
def test_an_end_that_another_attempt_follows_fires_no_rule(outcome: Outcome) -> None:
    replicas = by_rank(ended(W0, outcome, settled=False), a_replica(W1))
    assert evaluate(a_plan(rules=[success("worker0"), failure("worker0")]), replicas) is None


def test_the_end_names_its_rule_and_its_ranks() -> None:
    replicas = by_rank(ended(W0, FAILED), a_replica(W1))
    found = evaluate(a_plan(rules=[success("worker1"), failure("worker0", name="failureRules[0]")]), replicas)
    assert found is not None
    assert found.message == "failureRules[0] is fulfilled: all of worker[0] failed: worker[0] failed in attempt 1"


def test_the_message_of_a_rule_that_some_ranks_fulfil_does_not_say_that_all_succeeded() -> None:
    replicas = by_rank(ended(W0, FAILED), ended(W1, SUCCEEDED))
    found = evaluate(a_plan(rules=[success("worker0", "worker1", name="trainersDone", quantifier=REST)]), replicas)
    assert found is not None
    sentence = "trainersDone is fulfilled: all of worker[0], worker[1] have ended, and at least one succeeded"
    assert found.message == sentence
