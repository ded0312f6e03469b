"""The Python client of jobgate, synchronous and asynchronous.

    with Client("http://127.0.0.1:8080", namespace="team") as client:
        job = client.jobs.submit(Path("job.yaml").read_text())
        ended = client.jobs.wait(job, timeout=3600)
        print(ended.status.phase, ended.status.message)

`AsyncClient` has the same methods as coroutines and asynchronous iterators. Requests, retries and the meaning of phases
are values and pure functions that both share (`wire`, `calls`, `retries`, `phases`).
"""

from typing import TYPE_CHECKING, Any

from jobgate.client.errors import (
    ConflictError,
    CutOffError,
    ForbiddenError,
    InvalidArgumentError,
    InvalidAuthorityError,
    InvalidProxyError,
    InvalidRequestError,
    JobgateError,
    NotFoundError,
    OverloadedError,
    PreconditionFailedError,
    ProblemError,
    ProxyError,
    PurgedError,
    UnauthenticatedError,
    UnavailableError,
    UnreachableError,
    UnreadableAnswerError,
    WaitTimeoutError,
)
from jobgate.client.phases import Ending, Goal, ending_of
from jobgate.client.retries import RetryPolicy
from jobgate.client.wire import BatchItem, Change, Manifest, Manifests, Page

if TYPE_CHECKING:
    from jobgate.client.asynchronous.client import AsyncClient
    from jobgate.client.synchronous.client import Client

__all__ = [
    "AsyncClient",
    "BatchItem",
    "Change",
    "Client",
    "ConflictError",
    "CutOffError",
    "Ending",
    "ForbiddenError",
    "Goal",
    "InvalidArgumentError",
    "InvalidAuthorityError",
    "InvalidProxyError",
    "InvalidRequestError",
    "JobgateError",
    "Manifest",
    "Manifests",
    "NotFoundError",
    "OverloadedError",
    "Page",
    "PreconditionFailedError",
    "ProblemError",
    "ProxyError",
    "PurgedError",
    "RetryPolicy",
    "UnauthenticatedError",
    "UnavailableError",
    "UnreachableError",
    "UnreadableAnswerError",
    "WaitTimeoutError",
    "ending_of",
]


def __getattr__(name: str) -> Any:
    # The help of a command needs no client, and its HTTP library takes long to import.
    if name == "Client":
        from jobgate.client.synchronous.client import Client  # noqa: PLC0415

        return Client
    if name == "AsyncClient":
        from jobgate.client.asynchronous.client import AsyncClient  # noqa: PLC0415

        return AsyncClient
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
