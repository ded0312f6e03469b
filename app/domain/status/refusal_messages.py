"""Says in the words of a user what a refusal of a create means, where the message of the cluster does not.

Kubernetes names an object that the user does not know, such as the anchor of the job, and not the cause: `configmaps
"jobgate-…" is forbidden: unable to create new content in namespace …`.
"""

from collections.abc import Mapping
from typing import Final

from app.domain.vocabulary import PendingCode, Reason

# The whole message, if that of the cluster adds nothing to it.
_WHOLE: Final[Mapping[str, str]] = {
    Reason.NAMESPACE_TERMINATING: "the namespace {namespace} is being deleted, so nothing can be created in it",
    Reason.NAMESPACE_DELETED: "the namespace {namespace} has been deleted",
    PendingCode.NAMESPACE_NOT_FOUND: "the namespace {namespace} does not exist",
}
# What precedes the message of the cluster.
_LEADS: Final[Mapping[str, str]] = {
    PendingCode.CLUSTER_THROTTLED: "the API server of the cluster is busy",
    PendingCode.CLUSTER_ERROR: "the API server of the cluster reports an error",
    PendingCode.CLUSTER_UNREACHABLE: "the API server of the cluster does not answer",
}
_NO_RIGHT: Final = "jobgate lacks a right in the cluster, which an operator can grant"
_NO_CREDENTIALS: Final = "the cluster does not accept the credentials of jobgate"
_TOO_LARGE: Final = "the object is too large for the cluster"


def refusal_message(code: str, status: int | None, message: str, namespace: str) -> str:
    """Return the message of a refusal with this code. `status` is the HTTP status, or None without an answer."""
    whole = _WHOLE.get(code)
    if whole is not None:
        return whole.format(namespace=namespace)
    lead = _lead(code, status, message)
    if not lead:
        return message
    return f"{lead}: {message}" if message else lead


def _lead(code: str, status: int | None, message: str) -> str:
    if code == PendingCode.CLUSTER_DENIED:
        return _NO_CREDENTIALS if status == 401 else _NO_RIGHT
    if code == Reason.REFUSED_BY_CLUSTER and (status == 413 or "request is too large" in message):
        return _TOO_LARGE
    # A user finds the code in the table of docs/status.md, and nothing else if the cluster gives no message.
    return _LEADS.get(code, "" if message else f"the cluster refuses the object with {status} and without a message")
