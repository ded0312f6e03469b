"""What the API server's refusal of a create means for the job.

    quota, service account, namespace not there yet, RBAC, throttling, 5xx   RETRY, pending with a code
    namespace terminating or deleted, Pod Security, webhook, 400, 413, 422   FAIL, with the cluster's words

Kubernetes gives most of them one reason, Forbidden, so messages are read; they are those of Kubernetes 1.36.
"""

import re
from collections.abc import Iterable
from typing import Final

from app.domain.status.observed import Verdict
from app.domain.vocabulary import PendingCode, Reason

# An admission plugin speaks in its own words, which may quote any of those below.
_DENIED: Final = re.compile(r"admission webhook \"[^\"]*\" denied the request|ValidatingAdmissionPolicy '.*' .*denied")
_RBAC: Final = re.compile(r"is forbidden: User \"[^\"]*\" cannot (create|patch|update|get|list) ")
_QUOTA: Final = re.compile(r"exceeded quota: |status unknown for quota: ")
_SERVICE_ACCOUNT: Final = re.compile(r"error looking up service account |serviceaccount \"[^\"]*\" not found")
_NO_NAMESPACE: Final = re.compile(r"^namespaces \"[^\"]*\" not found")
_TERMINATING: Final = "because it is being terminated"
_BEING_DELETED: Final = "object is being deleted"
_TOO_LARGE: Final = "request is too large"
_OURS_TO_FIX: Final = frozenset({400, 403, 413, 422})


def judge(
    status: int, reason: str, message: str, causes: Iterable[tuple[str, str]] = (), *, seen_before: bool
) -> tuple[Verdict, str]:
    """Verdict and code; a PendingCode unless the verdict is FAIL. `seen_before`: the job had objects in its namespace.

    Causes are pairs of reason and message.
    """
    if any(cause == "NamespaceTerminating" for cause, _ in causes) or (status == 403 and _TERMINATING in message):
        return Verdict.FAIL, Reason.NAMESPACE_TERMINATING
    if status == 404 and _NO_NAMESPACE.search(message):
        if seen_before:
            return Verdict.FAIL, Reason.NAMESPACE_DELETED
        return Verdict.RETRY, PendingCode.NAMESPACE_NOT_FOUND
    if status == 403 and not _DENIED.search(message):
        code = _pending_code(message)
        if code is not None:
            return Verdict.RETRY, code
    if status in _OURS_TO_FIX or (status == 500 and _TOO_LARGE in message):
        return Verdict.FAIL, Reason.REFUSED_BY_CLUSTER
    return _transient(status, reason, message)


def _pending_code(message: str) -> PendingCode | None:
    if _RBAC.search(message):
        return PendingCode.CLUSTER_DENIED
    if _QUOTA.search(message):
        return PendingCode.QUOTA_EXCEEDED
    if _SERVICE_ACCOUNT.search(message):
        return PendingCode.SERVICE_ACCOUNT_NOT_FOUND
    return None


def _transient(status: int, reason: str, message: str) -> tuple[Verdict, str]:
    if status == 401:
        return Verdict.RETRY, PendingCode.CLUSTER_DENIED
    if status == 409 and reason == "AlreadyExists" and _BEING_DELETED in message:
        return Verdict.WAIT, PendingCode.NAME_TERMINATING
    if status == 429:
        return Verdict.RETRY, PendingCode.CLUSTER_THROTTLED
    return Verdict.RETRY, PendingCode.CLUSTER_ERROR
