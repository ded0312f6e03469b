"""What the client raises. Every error answer of the gateway is a `ProblemError`, which carries the problem document."""

from http import HTTPStatus
from typing import Any, Final

import msgspec
from typing_extensions import override

from jobgate.client.types import FieldError, Problem

_EXCERPT: Final = 300  # characters of an answer that is not a problem, such as the page of a proxy


class JobgateError(Exception):
    """The base of all errors of the client."""


class UnreachableError(JobgateError):
    """The gateway could not be reached, or the connection ended before the whole answer had arrived."""


class CutOffError(UnreachableError):
    """The connection ended while an answer arrived in parts, such as a log or a CSV."""


class ProxyError(UnreachableError):
    """The proxy that the environment names did not answer, or refused to connect to the gateway."""


class InvalidProxyError(JobgateError):
    """The environment names a proxy that the client cannot use."""


class InvalidAuthorityError(JobgateError):
    """The file of certificate authorities cannot be read, or has no certificate."""


class InvalidArgumentError(JobgateError, ValueError):
    """An argument cannot be sent: it is not Unicode, or it is no name of an object or a namespace."""


class UnreadableAnswerError(JobgateError):
    """An answer was not what this version of the client expects."""


class WaitTimeoutError(JobgateError):
    """The object did not reach the phase within the time. `last` is its last status."""

    def __init__(self, message: str, last: Any) -> None:
        super().__init__(message)
        self.last = last


class ProblemError(JobgateError):
    """An error answer of the gateway (RFC 9457)."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.problem = problem

    @property
    def status(self) -> int:
        return self.problem.status

    @property
    def code(self) -> str:
        """The code for programs, such as InvalidManifest."""
        return self.problem.code

    @property
    def errors(self) -> list[FieldError]:
        """Each fault of the request, with the JSON pointer of the field."""
        return self.problem.errors or []

    @override
    def __str__(self) -> str:
        found = [f"{error.pointer}: {error.detail}" for error in self.errors]
        return "\n  ".join([f"{self.problem.detail} ({self.status} {self.code})", *found])


class InvalidRequestError(ProblemError):
    """400, 413, 415 or 422: the request has to be changed."""


class UnauthenticatedError(ProblemError):
    """401: the token is missing or not valid."""


class ForbiddenError(ProblemError):
    """403: the role of the token, or the pod policy, does not allow the request."""


class NotFoundError(ProblemError):
    """404: the object does not exist, or the token does not reach its namespace."""


class PurgedError(NotFoundError):
    """410: the record of the object was deleted, because the time for which it is kept is over."""


class ConflictError(ProblemError):
    """409: the state of the object does not allow the request, or its name is taken."""


class PreconditionFailedError(ProblemError):
    """412: the object has changed since the given version."""


class OverloadedError(ProblemError):
    """429: the gateway has too many open requests."""


class UnavailableError(ProblemError):
    """5xx: the gateway, its database or the cluster does not answer."""


_CLASSES: Final[dict[int, type[ProblemError]]] = {
    400: InvalidRequestError,
    401: UnauthenticatedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: PurgedError,
    412: PreconditionFailedError,
    413: InvalidRequestError,
    415: InvalidRequestError,
    422: InvalidRequestError,
    429: OverloadedError,
}


def problem_error(status: int, body: bytes, proxy: str | None = None) -> ProblemError:
    """Return the error of an answer with this status and body. The body may come from the proxy that `proxy` names."""
    try:
        problem = msgspec.json.decode(body, type=Problem)
    except msgspec.MsgspecError:
        text = " ".join(body.decode("utf-8", "replace").split())[:_EXCERPT]
        where = f" through {proxy}" if proxy else ""
        detail = f"the answer{where} is no problem document: {text}" if text else f"the answer{where} is empty"
        if status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
            detail += "; a proxy that asks for a password has the form http://USER:PASSWORD@HOST:PORT"
        problem = Problem(type="about:blank", title="", status=status, detail=detail, code=f"Http{status}")
    return _CLASSES.get(status, UnavailableError if status >= 500 else ProblemError)(problem)
