"""Evaluates the finish rules of a plan, and ends a job if no rule of it can hold any more."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from app.domain.plan import FinishRule, JobPlan, Rank
from app.domain.reconcile.lifecycle import has_failed, has_succeeded
from app.domain.status.failures import summarize_failures
from app.domain.status.records import NO_FAILURES, FailureSummary, Replica
from app.domain.vocabulary import JobPhase, Quantifier, Reason, RuleOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """The end of a job: its phase, reason and message, and the failures that caused it."""

    phase: JobPhase
    reason: str
    message: str
    ended_by: FailureSummary = NO_FAILURES


def evaluate(plan: JobPlan, replicas: Mapping[Rank, Replica]) -> Finish | None:
    """Return the end by the first rule that holds, or the end if no rule can hold any more; otherwise None."""
    # The order of the plan decides: dialects list the rules that take precedence first.
    for rule in plan.rules:
        if _holds(rule, replicas):
            return _fulfilled(rule, replicas)
    if plan.fails_when_success_is_impossible and _success_is_impossible(plan, replicas):
        failed = ", ".join(str(key) for key, replica in replicas.items() if has_failed(replica))
        return Finish(
            phase=JobPhase.FAILED,
            reason=Reason.SUCCESS_IMPOSSIBLE,
            message=f"no success rule can be fulfilled any more: {failed} failed for good",
            ended_by=summarize_failures(replicas.values()),
        )
    # Without this end, a job whose rules name only some ranks would stay Running forever.
    if all(_has_ended(replica) for replica in replicas.values()):
        return Finish(
            phase=JobPhase.FAILED,
            reason=Reason.NO_RULE_FULFILLED,
            message="every replica has ended and no success or failure rule is fulfilled",
            ended_by=summarize_failures(replicas.values()),
        )
    return None


def _holds(rule: FinishRule, replicas: Mapping[Rank, Replica]) -> bool:
    reached = _REACHED[rule.outcome]
    if rule.quantifier is Quantifier.REST and not all(
        key in replicas and _has_ended(replicas[key]) for key in rule.ranks
    ):
        return False
    # A rule may name ranks beyond the present size of an elastic task. They have not reached anything.
    results = (key in replicas and reached(replicas[key]) for key in rule.ranks)
    # `all` of no results is True, but a rule without ranks must not end a job.
    return any(results) if rule.quantifier is not Quantifier.ALL else bool(rule.ranks) and all(results)


def _has_ended(replica: Replica) -> bool:
    return has_failed(replica) or has_succeeded(replica)


_REACHED: Final = {
    RuleOutcome.SUCCESS: has_succeeded,
    RuleOutcome.FAILURE: has_failed,
    RuleOutcome.END: _has_ended,
}
_VERBS: Final = {
    RuleOutcome.SUCCESS: "succeeded",
    RuleOutcome.FAILURE: "failed",
    RuleOutcome.END: "ended and may not be restarted",
}


def _fulfilled(rule: FinishRule, replicas: Mapping[Rank, Replica]) -> Finish:
    verb = _VERBS[rule.outcome]
    ranks = ", ".join(str(key) for key in sorted(rule.ranks)[:5]) + (" …" if len(rule.ranks) > 5 else "")
    succeeds = rule.outcome is RuleOutcome.SUCCESS
    members = [] if succeeds else [replica for key, replica in replicas.items() if key in rule.ranks]
    return Finish(
        phase=JobPhase.SUCCEEDED if succeeds else JobPhase.FAILED,
        reason=Reason.RULE_FULFILLED,
        message=f"{rule.name} is fulfilled: {rule.quantifier} of {ranks} {verb}",
        ended_by=summarize_failures(members),
    )


def _success_is_impossible(plan: JobPlan, replicas: Mapping[Rank, Replica]) -> bool:
    rules = [rule for rule in plan.rules if rule.outcome is RuleOutcome.SUCCESS]
    return bool(rules) and all(_is_lost(rule, replicas) for rule in rules)


def _is_lost(rule: FinishRule, replicas: Mapping[Rank, Replica]) -> bool:
    """Return whether the rule can never hold. A rule without ranks never holds, see `_holds`."""
    failed = [key in replicas and has_failed(replicas[key]) for key in rule.ranks]
    return all(failed) if rule.quantifier is not Quantifier.ALL else not failed or any(failed)
