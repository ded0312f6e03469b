"""Why a pod that is being deleted still exists: since when, and which finalizers of other clients keep it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from app.domain.errors import shorten_list
from app.domain.plan import Rank
from app.domain.status.observed import ObservedPod, PendingReason
from app.domain.vocabulary import PendingCode

# The finalizers in one message. A pod can have any number.
_LISTED: Final = 3


def name_terminating(pods: Sequence[ObservedPod]) -> PendingReason:
    """Return why the next attempt of a replica waits for these pods of former attempts."""
    return PendingReason(
        code=PendingCode.NAME_TERMINATING,
        message=f"the pod of the previous attempt is still terminating{name_keepers(pods)}",
        since=min((pod.deleted_at for pod in pods if pod.deleted_at is not None), default=None),
    )


def name_keepers(pods: Iterable[ObservedPod]) -> str:
    """Return the finalizers of other clients that keep ended pods, as the end of a sentence; empty without any."""
    return name_finalizers(
        sorted({finalizer for pod in pods if pod.deleting and pod.ended for finalizer in pod.kept_by})
    )


def name_finalizers(finalizers: Sequence[str]) -> str:
    """Return finalizers that are not jobgate's as the end of a sentence; empty without any."""
    if not finalizers:
        return ""
    listed = shorten_list(finalizers, _LISTED)
    noun = "the finalizer" if len(finalizers) == 1 else "the finalizers"
    return f": {noun} {listed}, which jobgate must not remove, {'keeps' if len(finalizers) == 1 else 'keep'} it"


def still_terminating(keys: Sequence[Rank], pods: Mapping[Rank, list[ObservedPod]]) -> str:
    """Return how many pods of these replicas still terminate, and what keeps them."""
    count = "1 pod is" if len(keys) == 1 else f"{len(keys)} pods are"
    return f"{count} still terminating{name_keepers(pod for key in keys for pod in pods.get(key, ()))}"
