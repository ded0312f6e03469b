# ruff: noqa: N818 - the family bears the names that Kubernetes gives to its reasons
"""Everything that can go wrong with a cluster.

    KubeError
    ├── ClusterNotConfigured    no way to a cluster is configured; nothing was asked
    ├── Unreachable             no answer: refused, reset, timed out
    │   ├── AmbiguousResult     no answer to a write that was sent: it may have been carried out
    │   ├── BrokenAnswer        an answer that Kubernetes does not give: a proxy's page, a cut line
    │   └── SilentStream        a stream that sent nothing for longer than it may
    └── ApiError                the API server's Status, in its own words
        ├── BadRequest 400      ├── Unauthorized 401    ├── Forbidden 403   ├── NotFound 404
        ├── Conflict 409        ├── AlreadyExists 409   ├── Gone 410        ├── TooLarge 413
        ├── Invalid 422         ├── TooManyRequests 429 └── ServerError 5xx

Nothing of aiohttp or kubernetes_asyncio leaves this package.
"""

from dataclasses import dataclass


class KubeError(Exception):
    """The base of the family."""


class ClusterNotConfigured(KubeError):
    """Neither a kubeconfig nor in-cluster credentials lead to a cluster; the message says what was looked for."""


class Unreachable(KubeError):
    """The API server gave no answer. A write that failed like this was not sent."""


class AmbiguousResult(Unreachable):
    """A write was sent and no answer came back: look before you repeat it."""


class BrokenAnswer(Unreachable):
    """What came back is not Kubernetes: a proxy's error page, a line cut in half."""


class SilentStream(Unreachable):
    """A stream sent nothing, not even a bookmark, for longer than a living one can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """One entry of a Status' details.causes."""

    reason: str = ""
    message: str = ""
    field: str = ""


class ApiError(KubeError):
    """The API server refused, and said why."""

    def __init__(
        self,
        status: int,
        reason: str,
        message: str,
        *,
        causes: tuple[Cause, ...] = (),
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
        """The version asked for is ahead of this server: it lags, or another cluster has taken its place."""
        return any(cause.reason == "ResourceVersionTooLarge" for cause in self.causes) or (
            "Too large resource version" in self.message
        )


class BadRequest(ApiError):
    """400: the request could not be read; with strict validation also an unknown or misspelt field."""


class Unauthorized(ApiError):
    """401: the credentials are not, or no longer, valid."""


class Forbidden(ApiError):
    """403: not allowed to the user, by quota, or by an admission controller."""


class NotFound(ApiError):
    """404: no such object, or no such API."""


class Conflict(ApiError):
    """409: a precondition (uid, resourceVersion) did not hold. A create gets it too, when many use up one quota."""


class AlreadyExists(Conflict):
    """409: the name is taken."""


class Gone(ApiError):
    """410: the version or continue token is too old; list again."""


class TooLarge(ApiError):
    """413, or etcd's 500: the object is larger than the cluster stores."""


class Invalid(ApiError):
    """422: read, and refused field by field (see `causes`); a JSON patch whose test failed is 422 without causes."""


class TooManyRequests(ApiError):
    """429: flow control, or an eviction that a budget forbids now; `retry_after` is what the server asked."""


class ServerError(ApiError):
    """5xx: the server, etcd or a webhook is unwell; a time-out inside may come after the deed."""


_BY_STATUS: dict[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    413: TooLarge,
    422: Invalid,
    429: TooManyRequests,
}


def error_class(status: int, reason: str, message: str) -> type[ApiError]:
    """The member of the family that an answer belongs to."""
    if "request is too large" in message:
        return TooLarge
    if status == 409 and reason == "AlreadyExists":
        return AlreadyExists
    if reason == "Expired":
        return Gone
    if status >= 500:
        return ServerError
    return _BY_STATUS.get(status, ApiError)
