"""Whether a queue has room for a job now, by what is recorded of the queue. Pure.

Kueue decides; this repeats its choice of flavors on recorded amounts, without priorities, preemption and the nodes of
flavors.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Final, TypeAlias

from app.domain.kubernetes.pod_requests import Amounts, pod_requests
from app.domain.kubernetes.quantity import format_quantity, value_of
from app.domain.queueing.queue_status import FlavorQuota, QueueStatus
from app.domain.queueing.workload import PodSetPlan
from app.domain.vocabulary import PendingCode

_Flavors: TypeAlias = Mapping[str, Amounts]
_ZERO: Final = Decimal(0)
_PODS: Final = "pods"


class RoomOutcome(StrEnum):
    """What would happen to a job that is submitted now. `WouldBeRefused` is a refusal with 409 `TooManyPods`."""

    HAS_ROOM = "HasRoom"
    WOULD_WAIT = "WouldWait"
    WOULD_BE_REFUSED = "WouldBeRefused"
    NO_KUEUE = "NoKueue"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """Whether a queue has room for a job. `code` is the pending reason that the job would have; None if it has room."""

    outcome: RoomOutcome
    code: PendingCode | None = None
    detail: str = ""


def room_for_job(pod_sets: Sequence[PodSetPlan], queue: QueueStatus) -> Room:
    """Return whether the queue has room for all pods of a job."""
    if not queue.active:
        return _waits(PendingCode.QUEUE_STOPPED, queue.message)
    if queue.selected is False:
        detail = f"{queue.cluster_queue} admits no jobs of this namespace: its namespaceSelector does not select it"
        return _waits(PendingCode.NO_MATCHING_FLAVOR, detail)
    limits = [_limits(quota, queue) for quota in queue.quotas]
    if None in limits:
        whose = f"{queue.cluster_queue} and the cohort {queue.cohort}" if queue.cohort else queue.cluster_queue
        return Room(outcome=RoomOutcome.UNKNOWN, detail=f"how much of the quota of {whose} is in use is not known")
    free, most = (_by_flavor(queue.quotas, (found[index] for found in limits if found is not None)) for index in (0, 1))
    requests = [_requests(pod_set, most) for pod_set in pod_sets]
    covered = {name for amounts in most.values() for name in amounts}
    missing = sorted({name for amounts in requests for name in amounts} - covered)
    if missing:
        detail = f"{', '.join(missing)}: requested, and {queue.cluster_queue} has no quota for it"
        return _waits(PendingCode.NO_MATCHING_FLAVOR, detail)
    lack = _find_lack(requests, free, "free")
    if lack and (excess := _find_lack(requests, most, "in all")):
        return _waits(PendingCode.EXCEEDS_MAX_QUOTA, excess)
    if lack:
        return _waits(PendingCode.WAITING_FOR_QUOTA, lack)
    if queue.selected is None:
        detail = f"whether the namespaceSelector of {queue.cluster_queue} selects this namespace is not known"
        return Room(outcome=RoomOutcome.UNKNOWN, detail=detail)
    if any(pod_set.template["spec"].get("resourceClaims") for pod_set in pod_sets):
        return Room(outcome=RoomOutcome.UNKNOWN, detail="the devices of resourceClaims are not compared with the quota")
    others = f"Workloads that wait in the queue, and may come first: {queue.pending}" if queue.pending else ""
    return Room(outcome=RoomOutcome.HAS_ROOM, detail=others)


def _waits(code: PendingCode, detail: str) -> Room:
    return Room(outcome=RoomOutcome.WOULD_WAIT, code=code, detail=detail)


def _limits(quota: FlavorQuota, queue: QueueStatus) -> tuple[Decimal, Decimal] | None:
    """Return what the queue can use of a quota now, and in all; None if that is not known."""
    if quota.nominal is None or quota.used is None:
        return None
    if not queue.cohort:
        return max(value_of(quota.nominal) - value_of(quota.used), _ZERO), value_of(quota.nominal)
    if quota.cohort_free is None or quota.cohort_most is None:
        return None
    return value_of(quota.cohort_free), value_of(quota.cohort_most)


def _by_flavor(quotas: Iterable[FlavorQuota], amounts: Iterable[Decimal]) -> dict[str, dict[str, Decimal]]:
    found: dict[str, dict[str, Decimal]] = {}
    for quota, each in zip(quotas, amounts, strict=True):
        found.setdefault(quota.flavor, {})[quota.resource] = each
    return found


def _find_lack(requests: Iterable[Amounts], available: _Flavors, word: str) -> str:
    """Return what is missing in each ResourceFlavor for the first pod set that fits in none; empty if all pod sets fit.

    Each takes the first flavor that has room for it beside those before it. Resources with the same flavors get the
    same one.
    """
    left = {flavor: dict(amounts) for flavor, amounts in available.items()}
    for amounts in requests:
        for flavors in _groups(available):
            wanted = {name: amount for name, amount in amounts.items() if name in available[flavors[0]]}
            lacks = {flavor: _lacks(wanted, left[flavor], f"{word} in flavor {flavor}") for flavor in flavors}
            fitting = next((flavor for flavor in flavors if not lacks[flavor]), None)
            if fitting is None:
                return "; ".join(lack for found in lacks.values() for lack in found)
            for name, amount in wanted.items():
                left[fitting][name] -= amount
    return ""


def _groups(available: _Flavors) -> list[list[str]]:
    """Return the flavors of each resource group: those with the same resources, in their order."""
    groups: dict[frozenset[str], list[str]] = {}
    for flavor, amounts in available.items():
        groups.setdefault(frozenset(amounts), []).append(flavor)
    return list(groups.values())


def _lacks(wanted: Amounts, left: Amounts, where: str) -> list[str]:
    return [
        f"{name}: {_text(name, amount)} requested, {_text(name, left[name])} {where}"
        for name, amount in wanted.items()
        if amount > left[name]
    ]


def _text(resource: str, amount: Decimal) -> str:
    return format_quantity(amount, binary=resource != "cpu")


def _requests(pod_set: PodSetPlan, nominal: _Flavors) -> Amounts:
    """Return what the pods of a pod set request together. Pods themselves count where a quota limits their number."""
    found = {name: amount * pod_set.count for name, amount in pod_requests(pod_set.template["spec"]).items() if amount}
    if any(_PODS in amounts for amounts in nominal.values()):
        found[_PODS] = Decimal(pod_set.count)
    return found
