# ruff: noqa: N818 - the names are those that Kubernetes gives to the reasons of a Status
"""The errors of the Kubernetes client.

    KubeError
    ├── ClusterNotConfigured          no cluster is configured; no request was sent
    ├── Unreachable                   no answer: refused, reset, timed out
    │   ├── AmbiguousResult           no answer to a write that was sent: the server may have carried it out
    │   ├── BrokenAnswer              an answer that is not Kubernetes': a proxy's error page, a cut line
    │   └── SilentStream              a stream that sent nothing for longer than a healthy one can
    └── KubeStatusError               the API server answered with a Status, which has the message
        ├── KubeBadRequest 400        ├── KubeAlreadyExists 409 (a KubeConflict)
        ├── KubeUnauthorized 401      ├── KubeGone 410
        ├── KubeForbidden 403         ├── KubeTooLarge 413
        ├── KubeNotFound 404          ├── KubeInvalid 422
        └── KubeConflict 409          ├── KubeTooManyRequests 429
                                      └── KubeServerError 5xx

Errors of aiohttp and kubernetes_asyncio never leave this package.
"""

from collections.abc import Mapping
from dataclasses import dataclass


class KubeError(Exception):
    """Base of all errors of the Kubernetes client."""


class ClusterNotConfigured(KubeError):
    """Neither a kubeconfig nor in-cluster credentials were found. The message names the places that were searched."""


class Unreachable(KubeError):
    """The API server gave no answer. Unless it is an AmbiguousResult, no write was sent."""


class AmbiguousResult(Unreachable):
    """A write was sent and no answer came back: read the object before repeating the write."""


class BrokenAnswer(Unreachable):
    """The answer is not Kubernetes' own: a proxy's error page, or a line that was cut."""


class SilentStream(Unreachable):
    """A stream sent nothing, not even a bookmark, for longer than a healthy one can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusCause:
    """One entry of `details.causes` of a Status."""

    reason: str = ""
    message: str = ""
    field: str = ""


class KubeStatusError(KubeError):
    """The API server answered with a Status that reports a failure."""

    def __init__(
        self,
        status: int,
        reason: str,
        message: str,
        *,
        causes: tuple[StatusCause, ...] = (),
        kind: str = "",
        name: str = "",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.causes = causes
        self.kind = kind
        self.name = name
        self.retry_after = retry_after

    @property
    def is_version_too_large(self) -> bool:
        """Whether the requested resourceVersion is newer than the server: it lags, or another cluster replaced it."""
        return any(cause.reason == "ResourceVersionTooLarge" for cause in self.causes) or (
            "Too large resource version" in self.message
        )


class KubeBadRequest(KubeStatusError):
    """400: the request is malformed; under strict field validation also an unknown field."""


class KubeUnauthorized(KubeStatusError):
    """401: the credentials are invalid or have expired."""


class KubeForbidden(KubeStatusError):
    """403: RBAC, a quota or an admission plugin denies the request."""


class KubeNotFound(KubeStatusError):
    """404: no such object, or no such API."""


class KubeConflict(KubeStatusError):
    """409: a precondition (uid, resourceVersion) failed. A create also gets it when many requests charge one quota."""


class KubeAlreadyExists(KubeConflict):
    """409: an object with this name exists."""


class KubeGone(KubeStatusError):
    """410: the resourceVersion or continue token is too old; list again."""


class KubeTooLarge(KubeStatusError):
    """413, or a 500 from etcd: the object is larger than the cluster can store."""


class KubeInvalid(KubeStatusError):
    """422: validation failed (see `causes`). A JSON patch whose `test` operation fails is a 422 without causes."""


class KubeTooManyRequests(KubeStatusError):
    """429: flow control, or a disruption budget forbids an eviction; `retry_after` is the server's Retry-After."""


class KubeServerError(KubeStatusError):
    """5xx: the server, etcd or a webhook failed. The request may have been carried out before a timeout."""


def summarize(error: KubeError) -> str:
    """Return what the error is, without its message, which may name namespaces, users and hosts."""
    if isinstance(error, KubeStatusError):
        return f"{error.status} {error.reason}".rstrip()
    return next(summary for known, summary in _SUMMARIES.items() if isinstance(error, known))


def public_message(error: BaseException) -> str:
    """Return the message of an error for a state that is shown without a token: of a refusal only the summary, because
    the API server names users and namespaces in it.
    """
    return summarize(error) if isinstance(error, KubeStatusError) else str(error)


# From special to general.
_SUMMARIES: Mapping[type[KubeError], str] = {
    BrokenAnswer: "an answer of the API server was broken or empty",
    SilentStream: "a stream of the API server was silent for too long",
    Unreachable: "a request to the API server was not answered",
    ClusterNotConfigured: "no cluster is configured",
    KubeError: "a request to the API server failed",
}


_BY_STATUS: dict[int, type[KubeStatusError]] = {
    400: KubeBadRequest,
    401: KubeUnauthorized,
    403: KubeForbidden,
    404: KubeNotFound,
    409: KubeConflict,
    410: KubeGone,
    413: KubeTooLarge,
    422: KubeInvalid,
    429: KubeTooManyRequests,
}


def error_class(status: int, reason: str, message: str) -> type[KubeStatusError]:
    """Return the class for the code and reason of a Status."""
    if "request is too large" in message:
        return KubeTooLarge
    if status == 409 and reason == "AlreadyExists":
        return KubeAlreadyExists
    if reason == "Expired":
        return KubeGone
    if status >= 500:
        return KubeServerError
    return _BY_STATUS.get(status, KubeStatusError)
