"""Determines what the refusal of a create by the API server means for the job.

    quota, service account, namespace not there yet, RBAC, throttling, 5xx   RETRY, pending with a code
    Volcano has not let the gang into its queue yet                          RETRY, pending as GangUnschedulable
    namespace terminating or deleted, 400, 413, 422                          FAIL, with the message of the cluster
    Pod Security, webhook, LimitRange, PriorityClass, a pod that no quota
    of this size can hold, and other admission plugins that refuse the pod   FAIL, with the message of the cluster
    any other 403                                                            RETRY, pending as RefusedByCluster

Kubernetes gives most of them the same reason, Forbidden, so the message decides. The messages are those of Kubernetes
1.36. An unknown message may come from a newer version or from an admission plugin of the platform, and its cause may be
temporary, such as a quota. Therefore it does not end the job: an end is final, while the pending deadline ends a job
that never starts.
"""

import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Final

from app.domain.errors import InvalidManifest
from app.domain.kubernetes.quantity import parse_quantity
from app.domain.status.observed import RefusalVerdict
from app.domain.vocabulary import PendingCode, Reason

# The message of a webhook or policy is free text and may quote any message below, so it is matched first.
_DENIED: Final = re.compile(r"admission webhook \"[^\"]*\" denied the request|ValidatingAdmissionPolicy '.*' .*denied")
# Older versions of Volcano refuse the pods of a PodGroup until its queue has room.
_NOT_ENQUEUED: Final = re.compile(
    r'^admission webhook "validatepod\.volcano\.sh" denied the request: failed to create pod <\S+> '
    r"as the podgroup phase is Pending"
)
# Admission plugins of Kubernetes that refuse the pod itself: they refuse the same pod each time, until an admin changes
# the namespace or the cluster.
_POD_REFUSED: Final = re.compile(
    r"violates PodSecurity \""
    r"|(maximum|minimum) \S+ usage per (Container|Pod) is "
    r"|max limit to request ratio per (Container|Pod) is "
    r"|no PriorityClass with name \S+ was found"
    r"|must not be provided in pod spec; priority admission controller computed "
    r"|failed quota: \S+: must specify "
    r"|insufficient quota to consume: "
    r"|pod rejected: RuntimeClass |pod rejected: Pod's Overhead "
    r"|conflict: runtimeClass\.scheduling\."
    r"|pod node label selector conflicts with its namespace node label selector"
    r"|pod node label selector labels conflict with its namespace whitelist"
    r"|is not allowed because service account \S+ does not reference that "
    r"|\.RequiredDuringScheduling has TopologyKey "
    r"|image policy webhook backend denied one or more images"
    # OpenShift.
    r"|unable to validate against any security context constraint"
)
# Admission plugins whose errors have no status, so that the API server reports them as internal errors.
_REFUSED_AS_ERROR: Final = re.compile(
    r"^(Internal error occurred: )?"
    r"(pod tolerations \(possibly merged with namespace default tolerations\) conflict with its namespace whitelist"
    r"|namespace tolerations and pod tolerations conflict|insufficient quota to match these scopes: )"
)
_RBAC: Final = re.compile(r"is forbidden: User \"[^\"]*\" cannot (create|patch|update|get|list) ")
_QUOTA_AMOUNTS: Final = re.compile(r"requested: (\S+), used: \S+, limited: (\S+)$")
_QUOTA: Final = re.compile(r"exceeded quota: |status unknown for quota: ")
_SERVICE_ACCOUNT: Final = re.compile(r"error looking up service account |serviceaccount \"[^\"]*\" not found")
_NO_NAMESPACE: Final = re.compile(r"^namespaces \"[^\"]*\" not found")
_TERMINATING: Final = "because it is being terminated"
_BEING_DELETED: Final = "object is being deleted"
# The API server reports the limit of etcd on a request as an internal error.
_TOO_LARGE: Final = "request is too large"
_OURS_TO_FIX: Final = frozenset({400, 413, 422})


def judge(
    status: int, reason: str, message: str, causes: Iterable[tuple[str, str]] = (), *, seen_before: bool
) -> tuple[RefusalVerdict, str]:
    """Return the verdict, and a Reason if it is FAIL, otherwise a PendingCode.

    `causes` are pairs of reason and message. `seen_before` says that the job has had objects in its namespace.
    """
    if any(cause == "NamespaceTerminating" for cause, _ in causes) or (status == 403 and _TERMINATING in message):
        return RefusalVerdict.FAIL, Reason.NAMESPACE_TERMINATING
    if status == 404 and _NO_NAMESPACE.search(message):
        if seen_before:
            return RefusalVerdict.FAIL, Reason.NAMESPACE_DELETED
        return RefusalVerdict.RETRY, PendingCode.NAMESPACE_NOT_FOUND
    if _NOT_ENQUEUED.search(message):
        return RefusalVerdict.RETRY, PendingCode.GANG_UNSCHEDULABLE
    if status == 403:
        return _forbidden(message)
    if status in _OURS_TO_FIX or (status == 500 and (_TOO_LARGE in message or _REFUSED_AS_ERROR.search(message))):
        return RefusalVerdict.FAIL, Reason.REFUSED_BY_CLUSTER
    return _transient(status, reason, message)


def _forbidden(message: str) -> tuple[RefusalVerdict, str]:
    if _DENIED.search(message) or _POD_REFUSED.search(message):
        return RefusalVerdict.FAIL, Reason.REFUSED_BY_CLUSTER
    if _RBAC.search(message):
        return RefusalVerdict.RETRY, PendingCode.CLUSTER_DENIED
    if _QUOTA.search(message):
        if _exceeds_whole_quota(message):
            return RefusalVerdict.FAIL, Reason.REFUSED_BY_CLUSTER
        return RefusalVerdict.RETRY, PendingCode.QUOTA_EXCEEDED
    if _SERVICE_ACCOUNT.search(message):
        return RefusalVerdict.RETRY, PendingCode.SERVICE_ACCOUNT_NOT_FOUND
    return RefusalVerdict.RETRY, PendingCode.REFUSED


def _exceeds_whole_quota(message: str) -> bool:
    """Return whether the object alone requests more than the quota allows, so that no other object can make room.

    A quota of 0 is how an admin closes a namespace for a while, so its end may be awaited.
    """
    found = _QUOTA_AMOUNTS.search(message)
    if found is None:
        return False
    try:
        requested, limited = (_amounts(text) for text in found.groups())
    except InvalidManifest:
        return False
    return any(0 < limit < requested.get(name, limit) for name, limit in limited.items())


def _amounts(text: str) -> dict[str, Decimal]:
    """Return the amounts of a text such as `requests.cpu=2,pods=1`."""
    pairs = (pair.rpartition("=") for pair in text.split(","))
    return {name: parse_quantity(amount) for name, _, amount in pairs}


def _transient(status: int, reason: str, message: str) -> tuple[RefusalVerdict, str]:
    if status == 401:
        return RefusalVerdict.RETRY, PendingCode.CLUSTER_DENIED
    if status == 409 and reason == "AlreadyExists" and _BEING_DELETED in message:
        return RefusalVerdict.WAIT, PendingCode.NAME_TERMINATING
    if status == 429:
        return RefusalVerdict.RETRY, PendingCode.CLUSTER_THROTTLED
    return RefusalVerdict.RETRY, PendingCode.CLUSTER_ERROR
