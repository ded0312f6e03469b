"""The interface through which an extension of the API server disturbs requests.

The API server works without an extension. The one that exists is `devcluster.testing.faults`.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from devcluster.formats.objects import Object
from devcluster.server.addressing import RequestInfo


class ConnectionDroppedError(Exception):
    """The server breaks the connection before the answer is complete, as a server that dies does."""


class Interceptor:
    """Surrounds the handling of one request. This base class changes nothing."""

    drops_answer = False
    """True: the request takes effect, and the connection is broken before the answer is sent."""

    warnings: Sequence[str] = ()
    """Warnings in the answer to a create, as those of a validating webhook."""

    async def before(self) -> None:
        """Run before the request is handled.

        Raises:
            StatusError: the answer to the request, which is then not handled.
        """

    def admit(self, obj: Object) -> Object:
        """Return the object that a create, update or patch stores, as a mutating webhook changes it."""
        return obj

    def watch_lines(self, lines: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Return the lines that a watch sends, given those that it would send.

        The iterator may raise ConnectionDroppedError.
        """
        return lines


class Extension(Protocol):
    """Serves paths of its own below `prefix`, and provides an interceptor for each request to an object."""

    prefix: str

    def serve(self, method: str, path: str, body: bytes) -> tuple[int, object]:
        """Return the HTTP status and the JSON body for a request below the prefix."""

    def intercept(self, info: RequestInfo) -> Interceptor: ...
