"""Evaluates the finish rules of a plan, and ends a job if no rule of it can hold any more."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from app.domain.plan import FinishRule, JobPlan, Rank
from app.domain.status.ends import has_failed, has_succeeded
from app.domain.status.failures import cause_of, earliest_failure, failure_of, summarize_failures
from app.domain.status.records import NO_FAILURES, FailureSummary, Replica
from app.domain.vocabulary import Evidence, JobPhase, Quantifier, Reason, RuleOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """The end of a job: its phase, reason and message, and the failures that caused it.

    `cause` is the replica whose failure the message describes, or None.
    """

    phase: JobPhase
    reason: str
    message: str
    ended_by: FailureSummary = NO_FAILURES
    cause: Replica | None = None

    @property
    def awaits_evidence(self) -> bool:
        """Whether the log of the cause, whose last line belongs to the message, has not been read yet."""
        return self.cause is not None and self.cause.attempt.evidence is Evidence.NONE


def evaluate(plan: JobPlan, replicas: Mapping[Rank, Replica]) -> Finish | None:
    """Return the end by the first rule that holds, or the end if no rule can hold any more; otherwise None."""
    # The order of the plan decides: a plan lists the rules that take precedence first.
    for rule in plan.rules:
        if _holds(rule, replicas):
            return _fulfilment(rule, replicas)
    if plan.fails_when_success_is_impossible and _success_is_impossible(plan, replicas):
        return _failure(Reason.SUCCESS_IMPOSSIBLE, "no success rule can be fulfilled any more", replicas.values())
    # Without this end, a job whose rules name only some ranks would stay Running forever.
    if all(_has_ended(replica) for replica in replicas.values()):
        said = "every replica has ended and no success or failure rule is fulfilled"
        return _failure(Reason.NO_RULE_FULFILLED, said, replicas.values())
    return None


def _failure(reason: str, sentence: str, members: Iterable[Replica]) -> Finish:
    """Return the end of a failed job. Its message is the sentence and the earliest failure of these replicas."""
    summary, cause = summarize_failures(replicas := list(members)), earliest_failure(replicas)
    if cause is not None:
        others = summary.failed + summary.disrupted - 1
        more = f"; {others} more replicas failed" if others > 1 else "; 1 more replica failed" if others else ""
        sentence = f"{sentence}: {cause_of(failure_of(cause.key, cause.attempt))}{more}"
    return Finish(phase=JobPhase.FAILED, reason=reason, message=sentence, ended_by=summary, cause=cause)


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


def _fulfilment(rule: FinishRule, replicas: Mapping[Rank, Replica]) -> Finish:
    verb = _VERBS[rule.outcome]
    ranks = ", ".join(str(key) for key in sorted(rule.ranks)[:5]) + (" …" if len(rule.ranks) > 5 else "")
    reached = f"{rule.quantifier} of {ranks} {verb}"
    if rule.quantifier is Quantifier.REST:
        reached = f"all of {ranks} have ended, and at least one {verb}"
    sentence = f"{rule.name} is fulfilled: {reached}"
    if rule.outcome is RuleOutcome.SUCCESS:
        return Finish(phase=JobPhase.SUCCEEDED, reason=Reason.RULE_FULFILLED, message=sentence)
    members = [replica for key, replica in replicas.items() if key in rule.ranks]
    return _failure(Reason.RULE_FULFILLED, sentence, members)


def _success_is_impossible(plan: JobPlan, replicas: Mapping[Rank, Replica]) -> bool:
    rules = [rule for rule in plan.rules if rule.outcome is RuleOutcome.SUCCESS]
    return bool(rules) and all(_is_lost(rule, replicas) for rule in rules)


def _is_lost(rule: FinishRule, replicas: Mapping[Rank, Replica]) -> bool:
    """Return whether the rule can never hold. A rule without ranks never holds, see `_holds`."""
    failed = [key in replicas and has_failed(replicas[key]) for key in rule.ranks]
    return all(failed) if rule.quantifier is not Quantifier.ALL else not failed or any(failed)
